"""Everything that a trial's result depends on, the data and the library versions aside."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from study.knobs import Range

SECTIONS = ("data", "model", "method", "train")


@dataclass(frozen=True)
class TrainOptions:
    """The `train` section of a study file.

    Attributes:
        epochs: passes over the training split; batch_size: samples per step, the last partial batch kept.
        optimizer: adam, sgd or lars (both with `momentum`), of the encoder; `weight_decay` is its L2 penalty.
        learning_rate: its largest value; `schedule` says what becomes of it, epoch by epoch: `constant`; `steps`:
            multiplied by `lr_decay` after each of `lr_milestones` (shares of the epochs; none: constant); `cosine`:
            down to `lr_floor`, a share of it, which is reached at the end of the last epoch.
        warmup_epochs: the rate is never above a line that rises to `learning_rate` in so many epochs.
        clip_norm: a longer gradient (2-norm over all parameters) is scaled down to this length; None: never.
        probe_learning_rate: of the linear probe, trained beside the encoder by Adam on detached features.
        augmentation: how views are made, by name, see `study.training.augment`; `none`: samples as they are.
        crop_scale: least share of the area that a random crop keeps; None: that of the augmentation's protocol.
        crop_size: side in pixels of the views of an augmentation that crops; None: that of the data set's images.
        jitter: the strength of the protocol's colour jitter is multiplied by it; 0: no jitter.
        corruption: probability of replacing a value of a table's row, with `corrupt_columns`.
        noise: standard deviation of the noise on a table's standardised columns, with `noise`.
        evaluation_size: side in pixels that images are resized to when they are evaluated; None: their own.
        drop_last: leave out a last batch that is not full (one of a single sample is always left out).
        precision: of the networks; losses and metrics are computed in float32 at least.
        compile: by torch.compile; the first steps take longer.
        final: what else is measured in the last epoch and on the test split: classifiers of the features (`knn`,
            `lbfgs`: logistic regression, `mlp`), `ridge`: how well the continuous attribute can be read off them,
            `representation`: similarities within and between groups, alignment, uniformity.
        keep_epochs: the weights at the end of these epochs are kept, too, of confirm and final trials, for figures of
            what was learned on the way.
        report_test: give the test metrics, too, in each epoch: to show what a paper printed that chose its epoch on the
            test split. Nothing is ever chosen by them.
        data_share: share of the training samples that is trained on, of each (class, bias) cell as near to it as one
            sample, the same ones for every seed: a smaller budget.
        with_val: train on the validation split, too, and report nothing of it: for a final training alone.
        seed: of initialisation and batch order.
        threads: CPU threads of the trial; results are bit for bit the same only for the same number.
    """

    epochs: Annotated[int, Range(low=1)] = 80
    batch_size: Annotated[int, Range(low=2)] = 256
    optimizer: Literal["adam", "sgd", "lars"] = "adam"
    learning_rate: Annotated[float, Range(above=0.0)] = 0.001
    momentum: Annotated[float, Range(low=0.0, below=1.0)] = 0.9
    weight_decay: Annotated[float, Range(low=0.0)] = 0.0
    schedule: Literal["constant", "steps", "cosine"] = "steps"
    lr_milestones: tuple[Annotated[float, Range(above=0.0, below=1.0)], ...] = ()
    lr_decay: Annotated[float, Range(above=0.0, high=1.0)] = 0.1
    lr_floor: Annotated[float, Range(low=0.0, high=1.0)] = 0.0
    warmup_epochs: Annotated[int, Range(low=0)] = 0
    clip_norm: Annotated[float, Range(above=0.0)] | None = None
    probe_learning_rate: Annotated[float, Range(above=0.0)] = 0.01
    augmentation: str = "none"
    crop_scale: Annotated[float, Range(above=0.0, high=1.0)] | None = None
    crop_size: Annotated[int, Range(low=1)] | None = None
    jitter: Annotated[float, Range(low=0.0, high=2.5)] = 1.0
    corruption: Annotated[float, Range(low=0.0, high=1.0)] = 0.3
    noise: Annotated[float, Range(low=0.0)] = 0.1
    evaluation_size: Annotated[int, Range(low=1)] | None = None
    drop_last: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    final: tuple[Literal["knn", "lbfgs", "mlp", "representation", "ridge"], ...] = ()
    keep_epochs: tuple[Annotated[int, Range(low=1)], ...] = ()
    report_test: bool = False
    data_share: Annotated[float, Range(above=0.0, high=1.0)] = 1.0
    with_val: bool = False
    seed: Annotated[int, Range(low=0, high=2**32 - 1)] = 0
    threads: Annotated[int, Range(low=1, high=1024)] = 1


@dataclass(frozen=True)
class TrialConfig:
    """One point of a study: complete, checked sections of the study file."""

    data: Mapping[str, Any]
    model: Mapping[str, Any]
    method: Mapping[str, Any]
    train: TrainOptions

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "TrialConfig":
        """From nested sections, as a trial of a study or `to_document` has them."""
        given = document["train"].items()
        train: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given}
        return cls(dict(document["data"]), dict(document["model"]), dict(document["method"]), TrainOptions(**train))

    def to_document(self) -> dict[str, Any]:
        """As nested dictionaries of plain values."""
        train = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self.train).items()}
        return {"data": dict(self.data), "model": dict(self.model), "method": dict(self.method), "train": train}
