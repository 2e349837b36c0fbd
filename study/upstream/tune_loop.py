"""The loop of Ray Tune's controller, as far as it is made lighter here.

Like `ray_internals.py` it touches what Ray does not promise to keep; `tests/upstream/test_tune_loop.py` tries each
touch against the installed Ray.

By itself Tune hands all calls that are under way to Ray for each report, to be told of one that has ended: with 2,000
trials at once that took 5 ms of each report. Here Ray tells of each call once, when it has ended.

By itself it keeps the answer to each call of a process until the trial ends: 2.4 kB a report. Here they are let go.

Reports that have come while the loop was busy are heard in one turn of it, and what they say is synced to disk at once.
Only then are their processes called again.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

TURN = 0.1
"""Seconds between two looks for resources that have come free for processes to be."""

MOST = 32
"""Ends of calls that are heard in one turn: the first waits for the last."""


@cache
def told_of_ends() -> Any:
    """Tune's manager of processes, told of each call that has ended; a subclass of Ray's."""
    from ray.air.execution._internal import RayActorManager
    from ray.air.execution._internal.event_manager import RayEventManager

    class Events(RayEventManager):
        """Calls that are under way; whatever has ended comes into `ended`, with what hears of it."""

        def __init__(self, ended: SimpleQueue[Any]) -> None:
            super().__init__()
            self._ended = ended

        def track_future(self, future: Any, on_result: Any = None, on_error: Any = None) -> None:
            super().track_future(future, on_result, on_error)
            future.future().add_done_callback(lambda answer: self._ended.put((self, future, answer)))

        def hear(self, future: Any, answer: Any) -> bool:
            """Call who waits for the end of a call; nobody does where it was discarded."""
            if future not in self._tracked_futures:
                return False
            on_result, on_error = self._tracked_futures.pop(future)
            error = answer.exception()
            if error is None:
                heard: Callable[[Any], None] | None = on_result
            elif on_error is None or not isinstance(error, Exception):
                raise error
            else:
                heard = on_error
            if heard:
                heard(answer.result() if error is None else error)
            return True

    class Actors(RayActorManager):
        """Handles ends in the order in which they come; those that call their process again, several in a turn.

        Attributes:
            together: gives the block in which the ends of a turn are heard. Calls that are made in it go out after it.
        """

        together: Callable[[], AbstractContextManager[None]] = nullcontext

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._held: list[Callable[[], Any]] | None = None
            self._ended: SimpleQueue[Any] = SimpleQueue()
            self._actor_state_events, self._actor_task_events = Events(self._ended), Events(self._ended)

        def next(self, timeout: float | None = None) -> bool:
            killed = self._try_kill_actor()
            self._try_start_actors()
            deadline = float("inf") if timeout is None else time.monotonic() + timeout
            while not killed:
                try:
                    end = self._ended.get(timeout=max(0.0, min(TURN, deadline - time.monotonic())))
                except Empty:
                    if time.monotonic() >= deadline:
                        return False
                    self._try_start_actors()
                    continue
                if self._hear(end):
                    self._try_start_actors()
                    return True
            return True

        def _hear(self, end: Any) -> bool:
            """Hear of an end, and of those that have come meanwhile as long as each calls its process again: what else
            may follow, for a process that is free say, Tune does between two turns. Says whether anybody heard."""
            heard, calls = 0, list[Callable[[], Any]]()
            with self.together():
                self._held = calls
                try:
                    while end is not None:
                        events, future, answer = end
                        heard += events.hear(future, answer)
                        goes_on = heard == len(calls) < MOST
                        end = self._ended.get_nowait() if goes_on and not self._ended.empty() else None
                finally:
                    self._held = None
            for call in calls:
                call()
            return heard > 0

        def _schedule_tracked_actor_task(
            self, tracked_actor_task: Any, method_name: str, *, _return_future: bool = False, **given: Any
        ) -> Any:
            actor = tracked_actor_task._tracked_actor
            schedule = super()._schedule_tracked_actor_task

            def call() -> Any:
                calls, under_way = self._tracked_actors_to_task_futures[actor], self._actor_task_events._tracked_futures
                calls.difference_update([one for one in calls if one not in under_way])
                return schedule(tracked_actor_task, method_name, _return_future=_return_future, **given)

            if self._held is None or _return_future:
                return call()
            self._held.append(lambda: self.is_actor_started(actor) and call())
            return tracked_actor_task

    return Actors


def lighten(together: Callable[[], AbstractContextManager[None]]) -> None:
    """Have the Tune of this process look for no snapshots to write, which nobody reads, and hand the scheduler, which
    is this package's, its controller as it is, not within two objects that check each access.

    Args:
        together: gives the block in which the reports of one turn are heard.
    """
    from ray.tune.execution.tune_controller import TuneController

    told_of_ends().together = staticmethod(together)

    controller_class: Any = TuneController
    controller_class.checkpoint = lambda controller, force=False, wait=False: None
    controller_class._wrapped = lambda controller: controller
