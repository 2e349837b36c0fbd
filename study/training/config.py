"""Everything that a trial's result depends on, except the data and the library versions."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from study import methods
from study.knobs import Range, Section

FUNCTION_TRAIN_KEYS = ("epochs", "seed", "threads")
"""Keys of `train` that mean something to a training function of the user's own."""

TRIAL_SECTIONS = ("data", "model", "method", "train")

MAX_THREADS = 1024

MAX_SEED = 2**32 - 1
"""Largest training seed: the largest that NumPy takes."""


@dataclass(frozen=True)
class TrainOptions:
    """The `train` section of a study file.

    Attributes:
        epochs: passes over the training split.
        batch_size: samples per step, the last partial batch kept.
        micro_batch: samples that go through the network at a time where a batch does not fit a GPU; the loss still sees
            the whole batch (gradient caching).
        optimizer: optimizer of the encoder; sgd and lars use `momentum`.
        learning_rate: largest learning rate; `schedule` says how it changes epoch by epoch.
        momentum: momentum of sgd and lars.
        weight_decay: L2 penalty of the optimizer.
        schedule: learning rate: `constant`; `steps`: times `lr_decay` after each of `lr_milestones`; `cosine`: down to
            `lr_floor`.
        lr_milestones: shares of the epochs after which `steps` lowers the learning rate.
        lr_decay: factor of the learning rate at each of `lr_milestones`.
        lr_floor: share of `learning_rate` that `cosine` reaches at the end of the last epoch.
        warmup_epochs: the learning rate rises linearly for so many epochs, never above the schedule.
        clip_norm: longest gradient (2-norm over all parameters); longer ones are scaled down. null: no limit.
        probe: how the linear probe learns where a method has no classifier of its own: `online`: by Adam beside the
            encoder; `fitted`: a logistic regression of the training samples, anew after each epoch.
        probe_learning_rate: learning rate of the linear probe, which Adam trains beside the encoder, on detached
            features.
        augmentation: how views are made, by name, see `study.training.augment`; `none`: samples as they are.
        crop_scale: least share of the area that a random crop keeps; null: the augmentation's own.
        crop_size: side in pixels of a cropped view; null: that of the data set's images.
        jitter: factor of the strength of the protocol's colour jitter; 0: no jitter.
        corruption: probability of replacing a value of a table's row, with `corrupt_columns`.
        noise: standard deviation of the noise on a table's standardised columns, with `noise`.
        evaluation_size: side in pixels that images are resized to when they are evaluated; null: their own.
        drop_last: leave out a last batch that is not full; one of a single sample is always left out.
        precision: precision of the networks; losses and metrics are computed in float32 at least.
        deterministic: on a GPU, the same bits in every run on the same kind of card and the same versions, at some cost
            of speed. On a CPU it is always so.
        graph: on a GPU, record the training step as one CUDA graph: the same results, 2 to 14 times faster for small
            networks. null: where that is possible.
        final: what else is measured in the last epoch and on test: classifiers of the features (`knn`, `lbfgs`:
            logistic regression, `mlp`), `ridge`: the continuous attribute read off them.
        report_test: measure test in each epoch too, for papers that chose their epoch by it. Nothing is chosen by it
            here.
        inferred_groups: finds the groups of the metrics `inferred_*` without bias labels: predictions of a network of
            `model` that is trained by cross entropy for a few epochs (`early`) or by generalised cross entropy (`gce`),
            or of a linear classifier of a frozen network's `early_layers`.
        bias_model_epochs: epochs of the network of `inferred_groups`; null: its kind's own.
        data_share: share of the training samples that is used, for a smaller budget: the same samples for every seed,
            each cell of class and bias in proportion.
        with_val: train on the validation split too: for a final training alone.
        seed: seed of initialisation and batch order.
        threads: CPU threads of the trial, by default `resources.cpu`; results are the same bits only for the same
            number.
    """

    epochs: Annotated[int, Range(low=1)] = 80
    batch_size: Annotated[int, Range(low=2)] = 256
    micro_batch: Annotated[int, Range(low=4)] | None = None
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
    probe: Literal["online", "fitted"] = "online"
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
    deterministic: bool = False
    graph: bool | None = None
    final: tuple[Literal["knn", "lbfgs", "mlp", "ridge"], ...] = ()
    report_test: bool = False
    inferred_groups: Literal["none", "early", "gce", "early_layers"] = "none"
    bias_model_epochs: Annotated[int, Range(low=1)] | None = None
    data_share: Annotated[float, Range(above=0.0, high=1.0)] = 1.0
    with_val: bool = False
    seed: Annotated[int, Range(low=0, high=MAX_SEED)] = 0
    threads: Annotated[int, Range(low=1, high=MAX_THREADS)] = 1


@dataclass(frozen=True)
class TrialConfig:
    """One point of a study: complete, checked sections of the study file."""

    data: Section
    model: Section
    method: Section
    train: TrainOptions

    @classmethod
    def from_document(cls, document: Mapping[str, Section]) -> "TrialConfig":
        """Build it from nested sections, as a trial of a study or `to_document` has them."""
        train = {key: tuple(value) if isinstance(value, list) else value for key, value in document["train"].items()}
        made: Callable[..., TrainOptions] = TrainOptions
        return cls(dict(document["data"]), dict(document["model"]), dict(document["method"]), made(**train))

    def to_document(self) -> dict[str, Section]:
        """Convert it to nested dictionaries of plain values."""
        train = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self.train).items()}
        return {"data": dict(self.data), "model": dict(self.model), "method": dict(self.method), "train": train}


def depends_on_epoch_count(sections: Mapping[str, Section]) -> bool:
    """Return whether what a trial does in an epoch depends on how many there are.

    If it does not, each epoch computes what it computes in a longer trial, bit for bit.

    Args:
        sections: complete, of one trial.
    """
    train, method = sections["train"], sections["method"]
    falls = train["schedule"] == "cosine" or (train["schedule"] == "steps" and bool(train["lr_milestones"]))
    return falls or methods.method_needs(method).total_epochs_key is not None
