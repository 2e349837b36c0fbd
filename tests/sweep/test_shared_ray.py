"""One Ray for several studies: started by the first, freed between them, left once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from study.sweep import ray_runtime
from study.sweep.ray_runtime import SharedRay, ignore_text


class Ray:
    """What a session gives."""

    def __init__(self, ended: str | None = None) -> None:
        self._ended = ended

    def describe_ended_process(self) -> str | None:
        return self._ended


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order."""
    events: list[str] = []

    @contextmanager
    def session(address: Any, *_: Any) -> Iterator[Any]:
        events.append(f"start {address}")
        yield Ray() if address is None else None
        events.append("end")

    monkeypatch.setattr(ray_runtime, "start_or_join_ray", session)
    monkeypatch.setattr(ray_runtime, "end_leftover_workers", lambda: events.append("free"))
    return events


def use(shared: SharedRay, address: str | None = None) -> Any:
    with shared(address, None, None, ignore_text, bool) as ray:
        return ray


def test_one_start_serves_all_and_each_study_leaves_nothing_behind(told: list[str]) -> None:
    with SharedRay() as shared:
        assert use(shared) is use(shared)
        assert told == ["start None", "free", "free"]
    assert told[-1] == "end"


def test_without_a_study_nothing_is_started(told: list[str]) -> None:
    with SharedRay():
        pass
    assert told == []


def test_a_cluster_is_joined_and_left_by_each(told: list[str]) -> None:
    with SharedRay() as shared:
        assert use(shared, "auto") is None
        assert use(shared, "auto") is None
    assert told == ["start auto", "end"] * 2


def test_a_ray_that_has_ended_is_not_asked(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ray, "describe_ended_process", lambda self: "it is gone")
    with SharedRay() as shared:
        use(shared)
    assert told == ["start None", "end"]
