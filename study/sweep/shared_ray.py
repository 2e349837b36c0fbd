"""One Ray for several studies, one after the other: its start takes longer than a small study's trials."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

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
    ) -> AbstractContextManager[OwnRay | None]: ...


class SharedRay:
    """A Ray that the first study starts or joins, and that stays until the block is left.

    Each study has to take the same resources per trial: the processes that are started at once are told their threads
    by the first.
    """

    def __init__(self) -> None:
        self._open = ExitStack()
        self._ray: OwnRay | None = None
        self._began = False

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
    ) -> Iterator[OwnRay | None]:
        """The Ray of all; the arguments are those of `ray_session`, of which later studies' change nothing."""
        if not self._began:
            self._ray = self._open.enter_context(ray_session(address, home, processes, tell, stopping))
            self._began = True
        yield self._ray
