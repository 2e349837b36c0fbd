"""What `study/upstream/tune_loop.py` touches of Ray, tried on the installed Ray.

What it does to a running one is shown by `tests/sweep/test_starting.py` and `tests/e2e`.
"""

import inspect
import time
from concurrent.futures import Future
from typing import Any

import pytest
from contract import contract

from study.upstream.tune_loop import TURN, lighten, told_of_ends

LOOP = "Tune's loop in study/sweep/driver.py"

with contract("ray", "RayActorManager, RayEventManager and TuneController in their modules", LOOP):
    from ray import ObjectRef
    from ray.air.execution import FixedResourceManager
    from ray.air.execution._internal import RayActorManager
    from ray.air.execution._internal.event_manager import RayEventManager
    from ray.tune.execution.tune_controller import TuneController


class Call:
    """A call of Ray's that is under way."""

    def __init__(self) -> None:
        self.answer: Future[str] = Future()

    def future(self) -> "Future[str]":
        return self.answer


@pytest.fixture
def manager() -> Any:
    with contract("ray", "RayActorManager(resource_manager), its two event managers and their methods", LOOP):
        for name in ("_try_kill_actor", "_try_start_actors"):
            assert callable(getattr(RayActorManager, name))
        for name in ("_actor_state_events", "_actor_task_events"):
            assert f"self.{name} = RayEventManager(" in inspect.getsource(RayActorManager.__init__)
        parameters = list(inspect.signature(RayEventManager.track_future).parameters)
        assert parameters == ["self", "future", "on_result", "on_error"]
        assert callable(ObjectRef.future)
        return told_of_ends()(FixedResourceManager({"CPU": 1}))


def test_ends_of_calls_are_heard_one_by_one_in_their_order(manager: Any) -> None:
    heard: list[Any] = []
    first, second, third = (Call() for _ in range(3))
    for call in (first, second, third):
        manager._actor_task_events.track_future(call, heard.append, lambda error: heard.append(type(error)))
    assert manager._actor_task_events.num_futures == 3
    third.answer.set_result("third")
    first.answer.set_exception(ValueError("first"))
    turns = []
    for _ in range(2):
        turns.append((manager.next(timeout=1.0), len(heard)))
    assert (turns, heard) == ([(True, 1), (True, 2)], ["third", ValueError])
    assert manager._actor_task_events.num_futures == 1


def test_of_a_call_that_was_discarded_nothing_is_heard(manager: Any) -> None:
    heard: list[Any] = []
    call = Call()
    manager._actor_state_events.track_future(call, heard.append)
    manager._actor_state_events.discard_future(call)
    call.answer.set_result("late")
    assert not manager.next(timeout=0.0)
    assert heard == []


def test_a_wait_without_an_end_is_over_in_time_and_looks_for_resources_meanwhile(manager: Any) -> None:
    looks: list[float] = []
    manager._try_start_actors = lambda: looks.append(time.monotonic())
    assert not manager.next(timeout=2.5 * TURN)
    assert len(looks) == 3


def test_an_error_that_nobody_waits_for_is_raised(manager: Any) -> None:
    call = Call()
    manager._actor_task_events.track_future(call)
    call.answer.set_exception(ValueError("of nobody"))
    with pytest.raises(ValueError, match="of nobody"):
        manager.next(timeout=1.0)


def test_tune_writes_no_snapshots_and_hands_its_controller_to_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    with contract("ray", "TuneController.checkpoint(force, wait) and _wrapped()", LOOP):
        assert list(inspect.signature(TuneController.checkpoint).parameters) == ["self", "force", "wait"]
        assert list(inspect.signature(TuneController._wrapped).parameters) == ["self"]
    for name in ("checkpoint", "_wrapped"):
        monkeypatch.setattr(TuneController, name, getattr(TuneController, name))  # puts it back afterwards
    lighten()
    controller = TuneController.__new__(TuneController)
    controller.checkpoint(force=True, wait=True)
    assert controller._wrapped() is controller
