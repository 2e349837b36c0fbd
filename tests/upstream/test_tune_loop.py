"""What `study/upstream/tune.py` touches of Ray, tried on the installed Ray.

What it does to a running one is shown by `tests/sweep/test_starting.py` and `tests/e2e`.
"""

import inspect
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from contract import contract

from study.upstream.tune import MOST, TURN, lighten, told_of_ends

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_ray")]
LOOP = "Tune's loop in study/sweep/driver.py"

with contract("ray", "RayActorManager, RayEventManager and TuneController in their modules", LOOP):
    from ray import ObjectRef
    from ray.air.execution import FixedResourceManager
    from ray.air.execution._internal import RayActorManager, TrackedActor
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


@pytest.mark.slow
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
    assert 2 <= len(looks) <= 3  # fewer where the machine is busy


def test_an_error_that_nobody_waits_for_is_raised(manager: Any) -> None:
    call = Call()
    manager._actor_task_events.track_future(call)
    call.answer.set_exception(ValueError("of nobody"))
    with pytest.raises(ValueError, match="of nobody"):
        manager.next(timeout=1.0)


class Process:
    """The handle of a process of trials, which notes what it is asked for."""

    def __init__(self, asked: list[str], name: str) -> None:
        self.train = SimpleNamespace(remote=lambda: (asked.append(name), Call())[1])


class Turns:
    """A manager of running processes, which are called for the next report where they go on after one."""

    def __init__(self, manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.manager, self.course = manager, list[str]()
        self._actors: dict[str, Any] = {}
        monkeypatch.setattr(told_of_ends(), "together", staticmethod(self._together))
        with contract("ray", "RayActorManager.schedule_actor_task and _schedule_tracked_actor_task", LOOP):
            parameters = list(inspect.signature(RayActorManager._schedule_tracked_actor_task).parameters)
            assert parameters == ["self", "tracked_actor_task", "method_name", "args", "kwargs", "_return_future"]
            assert "self._schedule_tracked_actor_task(" in inspect.getsource(RayActorManager.schedule_actor_task)

    @contextmanager
    def _together(self) -> Iterator[None]:
        self.course.append("begin")
        try:
            yield
        finally:
            self.course.append("synced")

    def report(self, name: str, then: str = "goes on") -> None:
        actor = self._actors[name] = TrackedActor(len(self._actors))
        self.manager._live_actors_to_ray_actors_resources[actor] = (Process(self.course, name), None)
        call = Call()
        self.manager._actor_task_events.track_future(call, lambda _: self._hear(name, then))
        call.answer.set_result("a report")

    def _hear(self, name: str, then: str) -> None:
        self.course.append(f"hears {name}")
        if then == "breaks":
            raise ValueError(name)
        if then == "takes a down":
            del self.manager._live_actors_to_ray_actors_resources[self._actors["a"]]
        if then != "ends":
            self.manager.schedule_actor_task(self._actors[name], "train", on_result=lambda *_: None)

    def turn(self) -> list[str]:
        """What happens in one turn."""
        self.course.clear()
        assert self.manager.next(timeout=1.0)
        return list(self.course)


@pytest.fixture
def turns(manager: Any, monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(manager, monkeypatch)


def test_reports_that_have_come_are_synced_at_once_before_their_processes_go_on(turns: Turns) -> None:
    for name in "abc":
        turns.report(name)
    assert turns.turn() == ["begin", "hears a", "hears b", "hears c", "synced", "a", "b", "c"]
    assert turns.manager._actor_task_events.num_futures == 3
    turns.report("d")
    assert turns.turn() == ["begin", "hears d", "synced", "d"]


def test_a_turn_ends_with_a_process_that_is_free_as_tune_has_to_give_it_a_trial(turns: Turns) -> None:
    for name, then in (("a", "goes on"), ("b", "ends"), ("c", "goes on")):
        turns.report(name, then)
    assert turns.turn() == ["begin", "hears a", "hears b", "synced", "a"]
    assert turns.turn() == ["begin", "hears c", "synced", "c"]


def test_a_turn_has_so_many_reports_at_most(turns: Turns) -> None:
    for number in range(MOST + 1):
        turns.report(str(number))
    assert len(turns.turn()) == 2 * MOST + 2
    assert turns.turn() == ["begin", f"hears {MOST}", "synced", str(MOST)]


def test_a_process_that_was_lost_in_the_turn_is_not_called(turns: Turns) -> None:
    turns.report("a")
    turns.report("b", "takes a down")
    assert turns.turn() == ["begin", "hears a", "hears b", "synced", "b"]


def test_no_process_goes_on_where_a_report_cannot_be_heard(turns: Turns) -> None:
    turns.report("a")
    turns.report("b", "breaks")
    with pytest.raises(ValueError, match="b"):
        turns.manager.next(timeout=1.0)
    assert turns.course == ["begin", "hears a", "hears b", "synced"]
    turns.report("c")
    assert turns.turn() == ["begin", "hears c", "synced", "c"]


def test_answers_that_were_heard_are_let_go(turns: Turns) -> None:
    turns.report("a")
    turns.turn()
    (actor,) = turns.manager._live_actors_to_ray_actors_resources
    (first,) = turns.manager._tracked_actors_to_task_futures[actor]
    first.answer.set_result("the next report")
    assert turns.manager.next(timeout=1.0)
    turns.manager.schedule_actor_task(actor, "train")
    (second,) = turns.manager._tracked_actors_to_task_futures[actor]
    assert second is not first


def test_tune_writes_no_snapshots_and_hands_its_controller_to_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    with contract("ray", "TuneController.checkpoint(force, wait) and _wrapped()", LOOP):
        assert list(inspect.signature(TuneController.checkpoint).parameters) == ["self", "force", "wait"]
        assert list(inspect.signature(TuneController._wrapped).parameters) == ["self"]
    monkeypatch.setattr(told_of_ends(), "together", nullcontext)
    for name in ("checkpoint", "_wrapped"):
        monkeypatch.setattr(TuneController, name, getattr(TuneController, name))  # puts it back afterwards
    lighten(block := nullcontext)
    assert told_of_ends().together is block
    controller = TuneController.__new__(TuneController)
    controller.checkpoint(force=True, wait=True)
    assert controller._wrapped() is controller
