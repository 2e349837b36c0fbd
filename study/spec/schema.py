"""The sections of a study file whose keys do not depend on data set, network or method."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, SkipValidation

from study.knobs import MAX_INTEGER, Scalar, Section, Value
from study.metrics import Direction
from study.metrics.selection_rules import SELECTION_RULES
from study.spec.constraints import MetricConstraint
from study.spec.domain import Domain
from study.spec.section_models import StrictModel

SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(value: Value) -> Value:
    """Convert a duration such as `90m` or `1h30m` to seconds; return anything else as it is."""
    if isinstance(value, str) and re.fullmatch(r"(\d+(\.\d+)?[smhd])+", value):
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", value)
        return sum(float(number) * SECONDS_PER_UNIT[unit] for number, unit in parts)
    return float(value) if type(value) is int and abs(value) <= MAX_INTEGER else value


def refuse_word_for_configurations(value: Value) -> Value:
    """Refuse a word in place of a list of configurations; where `papers` is allowed, it was replaced before."""
    if isinstance(value, str):
        raise ValueError("allowed is a list of configurations, as [{method.alpha: 0.1}], or papers")
    return value


class TrialResources(StrictModel):
    """Resources of one trial; it trains on one card.

    Attributes:
        cpu: CPU cores.
        gpu: a GPU, or a share of one.
        accelerator: the kind of GPU, as Ray calls it (`H100`, `A100`, `T4`, `GeForce-RTX-5090`); null: any.
        hang: time without a report (`15m`, or seconds) after which a trial is ended and runs again; null: 10 times the
            usual epoch on such a device, at least a minute, and 10 times that at start and end.
    """

    cpu: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1
    gpu: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    accelerator: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")] | None = None
    hang: Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(parse_duration)] | None = None

    @property
    def device(self) -> str:
        """Kind of device that trials train on, as PyTorch calls it."""
        return "cuda" if self.gpu > 0 else "cpu"


PositiveInteger = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
SeedValue = Annotated[int, Field(ge=0, lt=2**32)]
if TYPE_CHECKING:
    RuleName = str
    SectionName = str
else:
    RuleName = Literal[tuple(rule.name for rule in SELECTION_RULES)]
    SectionName = Literal["data", "model", "method"]
"""Name of a selection rule of `study.metrics.selection_rules`; of a section that can have alternatives."""
SamplerName = Literal["gp", "grid", "qmc", "random", "tpe"]
StoppingName = Literal["asha", "none"]
UncheckedParameters = dict[str, SkipValidation[Scalar]]
"""Parameters whose values are checked against their keys, see `study.spec.search_checks.check_given_configurations`."""


class EarlyStoppingOptions(StrictModel):
    """The rule by which searched trials go on or end early.

    Attributes:
        name: the rule: with `asha` at each rung only the best 1/`reduction` of all that have come so far goes on; with
            several metrics no trial ends early.
        grace: the first epoch after which trials are compared; null: half of the epochs, as earlier ones mislead on
            biased data.
        reduction: each rung comes after this many times as many epochs as the one before, and one in so many trials
            goes on.
    """

    name: StoppingName = "none"
    grace: PositiveInteger | None = None
    reduction: Annotated[int, Field(ge=2, le=MAX_INTEGER)] = 3


def _check_constraint_text(text: str) -> str:
    MetricConstraint.from_text(text)
    return text


def _expand_early_stopping_name(value: Value) -> Value:
    """Return a rule with its defaults where its name alone is given."""
    return {"name": value} if isinstance(value, str) else value


class ConfirmOptions(StrictModel):
    """The configurations that run again on fresh seeds after the search, besides the baseline.

    Attributes:
        top: how many of the best configurations; 0: nothing runs again but what `rules` asks for.
        seeds: number of fresh seeds, at least 2; with `data.folds` how often each fold runs, each time on another seed;
            by default once.
        folds: `all`: on every fold of `data.folds`; a configuration's value is the metric of all samples together.
            null: `all` where the data have folds.
        front: with several metrics the whole front of the search runs again, even where `top` is smaller, but at most
            this many configurations: of a larger front those that lie farthest apart. null: 10.
        rules: also run what each selection rule, or each of these, would have picked; this reads the test split and
            does not change the choice.
    """

    top: Annotated[int, Field(ge=0, le=MAX_INTEGER)] = 0
    seeds: Annotated[int, Field(ge=1, le=MAX_INTEGER)] = 3
    folds: Literal["all"] | None = None
    front: Annotated[int, Field(ge=0, le=MAX_INTEGER)] | None = None
    rules: bool | Annotated[list[RuleName], Field(min_length=1)] = False


DEFAULT_CONFIRM_FRONT = 10
"""`ConfirmOptions.front` of a study file with several metrics that does not give it."""


class SearchOptions(StrictModel):
    """The search: its space, sampler, budget and metric.

    Attributes:
        space: dotted keys, each with a range, choices, or the word `paper`.
        alternatives: sections under labels of your own, which `data.name`, `model.name` or `method.name` can take as
            values.
        baseline: the configuration that runs first and in full, and with which the result is compared.
        enqueue: configurations to try before the sampler's own; `papers`: those of the papers.
        margin: an incumbent is chosen unless another configuration is ahead by more than this many standard errors of
            their difference; 0: the best is chosen. Incumbents are the configurations of `enqueue`, else the baseline;
            where some say `incumbent: true`, only those.
        incumbents: the configurations of `baseline` and `enqueue` that say `incumbent: true`.
        references: models that need no search, of scikit-learn and fairlearn: true, or `auto`: those that suit the
            data; or a list of names. A configuration is chosen only if it is better than the best of them, by more than
            `margin`.
        sampler: what draws configurations.
        seed: the sampler's seed; a trial's is `train.seed`.
        trials: number of configurations, baseline and enqueued ones among them; null: every cell of a grid, else 100.
            Trials on fresh seeds come on top.
        time: the search ends after this time (`90m`, `2h`, or seconds), resumed parts included.
        gpu_hours: the search ends after so many GPU hours.
        replicates: number of seeds, from `train.seed` on, or a list of seeds; a configuration's value is their mean.
        folds: with `data.folds`, the folds on which a configuration of the search runs: `one`, another for each
            configuration in turn; `each`, all of them, and their mean is its value. null: `one` where the data have
            folds.
        concurrency: trials at once; null: as many as resources allow.
        metric: the metric to search by, of the validation split, or a list of them: of their front the best in the
            first is chosen.
        direction: whether larger or smaller values are better, for several metrics a list; null: as known for the
            metric. A function's own metric needs it.
        constraints: limits on other metrics, each as `val/equalized_odds <= 0.05`.
        epoch: the epoch that gives a trial's value: its last, or its best by the first metric and the constraints.
        epoch_window: with `epoch: best`, an epoch counts as the mean of so many epochs up to it.
        retries: how often a trial that was cut off runs again.
    """

    space: dict[str, Domain] = Field(default_factory=dict)
    alternatives: dict[SectionName, dict[str, dict[str, JsonValue]]] = Field(default_factory=dict)
    baseline: UncheckedParameters | None = None
    enqueue: Annotated[list[UncheckedParameters], BeforeValidator(refuse_word_for_configurations)] = Field(
        default_factory=list
    )
    margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    incumbents: list[UncheckedParameters] = Field(default_factory=list)
    references: bool | Literal["auto"] | list[str] = False
    sampler: SamplerName = "tpe"
    seed: SeedValue = 0
    trials: PositiveInteger | None = None
    time: Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(parse_duration)] | None = None
    gpu_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    replicates: Annotated[int, Field(ge=1, le=1000)] | Annotated[list[SeedValue], Field(min_length=1)] = 1
    folds: Literal["one", "each"] | None = None
    concurrency: PositiveInteger | None = None
    metric: str | Annotated[list[str], Field(min_length=1)] = "val/accuracy"
    direction: Direction | Annotated[list[Direction], Field(min_length=1)] | None = None
    constraints: list[Annotated[str, AfterValidator(_check_constraint_text)]] = Field(default_factory=list)
    epoch: Literal["last", "best"] = "last"
    epoch_window: PositiveInteger = 3
    early_stopping: Annotated[
        EarlyStoppingOptions,
        BeforeValidator(_expand_early_stopping_name, json_schema_input_type=StoppingName | EarlyStoppingOptions),
    ] = EarlyStoppingOptions()
    confirm: ConfirmOptions = ConfirmOptions()
    retries: Annotated[int, Field(ge=0, le=MAX_INTEGER)] = 2

    @property
    def directions(self) -> dict[str, Direction]:
        """Given directions by metric, without its split."""
        given = [] if self.direction is None else self.direction
        names = [self.metric] if isinstance(self.metric, str) else self.metric
        each = [given] * len(names) if isinstance(given, str) else given
        return {name.split("/")[-1]: way for name, way in zip(names, each, strict=False)}


OBJECTIVE_KEYS = {"metric", "direction", "constraints", "epoch", "epoch_window"}
"""Keys of `search` that say what a trial is worth: an exported configuration keeps them."""


class ExportOrigin(TypedDict, total=False):
    """Where an exported configuration comes from: its study, how that chose it, what it found, on which code.

    `changed` are overrides since then; `digest` is left out where there are some. `gain` and `confirmed` are documents
    of differences and spreads by metric, `code` is the environment of the study's last session. `labels` are those of
    `search.alternatives` that the study calls the configuration's sections by, by their key. `told` are the
    sentences of the study's report on its result: what it gained, at what price, and what needs no search beside it.
    """

    format: int
    study: str
    study_id: str
    study_hash: str
    trial: int
    reference: str
    baseline: bool
    mlflow_run: str | None
    trials: int
    chosen_by: str
    epoch: float | None
    metrics: Mapping[str, float | None]
    confirmed: Section
    gain: Section
    labels: Mapping[str, str]
    told: list[str]
    test_readings: int
    unused_seed: int
    code: Section
    changed: list[str]
    digest: str


class StudyFileLayout(StrictModel):
    """The outline of a study file."""

    name: str
    data: dict[str, JsonValue]
    model: dict[str, JsonValue]
    method: dict[str, JsonValue]
    train: dict[str, JsonValue] = Field(default_factory=dict)
    search: SearchOptions = SearchOptions()
    resources: TrialResources = TrialResources()
    final_seeds: Annotated[list[SeedValue], Field(min_length=1)] | None = None
    origin: dict[str, JsonValue] | None = None

    @property
    def sections(self) -> dict[str, Section]:
        """The sections that trials are made of."""
        return {"data": self.data, "model": self.model, "method": self.method, "train": self.train}
