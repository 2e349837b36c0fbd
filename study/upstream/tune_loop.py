"""The loop of Ray Tune's controller, as far as it is made lighter here.

Like `ray_internals.py` it touches what Ray does not promise to keep; `tests/upstream/test_tune_loop.py` tries each
touch against the installed Ray.

By itself Tune hands all calls that are under way to Ray for each report, to be told of one that has ended: with 2,000
trials at once that took 5 ms of each report. Here Ray tells of each call once, when it has ended.
"""

import time
from collections.abc import Callable
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

TURN = 0.1
"""Seconds between two looks for resources that have come free for processes to be."""


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
        """Handles one end at a time, in the order in which they come."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._ended: SimpleQueue[Any] = SimpleQueue()
            self._actor_state_events, self._actor_task_events = Events(self._ended), Events(self._ended)

        def next(self, timeout: float | None = None) -> bool:
            killed = self._try_kill_actor()
            self._try_start_actors()
            deadline = float("inf") if timeout is None else time.monotonic() + timeout
            while not killed:
                try:
                    events, future, answer = self._ended.get(timeout=max(0.0, min(TURN, deadline - time.monotonic())))
                except Empty:
                    if time.monotonic() >= deadline:
                        return False
                    self._try_start_actors()
                    continue
                if events.hear(future, answer):
                    self._try_start_actors()
                    return True
            return True

    return Actors


def lighten() -> None:
    """Have the Tune of this process look for no snapshots to write, which nobody reads, and hand the scheduler, which
    is this package's, its controller as it is, not within two objects that check each access."""
    from ray.tune.execution.tune_controller import TuneController

    controller_class: Any = TuneController
    controller_class.checkpoint = lambda controller, force=False, wait=False: None
    controller_class._wrapped = lambda controller: controller
