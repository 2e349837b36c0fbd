"""The driver's own process, without Ray."""

import gc
import sys
import weakref
from typing import Any

import pytest

from study.sweep.driver import freeze_old_objects, hide_ray_destructor_errors


class Circle:
    """What only a search for garbage can find."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.slow
def test_only_what_is_new_is_looked_at_for_garbage_while_trials_run() -> None:
    gc.collect()
    old = weakref.ref(Circle())
    with pytest.raises(InterruptedError):  # however it ends
        run_trials(old)
    gc.collect()
    assert old() is None


@freeze_old_objects()
def run_trials(old: weakref.ref[Circle]) -> None:
    new = weakref.ref(Circle())
    gc.collect()
    assert old() is not None
    assert new() is None
    raise InterruptedError


@pytest.mark.parametrize(("module", "told"), [("ray.air.execution", 0), ("study.sweep.driver", 1)])
def test_once_ray_has_ended_its_own_destructors_say_nothing(
    module: str, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_module: dict[str, Any] = {"__name__": module}
    exec("def fails(self): raise ConnectionError('the head has ended')", of_module)
    heard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    hide_ray_destructor_errors()
    made = type("Made", (), {"__del__": of_module["fails"]})()
    del made
    assert len(heard) == told
