"""What a worker is told of a job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from study.knobs import Value


@dataclass(frozen=True, repr=False)
class JobPayload:
    """A job, as a worker is told it.

    Not a dictionary: Tune would flatten and copy it several times for each trial and report, and write it into messages
    that nobody reads. It is never changed, so that its deep copy is itself.

    Attributes:
        kind: `train` a trial; `test`: load a trained one and read the test split; `release` the process.
        trial: its number.
        n_earlier_starts: how often it was begun before.
        n_reported_epochs: number of epochs in the ledger.
        sections_json: its complete sections, as JSON.
        device: `cpu` or `cuda`, as the study asks.
        gpu_share: its share of a GPU.
        gets_gpu_alone: whether it gets a GPU to itself, as it ran out of memory beside others.
        has_whole_gpu: whether no other trial has a share of its GPU.
        checkpoint_file: file of the state to go on from and to write.
        model_file: file of the weights to write or to read; None: neither.
        objective_json: the study's objective as JSON, where it chooses the epoch whose weights are taken; None: the
            last.
        function: where the user's training function is found; None: there is none.
        required_metrics: metrics that the function must yield.
        in_fresh_process: whether the function runs in a process of its own.
        output_file: the file that gets what it prints there.
        mlflow_folder: the folder in which MLflow keeps the runs that the function logs.
        driver_folder: the driver's working folder, which Ray puts first in the module path; None: it was removed.
        sends_fold_predictions: whether the predictions for the samples of its fold are sent.
        saves_log_probabilities: whether what its network says of each sample is kept beside the weights.
        fold: on which it is validated, see `study.data.folds.select_fold`.
    """

    kind: Literal["train", "test", "release"]
    trial: int
    n_earlier_starts: int
    n_reported_epochs: int
    sections_json: str
    device: str
    gpu_share: float
    gets_gpu_alone: bool
    has_whole_gpu: bool
    checkpoint_file: Path
    model_file: Path | None
    objective_json: str | None
    function: str | None
    required_metrics: Sequence[str]
    in_fresh_process: bool = False
    output_file: Path | None = None
    mlflow_folder: Path | None = None
    fold: int | None = None
    sends_fold_predictions: bool = False
    saves_log_probabilities: bool = False
    driver_folder: str | None = None

    def __deepcopy__(self, memo: dict[int, Value]) -> "JobPayload":
        return self

    def __repr__(self) -> str:
        return f"JobPayload(trial {self.trial})"


@dataclass(frozen=True)
class StartReport:
    """A trial goes on after its last epoch that is done, on a device.

    Attributes:
        checkpoint_problem: why its checkpoint is of no use; None: it is of use, or there is none.
    """

    last_done_epoch: int
    checkpoint_problem: str | None
    device: Mapping[str, str]


@dataclass(frozen=True)
class MetricsReport:
    """Metrics of an epoch; with None for the epoch, of the test split."""

    metrics: Mapping[str, float]
    epoch: int | None = None


@dataclass(frozen=True)
class TextReport:
    """A text that a trial sends besides metrics.

    Attributes:
        kind: `predicted`: the predictions for the samples of its fold, packed, see
            `study.sweep.joined_folds.FoldPredictions`; `diverged`: it ends here, as its loss or metric is no number;
            `untested`: it ends here, as its function yielded no metrics of the test split.
    """

    kind: Literal["predicted", "diverged", "untested"]
    text: str


JobReport = StartReport | MetricsReport | TextReport
"""What happens in a job."""

ReportListener = Callable[[JobReport], None]


class TuneConfig(TypedDict):
    """What is read of a configuration of Tune's, which has a trial's parameters, too, under their keys.

    Attributes:
        place: what Ray sets aside for the trial, as JSON, see `study.sweep.nodes.TrialNodes.trial_placement`.
    """

    job: JobPayload
    place: str
