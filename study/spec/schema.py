"""The sections of a study file whose keys do not depend on data set, network or method; which values are the same."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypedDict, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, SkipValidation, field_validator, model_validator

from study.knobs import MAX_INTEGER, Params, Scalar, Section, Value
from study.metrics import Direction
from study.metrics.selection_rules import RULES
from study.spec.objective import Constraint
from study.spec.section_checks import Strict
from study.text import shortened

Configuration = TypeVar("Configuration", bound=Params)


def among(value: Value, values: Iterable[Value]) -> bool:
    """Return whether a value is one of these; true and 1 are two values, though Python calls them equal."""
    return any(isinstance(value, bool) == isinstance(other, bool) and value == other for other in values)


def identity(params: Params) -> frozenset[tuple[str, bool, Scalar]]:
    """Return a key that is equal for the same configurations alone.

    Numbers are compared to twelve digits: 0.3 and 0.1 + 2 * 0.1 are one step of a range.
    """
    return frozenset(
        (key, isinstance(value, bool), float(f"{value:.12g}") if isinstance(value, float) else value)
        for key, value in params.items()
    )


def same(params: Params, other: Params) -> bool:
    """Return whether two configurations are the same."""
    return identity(params) == identity(other)


def distinct(configurations: Iterable[Configuration]) -> list[Configuration]:
    """Return the different ones of these configurations, each where it comes first."""
    found: dict[frozenset[tuple[str, bool, Scalar]], Configuration] = {}
    for params in configurations:
        found.setdefault(identity(params), params)
    return list(found.values())


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(value: Value) -> Value:
    """Convert a duration such as `90m` or `1h30m` to seconds; return anything else as it is."""
    if isinstance(value, str) and re.fullmatch(r"(\d+(\.\d+)?[smhd])+", value):
        return sum(float(number) * UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([smhd])", value))
    return float(value) if type(value) is int and abs(value) <= MAX_INTEGER else value


def configurations(value: Value) -> Value:
    """Refuse a word in place of a list of configurations; where `papers` is allowed, it was replaced before."""
    if isinstance(value, str):
        raise ValueError("allowed is a list of configurations, or papers")
    return value


class Resources(Strict):
    """Resources of one trial; it trains on one card.

    Attributes:
        cpu: CPU cores.
        gpu: a GPU, or a share of one.
        accelerator: the kind of GPU, as Ray calls it (`H100`, `A100`, `T4`, `GeForce-RTX-5090`); null: any.
        hang: time without a report (`15m`, or seconds) after which a trial is ended and runs again; null: 10 times the
            usual epoch on such a device, at least a minute, and 10 times that at start and end.
        keep_checkpoints: how many of the best trials, besides the baseline, keep their last state for `study extend`;
            `all`: all trials do.
    """

    cpu: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1
    gpu: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    accelerator: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")] | None = None
    hang: Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(seconds)] | None = None
    keep_checkpoints: Annotated[int, Field(ge=0, le=MAX_INTEGER)] | Literal["all"] = 5

    @property
    def device(self) -> str:
        """Kind of device that trials train on, as PyTorch calls it."""
        return "cuda" if self.gpu > 0 else "cpu"


Positive = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Number = int | Annotated[float, Field(allow_inf_nan=False)]
if TYPE_CHECKING:
    RuleName = str
    SectionName = str
else:
    RuleName = Literal[tuple(rule.name for rule in RULES)]
    SectionName = Literal["data", "model", "method"]
"""Name of a selection rule of `study.metrics.selection_rules`; of a section that can have alternatives."""
SamplerName = Literal["cmaes", "gp", "grid", "nsga2", "nsga3", "qmc", "random", "tpe"]
StoppingName = Literal["asha", "hyperband", "median", "none"]
Single = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str | None
Parameters = dict[str, SkipValidation[Scalar]]
"""Parameters whose values are checked against their keys, see `study.spec.search_checks.check_points`."""


def _single(value: Value) -> Value:
    """Return a choice as it is.

    Raises:
        ValueError: it is several values.
    """
    if isinstance(value, list | dict):
        raise ValueError(
            f"{shortened(repr(value))} given, allowed is one value: a number, a word, true, false or null. Give what "
            "is a list or a mapping a name of its own, and have what is trained look it up by that"
        )
    return value


class Domain(Strict):
    """Values that the search may give to one key: a range, or choices.

    A plain value stands for a single choice, `paper` for `range: paper`.

    Attributes:
        range: `paper`: the range that the papers' methods declare, which the other keys override.
        low: the smallest value.
        high: the largest value.
        log: draw on a logarithmic scale; low is above 0 then.
        step: distance of neighbouring values of a range, counted from `low`.
        choices: the values themselves, in the place of a range.
        when: other keys with lists of values: the key is searched only in trials where each has one of its values.
    """

    range: Literal["paper"] | None = None
    low: Number | None = None
    high: Number | None = None
    log: bool = False
    step: Annotated[Number, Field(gt=0)] | None = None
    choices: Annotated[list[Annotated[Single, BeforeValidator(_single)]], Field(min_length=1)] | None = None
    when: dict[str, Annotated[list[Single], Field(min_length=1)]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: "Value | Domain") -> "Value | Domain":
        if value == "paper":
            return {"range": "paper"}
        if isinstance(value, list):
            raise ValueError(f"{shortened(repr(value))} given: values to choose from are written as {{choices: [...]}}")
        return value if isinstance(value, dict | list | Domain) else {"choices": [value]}

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.choices is not None:
            if any((self.low is not None, self.high is not None, self.log, self.step is not None, self.range)):
                raise ValueError("give either choices, or low and high, not both")
            for place, choice in enumerate(self.choices):
                if among(choice, self.choices[:place]):
                    first = next(one for one in self.choices if among(choice, [one]))
                    equal = "" if type(first) is type(choice) else f", as {first!r} and {choice!r} are one number"
                    raise ValueError(f"a choice is repeated: {self.choices}{equal}")
            return self
        if self.range is None and (self.low is None or self.high is None):
            raise ValueError("give low and high, or choices, or the word paper")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low!r} is above high {self.high!r}")
        if self.log and self.low is not None and self.low <= 0:
            raise ValueError(f"a log range needs low above 0, low is {self.low!r}")
        if self.log and self.step is not None:
            raise ValueError("log and step exclude each other")
        return self

    def ends(self) -> list[Scalar]:
        """Return the values that must be valid for the whole domain to be: both ends, or every choice."""
        return list(self.choices) if self.choices is not None else [self.low, self.high]

    @property
    def has_real_range(self) -> bool:
        """Whether it is plainly a range of real numbers: it has no step, and an end that is no whole number."""
        return self.step is None and any(end is not None and end % 1 != 0 for end in (self.low, self.high))

    def applies(self, params: Params) -> bool:
        """Return whether `when` holds for a trial with these parameters."""
        return all(key in params and among(params[key], values) for key, values in self.when.items())

    def contains(self, value: Scalar) -> bool:
        """Return whether the search could give this value."""
        if self.choices is not None:
            return among(value, self.choices)
        if self.low is None or self.high is None or not isinstance(value, int | float):
            return False
        if not self.low <= value <= self.high:
            return False
        return self.step is None or abs((value - self.low) / self.step % 1.0 - 0.5) > 0.5 - 1e-8


REMOVED = {
    "mfgp": "tpe, which finds as much on the recorded curves, or gp",
    "promotion": "asha, which prunes where that paused",
    "freeze_thaw": "asha, which prunes where that paused, or fewer trials and none",
}
"""Values of earlier versions, and what to write in place of each."""


def _not_removed(value: Value) -> Value:
    if isinstance(value, str) and value in REMOVED:
        raise ValueError(f"which was removed. Write {REMOVED[value]}")
    return value


class EarlyStopping(Strict):
    """The rule by which searched trials go on or end early.

    Attributes:
        name: the rule.
        grace: the first epoch after which trials are compared; null: half of the epochs, as earlier ones mislead on
            biased data; 1 of hyperband.
        reduction: each rung of asha comes after this many times as many epochs as the one before, and one in so many
            trials goes on.
        brackets: asha's ladders of rungs, among which trials are shared evenly; each begins `reduction` times later
            than the one before.
    """

    name: StoppingName = "none"
    grace: Positive | None = None
    reduction: Annotated[int, Field(ge=2, le=MAX_INTEGER)] = 3
    brackets: Positive = 1

    _name_is_there = field_validator("name", mode="before")(_not_removed)


def _limit(text: str) -> str:
    Constraint.parse(text)
    return text


def _by_name(value: Value) -> Value:
    """Return a rule with its defaults where its name alone is given."""
    return {"name": value} if isinstance(value, str) else value


class Confirm(Strict):
    """The configurations that run again on fresh seeds after the search, besides the baseline.

    Attributes:
        top: how many of the best configurations; 0: nothing runs again.
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


ChoiceName = Literal["first", "knee", "limit"]

FRONT = 10
"""`Confirm.front` of a study file with several metrics that does not give it. Studies from before that key have none:
`top` alone runs again there."""


class Choose(Strict):
    """The rule by which one configuration of the front is chosen, where there are several metrics.

    That configuration is what best.yaml holds, and what is compared with the baseline. The name alone stands for a rule
    without limits.

    Attributes:
        name: `first`: the best in the first metric. `knee`: the nearest to the best value of every metric, each scaled
            from worst to best. `limit`: the best in the first metric of those that keep `limits`.
        limits: for `limit`, on metrics of the study, each as `val/equalized_odds <= 0.1`; without any those of
            `search.constraints`, which hold under every rule.
    """

    name: ChoiceName = "first"
    limits: list[Annotated[str, AfterValidator(_limit)]] = Field(default_factory=list)


class Plateau(Strict):
    """The search ends where it makes no progress.

    Attributes:
        trials: the search ends after this many trials in a row of which none is better than the best before them.
        by: by how much a trial has to be better.
    """

    trials: Positive
    by: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class Stop(Strict):
    """The search ends when as many trials again would gain little, with the stated confidence.

    Attributes:
        gain: a gain that counts as little, in the metric's own unit: 0.005 is half a point of accuracy.
        confidence: at most 1 - `confidence` of the searches end wrongly.
        trials: how many of the sampler's trials have to end first.
    """

    gain: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    trials: Annotated[int, Field(ge=10, le=MAX_INTEGER)] = 20


class Search(Strict):
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
        metric: the metric to search by, of the validation split, or a list of them.
        direction: whether larger or smaller values are better, for several metrics a list; null: as known for the
            metric. A function's own metric needs it.
        constraints: limits on other metrics, each as `val/equalized_odds <= 0.05`.
        choose: with several metrics the rule by which one configuration of the front is chosen; null: `first`.
        epoch: the epoch that gives a trial's value: its last, or its best by the first metric and the constraints.
        epoch_window: with `epoch: best`, an epoch counts as the mean of so many epochs up to it.
        retries: how often a trial that was cut off runs again.
    """

    space: dict[str, Domain] = Field(default_factory=dict)
    alternatives: dict[SectionName, dict[str, dict[str, JsonValue]]] = Field(default_factory=dict)
    baseline: Parameters | None = None
    enqueue: Annotated[list[Parameters], BeforeValidator(configurations)] = Field(default_factory=list)
    margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    incumbents: list[Parameters] = Field(default_factory=list)
    references: bool | Literal["auto"] | list[str] = False
    sampler: SamplerName = "tpe"
    seed: Seed = 0
    trials: Positive | None = None
    time: Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(seconds)] | None = None
    gpu_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    plateau: Plateau | None = None
    stop: Stop | None = None
    replicates: Annotated[int, Field(ge=1, le=1000)] | Annotated[list[Seed], Field(min_length=1)] = 1
    folds: Literal["one", "each"] | None = None
    concurrency: Positive | None = None
    metric: str | Annotated[list[str], Field(min_length=1)] = "val/accuracy"
    direction: Direction | Annotated[list[Direction], Field(min_length=1)] | None = None
    constraints: list[Annotated[str, AfterValidator(_limit)]] = Field(default_factory=list)
    choose: Annotated[
        Choose | None,
        BeforeValidator(_by_name, json_schema_input_type=Literal["first", "knee", "limit"] | Choose | None),
    ] = None
    epoch: Literal["last", "best"] = "last"
    epoch_window: Positive = 3
    early_stopping: Annotated[
        EarlyStopping, BeforeValidator(_by_name, json_schema_input_type=StoppingName | EarlyStopping)
    ] = EarlyStopping()
    confirm: Confirm = Confirm()
    retries: Annotated[int, Field(ge=0, le=MAX_INTEGER)] = 2

    _sampler_is_there = field_validator("sampler", mode="before")(_not_removed)

    @property
    def directions(self) -> dict[str, Direction]:
        """Given directions by metric, without its split."""
        given = [] if self.direction is None else self.direction
        names = [self.metric] if isinstance(self.metric, str) else self.metric
        each = [given] * len(names) if isinstance(given, str) else given
        return {name.split("/")[-1]: way for name, way in zip(names, each, strict=False)}


AIM = {"metric", "direction", "constraints", "epoch", "epoch_window"}
"""Keys of `search` that say what a trial is worth: an exported configuration keeps them."""


class Origin(TypedDict, total=False):
    """Where an exported configuration comes from: its study, how that chose it, what it found, on which code.

    `changed` are overrides since then; `digest` is left out where there are some. `gain` and `confirmed` are documents
    of differences and spreads by metric, `code` is the environment of the study's last session.
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
    test_readings: int
    unused_seed: int
    more_search: str | None
    code: Section
    changed: list[str]
    digest: str


class Layout(Strict):
    """The outline of a study file."""

    name: str
    data: dict[str, JsonValue]
    model: dict[str, JsonValue]
    method: dict[str, JsonValue]
    train: dict[str, JsonValue] = Field(default_factory=dict)
    search: Search = Search()
    resources: Resources = Resources()
    final_seeds: Annotated[list[Seed], Field(min_length=1)] | None = None
    origin: dict[str, JsonValue] | None = None

    @property
    def sections(self) -> dict[str, Section]:
        """The sections that trials are made of."""
        return {"data": self.data, "model": self.model, "method": self.method, "train": self.train}
