"""Everything that a trial's result depends on, except the data and the library versions."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from typing_extensions import Doc

from study import methods
from study.knobs import Range, Section

FUNCTION_TRAIN_KEYS = ("epochs", "seed", "threads")
"""Keys of `train` that mean something to a training function of the user's own."""

TRIAL_SECTIONS = ("data", "model", "method", "train")

MAX_THREADS = 1024


@dataclass(frozen=True)
class TrainOptions:
    """The `train` section of a study file."""

    epochs: Annotated[int, Range(low=1), Doc("passes over the training split")] = 80
    batch_size: Annotated[int, Range(low=2), Doc("samples per step, the last partial batch kept")] = 256
    micro_batch: Annotated[
        Annotated[int, Range(low=4)] | None,
        Doc(
            "samples that go through the network at a time where a batch does not fit a GPU; the loss still "
            "sees the whole batch (gradient caching)"
        ),
    ] = None
    optimizer: Annotated[
        Literal["adam", "sgd", "lars"], Doc("optimizer of the encoder; sgd and lars use `momentum`")
    ] = "adam"
    learning_rate: Annotated[
        float, Range(above=0.0), Doc("largest learning rate; `schedule` says how it changes epoch by epoch")
    ] = 0.001
    momentum: Annotated[float, Range(low=0.0, below=1.0), Doc("momentum of sgd and lars")] = 0.9
    weight_decay: Annotated[float, Range(low=0.0), Doc("L2 penalty of the optimizer")] = 0.0
    schedule: Annotated[
        Literal["constant", "steps", "cosine"],
        Doc(
            "learning rate: `constant`; `steps`: times `lr_decay` after each of `lr_milestones`; `cosine`: "
            "down to `lr_floor`"
        ),
    ] = "steps"
    lr_milestones: Annotated[
        tuple[Annotated[float, Range(above=0.0, below=1.0)], ...],
        Doc("shares of the epochs after which `steps` lowers the learning rate"),
    ] = ()
    lr_decay: Annotated[
        float, Range(above=0.0, high=1.0), Doc("factor of the learning rate at each of `lr_milestones`")
    ] = 0.1
    lr_floor: Annotated[
        float,
        Range(low=0.0, high=1.0),
        Doc("share of `learning_rate` that `cosine` reaches at the end of the last epoch"),
    ] = 0.0
    warmup_epochs: Annotated[
        int,
        Range(low=0),
        Doc("the learning rate rises linearly for so many epochs, never above the schedule"),
    ] = 0
    clip_norm: Annotated[
        Annotated[float, Range(above=0.0)] | None,
        Doc("longest gradient (2-norm over all parameters); longer ones are scaled down. null: no limit"),
    ] = None
    probe: Annotated[
        Literal["online", "fitted"],
        Doc(
            "how the linear probe learns where a method has no classifier of its own: `online`: by Adam beside the "
            "encoder; `fitted`: a logistic regression of the training samples, anew after each epoch"
        ),
    ] = "online"
    probe_learning_rate: Annotated[
        float,
        Range(above=0.0),
        Doc("learning rate of the linear probe, which Adam trains beside the encoder, on detached features"),
    ] = 0.01
    augmentation: Annotated[
        str, Doc("how views are made, by name, see `study.training.augment`; `none`: samples as they are")
    ] = "none"
    crop_scale: Annotated[
        Annotated[float, Range(above=0.0, high=1.0)] | None,
        Doc("least share of the area that a random crop keeps; null: the augmentation's own"),
    ] = None
    crop_size: Annotated[
        Annotated[int, Range(low=1)] | None,
        Doc("side in pixels of a cropped view; null: that of the data set's images"),
    ] = None
    jitter: Annotated[
        float, Range(low=0.0, high=2.5), Doc("factor of the strength of the protocol's colour jitter; 0: no jitter")
    ] = 1.0
    corruption: Annotated[
        float,
        Range(low=0.0, high=1.0),
        Doc("probability of replacing a value of a table's row, with `corrupt_columns`"),
    ] = 0.3
    noise: Annotated[
        float, Range(low=0.0), Doc("standard deviation of the noise on a table's standardised columns, with `noise`")
    ] = 0.1
    evaluation_size: Annotated[
        Annotated[int, Range(low=1)] | None,
        Doc("side in pixels that images are resized to when they are evaluated; null: their own"),
    ] = None
    drop_last: Annotated[
        bool, Doc("leave out a last batch that is not full; one of a single sample is always left out")
    ] = False
    precision: Annotated[
        Literal["float32", "bfloat16"],
        Doc("precision of the networks; losses and metrics are computed in float32 at least"),
    ] = "float32"
    deterministic: Annotated[
        bool,
        Doc(
            "on a GPU, the same bits in every run on the same kind of card and the same versions, at some "
            "cost of speed. On a CPU it is always so"
        ),
    ] = False
    graph: Annotated[
        bool | None,
        Doc(
            "on a GPU, record the training step as one CUDA graph: the same results, 2 to 14 times faster "
            "for small networks. null: where that is possible"
        ),
    ] = None
    final: Annotated[
        tuple[Literal["knn", "lbfgs", "mlp", "ridge"], ...],
        Doc(
            "what else is measured in the last epoch and on test: classifiers of the features (`knn`, "
            "`lbfgs`: logistic regression, `mlp`), `ridge`: the continuous attribute read off them"
        ),
    ] = ()
    report_test: Annotated[
        bool,
        Doc("measure test in each epoch too, for papers that chose their epoch by it. Nothing is chosen by it here"),
    ] = False
    inferred_groups: Annotated[
        Literal["none", "early", "gce", "early_layers"],
        Doc(
            "finds the groups of the metrics `inferred_*` without bias labels: predictions of a network of `model` "
            "that is trained by cross entropy for a few epochs (`early`) or by generalised cross entropy (`gce`), or "
            "of a linear classifier of a frozen network's `early_layers`"
        ),
    ] = "none"
    bias_model_epochs: Annotated[
        Annotated[int, Range(low=1)] | None,
        Doc("epochs of the network of `inferred_groups`; null: its kind's own"),
    ] = None
    data_share: Annotated[
        float,
        Range(above=0.0, high=1.0),
        Doc(
            "share of the training samples that is used, for a smaller budget: the same samples for every "
            "seed, each cell of class and bias in proportion"
        ),
    ] = 1.0
    with_val: Annotated[bool, Doc("train on the validation split too: for a final training alone")] = False
    seed: Annotated[int, Range(low=0, high=2**32 - 1), Doc("seed of initialisation and batch order")] = 0
    threads: Annotated[
        int,
        Range(low=1, high=MAX_THREADS),
        Doc("CPU threads of the trial, by default `resources.cpu`; results are the same bits only for the same number"),
    ] = 1


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
