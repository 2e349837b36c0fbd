"""Save the state of a trial between two epochs to a file, and restore it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypedDict
from zipfile import ZipFile

import torch
from torch import Tensor, nn

from study.errors import UserError
from study.files import replace_atomically
from study.knobs import Section


class ChoiceState(TypedDict):
    """State of an `EpochChooser`, as `BestEpochTracker`: of a score its parts, of an epoch its metrics."""

    heard: int
    epoch: int
    score: list[list[float]] | None
    recent: list[dict[str, float | None]]


class EpochChooser(Protocol):
    """Rule that chooses an epoch of a trial; its state is plain values."""

    def update(self, report: Mapping[str, float], /) -> bool:
        """Take in the next epoch's metrics; return whether this epoch is now the chosen one."""

    def state_dict(self) -> ChoiceState:
        """Return what `load_state_dict` restores."""

    def load_state_dict(self, state: ChoiceState, /) -> None:
        """Restore a state."""


class ChosenWeightsState(TypedDict):
    """State of `ChosenWeights`."""

    choice: ChoiceState
    weights: dict[str, Tensor]


class ChosenWeights:
    """A copy of the networks at the end of the epoch chosen so far.

    It is a part of a trial's state and lies in its checkpoint, since epochs after the checkpoint are trained, and
    chosen among, again. A separate file of weights could be of an epoch that then comes out differently.

    Args:
        networks: as they are trained.
        choice: is given each epoch's metrics, see `update`.
    """

    def __init__(self, networks: nn.Module, choice: EpochChooser) -> None:
        self._networks, self._choice = networks, choice
        self._weights: dict[str, Tensor] = {}

    def update(self, report: Mapping[str, float]) -> None:
        """Take in an epoch's metrics, and copy the networks if this epoch is now the chosen one."""
        if self._choice.update(report):
            self._weights = {name: tensor.detach().clone() for name, tensor in self._networks.state_dict().items()}

    def load_chosen(self) -> None:
        """Load the weights of the chosen epoch into the networks."""
        self._networks.load_state_dict(self._weights)

    def state_dict(self) -> ChosenWeightsState:
        return {"choice": self._choice.state_dict(), "weights": self._weights}

    def load_state_dict(self, state: ChosenWeightsState) -> None:
        self._choice.load_state_dict(state["choice"])
        self._weights = dict(state["weights"])


MIN_PAUSE_PER_WRITE_TIME = 20.0
"""After a write there is none for so many times its duration: checkpoints cost at most 5% of a trial."""

ASSUMED_FIRST_WRITE_S = 0.05
"""Seconds that a write is assumed to take before the first one."""


class UnusableCheckpointError(UserError):
    """A file that a trial cannot resume from: it is damaged, or of another configuration, other data or code."""


class HasStateDict(Protocol):
    """A part of a trial whose state can be saved: a module, an optimizer, `ChosenWeights` ..."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any, /) -> Any: ...


class CheckpointContent(TypedDict):
    """What a file holds: states by the names of their parts, and states of random generators by theirs."""

    epoch: int
    made_from: Section
    states: dict[str, Any]
    random: dict[str, Tensor]


class TrialCheckpointFile:
    """The file of one running trial.

    Args:
        path: it need not exist, nor its folder.
        made_from: plain values that say which trial it is.
        states: objects that have a `state_dict`, by name.
        generators: of random numbers; PyTorch's global one of the CPU is kept too.
        pause: after a write there is none for so many times its duration; 0: each `save_if_due` writes.
    """

    def __init__(
        self,
        path: Path,
        made_from: Section,
        states: Mapping[str, HasStateDict],
        generators: Mapping[str, torch.Generator],
        pause: float = 0.0,
    ) -> None:
        self._path, self._made_from, self._pause = path, made_from, pause
        self._states, self._generators = states, generators
        self._due = time.perf_counter() + pause * ASSUMED_FIRST_WRITE_S

    def restore_state(self) -> int:
        """Restore the state that was written; return the epoch after which it was written, 0 where there is no file.

        Raises:
            UnusableCheckpointError: the state cannot be restored.
        """
        content = read_checkpoint(self._path, self._made_from)
        if content is None:
            return 0
        try:
            for name, stateful in self._states.items():
                stateful.load_state_dict(content["states"][name])
            for name, generator in self._generators.items():
                generator.set_state(content["random"][name])
            torch.set_rng_state(content["random"]["torch"])
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            # as another version wrote it
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:100]
            raise UnusableCheckpointError(
                f"{self._path}: is not a state that this trial can take ({reason}); remove it"
            ) from None
        return content["epoch"]

    def save_if_due(self, epoch: int) -> None:
        """Write the state after an epoch, if it is time, in one step: a reader sees the whole file or the one before.

        Raises:
            OSError: it cannot be written; nothing is left behind, the file before stays.
        """
        began = time.perf_counter()
        if began < self._due:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = _copy_tensor_parts({name: stateful.state_dict() for name, stateful in self._states.items()})
        random = {name: generator.get_state() for name, generator in self._generators.items()} | {
            "torch": torch.get_rng_state()
        }
        kept: CheckpointContent = {"epoch": epoch, "made_from": self._made_from, "states": content, "random": random}
        with replace_atomically(self._path) as part, open(part, "wb") as file:
            torch.save(kept, file)  # to a file that is open: by itself it hides what the file system says
        ended = time.perf_counter()
        self._due = ended + self._pause * (ended - began)


def _copy_tensor_parts(content: Any) -> Any:
    """Copy each tensor that is part of a larger storage, since a file would hold all of that storage."""
    if isinstance(content, torch.Tensor):
        in_more = content.untyped_storage().nbytes() > content.numel() * content.element_size()
        return content.clone() if in_more else content
    if isinstance(content, dict):
        return {name: _copy_tensor_parts(value) for name, value in content.items()}
    return [_copy_tensor_parts(value) for value in content] if type(content) is list else content


def read_checkpoint(path: Path, made_from: Section) -> CheckpointContent | None:
    """Read what `TrialCheckpointFile` wrote; None where there is no file.

    Raises:
        UnusableCheckpointError: the file is damaged, or another trial's.
    """
    if not path.exists():
        return None
    try:
        with ZipFile(path) as archive:
            if damaged := archive.testzip():  # torch.load does not look at checksums
                raise ValueError(f"checksum of {damaged}")
        content: CheckpointContent = torch.load(path, weights_only=True, map_location="cpu")
        written_for, epoch = content["made_from"], content["epoch"]
        if (
            type(epoch) is not int
            or epoch < 1
            or not isinstance(content["states"], dict)
            or not isinstance(content["random"], dict)
        ):
            raise ValueError("not of the form that is written")
    except Exception as error:  # whatever PyTorch makes of a damaged file
        raise UnusableCheckpointError(f"{path}: is damaged ({' '.join(str(error).split())[:100]}); remove it") from None
    if written_for != made_from:
        raise UnusableCheckpointError(
            f"{path}: is the state of a trial of another configuration, other data or code; remove it"
        )
    return content
