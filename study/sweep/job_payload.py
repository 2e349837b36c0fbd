"""The description of a job that a worker gets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, repr=False)
class JobPayload:
    """One thing for a worker to do, as the worker is told.

    No dictionary: those Tune flattens and copies several times for each trial and report, and writes them into messages
    that nobody reads. Nothing of it is changed, so that a copy is itself.

    Attributes:
        kind: train a trial, or load a trained one and read the test split.
        trial: its number.
        run: how often it was begun before.
        heard: epochs that the study knows of.
        document: its complete sections, as JSON.
        device: `cpu` or `cuda`, as the study asks.
        gpu: its share of a GPU.
        alone: it has one to itself, as it ran out of memory beside others.
        whole: no other trial has a share of its GPU.
        checkpoint: the state to go on from and to keep.
        model: the weights to write or to read; None: neither.
        kept: the weights to write on the way, by epoch.
        end: the state behind the last epoch to write; None: it is not kept.
        goal: the study's objective as JSON, where it chooses the epoch whose weights are taken; None: the last.
        function: where the user's training function is found; None: there is none.
        needed: metrics that it must yield.
        fresh: it runs in a process of its own.
        output: the file that gets what it prints there.
        own_runs: the folder in which MLflow keeps the runs that it logs.
        is_judged: what its network says of the samples of its fold is told.
        fold: on which it is validated, see `study.data.folds.of_fold`.
    """

    kind: Literal["train", "test"]
    trial: int
    run: int
    heard: int
    document: str
    device: str
    gpu: float
    alone: bool
    whole: bool
    checkpoint: Path
    model: Path | None
    kept: Mapping[int, Path]
    end: Path | None
    goal: str | None
    function: str | None
    needed: Sequence[str]
    fresh: bool = False
    output: Path | None = None
    own_runs: Path | None = None
    fold: int | None = None
    is_judged: bool = False

    def __deepcopy__(self, memo: Any) -> "JobPayload":
        return self

    def __repr__(self) -> str:
        return f"JobPayload(trial {self.trial})"
