"""One Ray for several studies, one after the other: its start takes longer than a small study's trials."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from study.sweep.joined_ray import JoinedRay
from study.sweep.own_ray import OwnRay
from study.sweep.processes import Processes
from study.sweep.ray_session import ray_session


class Session(Protocol):
    """Gives a Ray to a driver, see `study.sweep.ray_session.ray_session`."""

    def __call__(
        self,
        address: str | None,
        home: Path | None,
        processes: Processes | None,
        tell: Callable[[str], None],
        stopping: Callable[[], bool],
    ) -> AbstractContextManager[OwnRay | JoinedRay]: ...


class SharedRay:
    """A Ray of its own that the first study starts, and that stays until the block is left. On a cluster each study
    joins and leaves by itself: there is nothing to start.

    Each study has to take the same resources per trial: the processes that are started at once are told their threads
    by the first.
    """

    def __init__(self) -> None:
        self._open = ExitStack()
        self._ray: OwnRay | JoinedRay | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @contextmanager
    def __call__(
        self,
        address: str | None,
        home: Path | None,
        processes: Processes | None,
        tell: Callable[[str], None],
        stopping: Callable[[], bool],
    ) -> Iterator[OwnRay | JoinedRay]:
        """The Ray of all; the arguments are those of `ray_session`, of which later studies' change nothing."""
        if address is not None:
            with ray_session(address, home, processes, tell, stopping) as joined:
                yield joined
            return
        if self._ray is None:
            self._ray = self._open.enter_context(ray_session(address, home, processes, tell, stopping))
        try:
            yield self._ray
        finally:
            if self._ray is not None and not self._ray.ended():
                free_everything()


def free_everything() -> None:
    """End the processes of trials that a study leaves behind, and give back what they took: Tune would wait for each to
    end by itself, so it is not asked to."""
    from ray import PlacementGroupID
    from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group

    for group, about in placement_group_table().items():
        if about["state"] != "REMOVED":
            remove_placement_group(PlacementGroup(PlacementGroupID.from_hex(group)))
