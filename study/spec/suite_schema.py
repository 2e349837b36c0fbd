"""The keys of a suite file; what its sections may hold beyond that is checked by the studies that they become."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from study.knobs import MOST
from study.spec.checks import STRICT
from study.spec.schema import Positive, RuleName

Section = dict[str, Any]


class SuiteMethod(BaseModel):
    """A row of the table: a `method` section, the `space` that is searched for it, and what else it needs of its own.

    `enqueue` are configurations that each of its searches tries first; they count as trials.
    """

    model_config = STRICT
    method: Section
    model: Section | None = None
    train: Section = Field(default_factory=dict)
    space: Section = Field(default_factory=dict)
    enqueue: list[Section] = Field(default_factory=list)


class BaseSearch(BaseModel):
    """The keys of `search` that are the same for every method."""

    model_config = STRICT
    sampler: Any = None
    metric: Any = None
    epoch: Any = None
    epoch_window: Any = None
    early_stopping: Any = None
    concurrency: Any = None
    retries: Any = None


class Base(BaseModel):
    """What is the same for every method, unless a method's own section says otherwise."""

    model_config = STRICT
    model: Section | None = None
    train: Section = Field(default_factory=dict)
    search: BaseSearch = BaseSearch()
    resources: Section = Field(default_factory=dict)


class Budget(BaseModel):
    """What each search may spend: so many `trials` of so many `epochs`; what the rules pick is judged on `seeds` fresh
    training seeds."""

    model_config = STRICT
    trials: Positive
    epochs: Positive
    seeds: Annotated[int, Field(ge=2, le=1000)]


class SuiteLayout(BaseModel):
    """The outline of a suite file.

    `searches` is the number of independent searches of a method on a data set, each with a sampler's seed and training
    seeds of its own. `split` says whether they share the data set's split (`same`) or have one each (`fresh`). `judge`
    is the test metric of the table; null: that of `base.search.metric`.
    """

    model_config = STRICT
    name: str
    base: Base = Base()
    methods: Annotated[dict[str, SuiteMethod], Field(min_length=1)]
    data: Annotated[dict[str, Section], Field(min_length=1)]
    rules: Annotated[list[RuleName], Field(min_length=1)]
    searches: Annotated[int, Field(ge=1, le=MOST)] = 3
    split: Literal["same", "fresh"] = "same"
    budget: Budget
    judge: str | None = None
