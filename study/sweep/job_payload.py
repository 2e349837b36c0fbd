"""What a worker is told of a job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from study.knobs import Value


@dataclass(frozen=True, repr=False)
class JobPayload:
    """A job, as a worker is told it.

    Not a dictionary: Tune would flatten and copy it several times for each trial and report, and write it into messages
    that nobody reads. It is never changed, so that its deep copy is itself.

    Attributes:
        kind: `train` a trial; `test`: load a trained one and read the test split; `release` the process.
        trial: its number.
        run: how often it was begun before.
        reported_epochs: number of epochs in the ledger.
        sections_json: its complete sections, as JSON.
        device: `cpu` or `cuda`, as the study asks.
        gpu: its share of a GPU.
        alone: whether it gets a GPU to itself, as it ran out of memory beside others.
        whole: whether no other trial has a share of its GPU.
        checkpoint: file of the state to go on from and to write.
        model: file of the weights to write or to read; None: neither.
        objective_json: the study's objective as JSON, where it chooses the epoch whose weights are taken; None: the
            last.
        function: where the user's training function is found; None: there is none.
        required_metrics: metrics that the function must yield.
        fresh: whether the function runs in a process of its own.
        output: the file that gets what it prints there.
        own_runs: the folder in which MLflow keeps the runs that the function logs.
        driver_folder: the driver's working folder, which Ray puts first in the module path; None: it was removed.
        is_judged: whether the predictions for the samples of its fold are sent.
        is_of_ensemble: whether what its network says of each sample is kept beside the weights.
        fold: on which it is validated, see `study.data.folds.select_fold`.
    """

    kind: Literal["train", "test", "release"]
    trial: int
    run: int
    reported_epochs: int
    sections_json: str
    device: str
    gpu: float
    alone: bool
    whole: bool
    checkpoint: Path
    model: Path | None
    objective_json: str | None
    function: str | None
    required_metrics: Sequence[str]
    fresh: bool = False
    output: Path | None = None
    own_runs: Path | None = None
    fold: int | None = None
    is_judged: bool = False
    is_of_ensemble: bool = False
    driver_folder: str | None = None

    def __deepcopy__(self, memo: dict[int, Value]) -> "JobPayload":
        return self

    def __repr__(self) -> str:
        return f"JobPayload(trial {self.trial})"


JobReport = Mapping[str, Any]
"""What happens in a job, by one of these sets of keys:

`behind`, `note`, `device`: it goes on after an epoch, on a device; the note: why a state that was kept is of no use.
`metrics`, `epoch`: of an epoch; without `epoch`: of the test split.
`predicted`: the predictions for the samples of its fold, packed: `study.sweep.joined_folds.FoldPredictions`.
`diverged`: it ends here, as its loss or metric is no number; says which.
`untested`: it ends here, as the trial's function yielded no metrics of the test split; says so.
"""

ReportListener = Callable[[JobReport], None]


class TuneConfig(TypedDict):
    """What is read of a configuration of Tune's, which has a trial's parameters, too, under their keys.

    Attributes:
        place: what Ray sets aside for the trial, as JSON, see `study.sweep.nodes.TrialNodes.trial_placement`.
    """

    job: JobPayload
    place: str
