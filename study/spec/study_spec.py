"""A study: everything that its result depends on."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import cast

from study import data, models
from study.catalogue import REFERENCE_METHOD
from study.data import Facts
from study.files import FileDigest
from study.knobs import Params, Scalar, Section, Value, to_options
from study.methods import OWN_FUNCTION_NAME, method_needs
from study.metrics import METRICS, Direction, available_metrics, metric_direction
from study.spec.constraints import MetricConstraint
from study.spec.objective import Objective
from study.spec.schema import ExportOrigin, SearchOptions, TrialResources
from study.spec.space import SearchSpace, make_search_space
from study.spec.stage_seeds import search_seeds
from study.spec.trial_sections import TrialSections
from study.spec.yaml_document import dump_yaml, dump_yaml_folded, mapping_or_empty
from study.text import format_parameter
from study.training.config import FUNCTION_TRAIN_KEYS, TRIAL_SECTIONS, TrainOptions, TrialConfig
from study.training.function_loading import PICKLE_PREFIX

FUNCTION_TRIAL_KEYS = ("data.folds", *(f"train.{key}" for key in FUNCTION_TRAIN_KEYS))
"""Keys beside its own section that mean something to a training function."""

CONCURRENCY_KEY = "search.concurrency"

PLACEMENT_KEYS = (*(f"resources.{key}" for key in TrialResources.model_fields), CONCURRENCY_KEY)
"""Keys that say where trials run and how many at once, not what they compute."""

INITIAL_WEIGHT_KEYS = (
    "model.architecture",
    "model.weights",
    "model.frozen",
    "model.trained_stages",
    "model.normalisation",
)
"""Keys, besides `model.name`, that decide which weights a trial begins from, and which features of images it takes."""

VALUES_LEFT_OUT_OF_HASH = {("data", "folds"): None, ("model", "trained_stages"): "none", ("train", "probe"): "online"}
"""Values with which a key counts as not given where the hash of a study is made."""


@dataclass(frozen=True)
class StudySpec:
    """Checked study file.

    Attributes:
        name: of the study and its folder.
        base: the `data`, `model`, `method` and `train` sections that the trials start from: complete; where
            the search decides which keys there are, with the keys of all its trials.
        final_seeds: of a final training, which has one trial per seed and no search; None for a study.
        origin: where an exported configuration comes from, None in a study file.
        spec_of_file: the study as its file has it, where this one has other values of `PLACEMENT_KEYS` (see
            `replace_placement`).
    """

    name: str
    base: Mapping[str, Section]
    search: SearchOptions
    resources: TrialResources
    final_seeds: tuple[int, ...] | None = None
    origin: ExportOrigin | None = None
    spec_of_file: "StudySpec | None" = None

    @property
    def metric(self) -> str:
        """Metric of the search, as `SPLIT/NAME`; the first of several."""
        return self.objective.metrics[0]

    @property
    def test_metric(self) -> str:
        """Counterpart of `metric` on the test split, which chooses nothing."""
        return f"test/{self.metric.split('/')[1]}"

    @property
    def mode(self) -> Direction:
        """Better direction of the metric."""
        return self.objective.directions[0]

    def direction(self, metric: str) -> Direction | None:
        """Return which direction of a metric is better, on any split; None: it is not known.

        `search.direction` says it, else the table of metrics does. Everything that orders or marks values of a study
        asks here.
        """
        name = metric.split("/")[-1]
        known = metric_direction(name) if not self.training_function or name in METRICS else None
        return self.search.directions.get(name) or known

    @cached_property
    def objective(self) -> Objective:
        """Metrics that are searched by, the constraints, and how the epoch is chosen."""
        metric = self.search.metric
        metrics = (metric,) if isinstance(metric, str) else tuple(metric)
        modes: tuple[Direction, ...] = tuple(self.direction(name) or "max" for name in metrics)
        window = self.search.epoch_window if self.search.epoch == "best" else None
        constraints = tuple(map(MetricConstraint.from_text, self.search.constraints))
        return Objective(metrics, modes, constraints, window)

    @cached_property
    def incumbents(self) -> Sequence[Params]:
        """Configurations one of which is chosen unless another is ahead by `search.margin` standard errors.

        These are those that the file marks, else all that it enqueues, else the baseline. There are none without a
        margin, and none with several metrics, whose front has no single value to be ahead in.
        """
        search = self.search
        if not search.margin or self.objective.has_several_metrics or self.final_seeds is not None:
            return ()
        return search.incumbents or search.enqueue or ([search.baseline] if search.baseline is not None else [])

    @property
    def margin_rule_text(self) -> str | None:
        """Rule of `search.margin` in words, to stand behind what it chose; None where there is none."""
        if not self.incumbents:
            return None
        given = "the baseline"
        if self.search.incumbents or self.search.enqueue:
            given = f"the best of search.{'incumbents' if self.search.incumbents else 'enqueue'}"
        return f"{given}, unless another is ahead by more than {self.search.margin:g} standard errors (search.margin)"

    @property
    def has_searched_incumbents(self) -> bool:
        """Whether a configuration other than the baseline is an incumbent."""
        return any(params != self.search.baseline for params in self.incumbents)

    @property
    def n_configurations(self) -> int:
        """Number of configurations that the search tries, the baseline and the enqueued ones among them."""
        assert self.search.trials is not None  # filled in when the file was read
        return self.search.trials

    @cached_property
    def train(self) -> TrainOptions:
        """Settings of training that its trials start from."""
        return to_options(TrainOptions, self.base["train"])

    @property
    def epochs(self) -> int:
        """Epochs of a trial at full budget."""
        return self.train.epochs

    @cached_property
    def data_facts(self) -> Facts:
        """Facts of the data set; of several, of the first."""
        return self.facts_of_data(self.trial_data_sections[0])

    def facts_of_data(self, section: Section) -> Facts:
        """Return the facts of the data set of a `data` section."""
        key = data.section_key(section)
        if key not in self._facts_cache:
            self._facts_cache[key] = data.describe(section)
        return self._facts_cache[key]

    @cached_property
    def _facts_cache(self) -> dict[str, Facts]:
        return {}

    @property
    def training_function(self) -> str | None:
        """Training function of the user's own that its trials run, None where they train a method."""
        method = self.base["method"]
        return str(method["function"]) if method["name"] == OWN_FUNCTION_NAME else None

    @property
    def base_values_by_key(self) -> dict[str, Value]:
        """What its trials start from, by dotted key; of a training function only what it is given."""
        given = (*FUNCTION_TRIAL_KEYS, "train.with_val") if self.folds else FUNCTION_TRIAL_KEYS
        return {
            f"{section}.{key}": value
            for section, values in self.base.items()
            for key, value in values.items()
            if not self.training_function or section == "method" or f"{section}.{key}" in given
        }

    @property
    def is_function_pickled(self) -> bool:
        """Whether that function lies in the study's folder, and not in a module."""
        return bool(self.training_function and self.training_function.startswith(PICKLE_PREFIX))

    @property
    def metrics_by_data_set(self) -> list[list[str]]:
        """Metrics that its trials report on the validation split, as `NAME`, by data set.

        For a function these are the ones that it must yield.
        """
        if self.training_function:
            return [[name.removeprefix("val/") for name in self.objective.needed_metrics]]
        inferred = self.train.inferred_groups != "none"
        on_val = (self.facts_of_data(section).facts_of_split("val") for section in self.trial_data_sections)
        return [available_metrics(facts, inferred) for facts in on_val]

    @property
    def dataset_titles(self) -> list[str]:
        """Names of the data sets in tables and reports, each once."""
        titles = (data.dataset_title(section, self.facts_of_data(section)) for section in self.trial_data_sections)
        return list(dict.fromkeys(titles))

    def is_better(self, value: float, other: float) -> bool:
        """Return whether one value of the metric is better than another."""
        return value > other if self.mode == "max" else value < other

    @property
    def seed(self) -> int:
        """Training seed of the searched trials, the first of `seeds`."""
        return self.train.seed

    @property
    def seeds(self) -> Sequence[int]:
        """Training seeds of each configuration of the search: its own and those of its replicates."""
        return search_seeds(self.seed, self.search.replicates)

    @property
    def is_scikit_learn_reference(self) -> bool:
        """Whether its own configuration is a model of scikit-learn, which is fitted at once."""
        return self.base["method"]["name"] == REFERENCE_METHOD

    def name_behind_label(self, key: str, label: object) -> str | None:
        """Return the name that a label of `search.alternatives` stands for; None: it is no label, or a name."""
        section, _, last = key.partition(".")
        labelled = self.search.alternatives.get(section, {}) if last == "name" else {}
        name = labelled.get(str(label), {}).get("name", label)
        return None if name == label else str(name)

    def label_with_name(self, key: str, value: object) -> str:
        """Return a parameter's value as text, behind a label the name that it stands for."""
        name = self.name_behind_label(key, value)
        return format_parameter(value) + (f" ({name})" if name else "")

    def labels_of_params(self, params: Params) -> dict[str, str]:
        """Return the parameters that are labels of `search.alternatives` for other names."""
        return {key: str(value) for key, value in params.items() if self.name_behind_label(key, value)}

    def exported_label(self, section: str) -> str | None:
        """Return the label by which the study of an exported configuration calls a section; None: there is none."""
        origin = self.origin or {}
        marks = f"{section}.name=", f"{section}=", "--profile"
        if any(change.startswith(marks) for change in origin.get("changed", ())):
            return None
        return origin.get("labels", {}).get(f"{section}.name")

    @property
    def has_models_that_predict(self) -> bool:
        """Whether `study predict` takes a model of its own configuration."""
        return self._decides_by_scores and data.can_read_new_samples(str(self.base["data"]["name"]))

    @property
    def makes_ensemble(self) -> bool:
        """Whether networks of its final training can be one model: it has some, and their scores alone decide."""
        return self.final_seeds is not None and self._decides_by_scores

    @property
    def _decides_by_scores(self) -> bool:
        """Whether the scores of a model of this software decide its class, without the sample's bias label."""
        return not self.training_function and not method_needs(self.base["method"]).bias_to_predict

    @property
    def folds(self) -> int | None:
        """Number of folds into which the samples outside test are divided; None: there is one validation split."""
        found = self.base["data"].get("folds")
        return found if isinstance(found, int) else None

    def runs_of_configuration(self, turn: int = 0) -> list[tuple[int, int | None]]:
        """Return the seed and the fold of each run of a searched configuration: its own and its replicates'.

        Args:
            turn: how many configurations were tried before it.
        """
        count, each = self.folds, self.search.folds == "each"
        if count is None:
            return [(seed, None) for seed in self.seeds]
        if each:
            return [(seed, fold) for seed in self.seeds for fold in range(count)]
        return [(seed, (turn + place) % count) for place, seed in enumerate(self.seeds)]

    def fresh_fold(self, seed: int) -> int | None:
        """Return the fold on which a fresh seed is validated: all folds in turn; None without folds."""
        return None if self.folds is None else (seed - max(self.seeds) - 1) % self.folds

    @cached_property
    def sections(self) -> TrialSections:
        """Sections of the trials."""
        return TrialSections(self.base, self.search.alternatives)

    @property
    def is_conditional(self) -> bool:
        """Whether a searched key may be there or not by the value of another.

        That depends on names and words alone, and on `when`, so that no network or method has to be loaded to tell.
        """
        domains = self.search.space.values()
        return any(one.when or any(isinstance(choice, str) for choice in one.choices or ()) for one in domains)

    @cached_property
    def space(self) -> SearchSpace:
        """Search space, in the order in which a trial's parameters are decided."""
        return make_search_space(self.search.space, self.sections)

    @cached_property
    def trial_data_sections(self) -> list[Section]:
        """`data` sections that trials of the study have, each once."""
        sections = [
            self.trial_document({key: value for key, value in params.items() if key.startswith("data.")})["data"]
            for params in self._params_of_trial_kinds
        ]
        return [section for place, section in enumerate(sections) if section not in sections[:place]]

    @property
    def varied_data_keys(self) -> list[str]:
        """Keys by which the trials' samples or labels differ, as `data.rho`; the side of images is not among them.

        Values on one data set are then no measure of a configuration on another.
        """
        given: list[Iterable[str]] = [self.search.space, self.search.baseline or {}, *self.search.enqueue]
        if not any(key.startswith("data.") for keys in given for key in keys):
            return []  # without `trial_data_sections`, which takes seconds of PyTorch
        first, *others = self.trial_data_sections
        keys = dict.fromkeys(key for section in (first, *others) for key in section if key != "size")
        return [f"data.{key}" for key in keys if any(other.get(key) != first.get(key) for other in others)]

    @cached_property
    def method_sections(self) -> list[Section]:
        """One `method` section for each kind of trial that the study has, each once."""
        sections = [self.trial_document(params)["method"] for params in self._params_of_trial_kinds]
        return [section for place, section in enumerate(sections) if section not in sections[:place]]

    @property
    def initial_weight_files(self) -> list[FileDigest]:
        """Weights that trials of the study begin from, each once: `name`, `file`, `sha256`.

        Raises:
            UserError: a file is not there or not the one that is published; says how to get it.
        """
        found = [entry for model in self.model_sections if (entry := models.describe_weights(model))]
        unique = [entry for place, entry in enumerate(found) if entry not in found[:place]]
        return [FileDigest(name=entry["name"], file=entry["file"], sha256=entry["sha256"]) for entry in unique]

    @cached_property
    def model_sections(self) -> list[Section]:
        """`model` sections that trials of the study have, as far as they begin from other weights or features."""
        found = []
        for params in self._params_of_trial_kinds:
            domains = {key: self.space.domains[key] for key in INITIAL_WEIGHT_KEYS if key in self.space.domains}
            free = [key for key in domains if key not in params and self.space.applies_to(key, params)]
            for values in product(*(domains[key].boundary_values() for key in free)):
                found.append(self.trial_document({**params, **dict(zip(free, values, strict=True))})["model"])
        return found

    @cached_property
    def _params_of_trial_kinds(self) -> list[Params]:
        """Parameters that decide what trials are like: of the search's cases and of the given configurations."""
        search = self.search
        given = [*([search.baseline] if search.baseline is not None else []), *search.enqueue]
        return [*self.space.combinations_of_deciding_keys(), *given]

    def trial_document(self, params: Params) -> Mapping[str, Section]:
        """Return the complete sections of the trial with these parameters."""
        return self.sections.complete_sections_of_trial(params)

    def trial_config(self, params: Params, seed: int | None = None) -> TrialConfig:
        """Return what `study.training` runs for these parameters and this training seed (None: the study's)."""
        seed = self.seed if seed is None else seed
        return TrialConfig.from_document(self.trial_document({**params, "train.seed": seed}))

    def to_document(self) -> dict[str, Value]:
        """Return the resolved study file: nothing is left to a default."""
        search = self.search.model_dump()
        optional = (search, "direction"), (search, "folds")
        for section, key in (*optional, (search["confirm"], "front"), (search["confirm"], "folds")):
            if section[key] is None:
                del section[key]
        for key in ("margin", "incumbents", "references"):
            if not search[key]:
                del search[key]
        search["space"] = {key: _drop_unset_domain_keys(domain) for key, domain in search["space"].items()}
        document: dict[str, Value] = {"name": self.name}
        document |= {section: dict(self.base[section]) for section in TRIAL_SECTIONS}
        document |= {"search": search, "resources": self.resources.model_dump()}
        if self.final_seeds is not None:
            document["final_seeds"] = list(self.final_seeds)
        if self.origin:
            document["origin"] = cast(Section, {**self.origin})
        return document

    def replace_placement(self, placement: Params) -> "StudySpec":
        """Return the study with other values for some of `PLACEMENT_KEYS`; what its trials compute stays the same."""
        if not placement:
            return self
        of = {key.removeprefix("resources."): value for key, value in placement.items() if key != CONCURRENCY_KEY}
        resources = TrialResources.model_validate({**self.resources.model_dump(), **of})
        at_once = placement.get(CONCURRENCY_KEY, self.search.concurrency)
        search = self.search.model_copy(update={"concurrency": at_once})
        return replace(self, resources=resources, search=search, spec_of_file=self.spec_of_file or self)

    @property
    def placement_overrides(self) -> dict[str, Scalar]:
        """Values of `PLACEMENT_KEYS` that are not those of the study's file."""
        own = (self.spec_of_file or self).placement_values
        return {key: value for key, value in self.placement_values.items() if value != own[key]}

    @property
    def placement_values(self) -> dict[str, Scalar]:
        """Values of all of `PLACEMENT_KEYS`, by key."""
        resources = {f"resources.{key}": value for key, value in self.resources.model_dump().items()}
        return {**resources, CONCURRENCY_KEY: self.search.concurrency}

    def to_yaml(self) -> str:
        """Return the resolved study file as text; that of an exported configuration in few lines."""
        document = self.to_document()
        return dump_yaml(document) if self.origin is None else dump_yaml_folded(document, blocks=("origin",))

    @cached_property
    def hash(self) -> str:
        """Hash that is equal for two studies that run the same trials, whatever their names and resources.

        Trials with another number of threads are not the same: `train.threads` follows `resources.cpu`. What
        `replace_placement` changes does not count.
        """
        if self.spec_of_file is not None:
            return self.spec_of_file.hash
        document: dict[str, Section] = {section: self.base[section] for section in TRIAL_SECTIONS}
        for (section, key), absent in VALUES_LEFT_OUT_OF_HASH.items():
            if document[section].get(key) == absent:
                document[section] = {other: value for other, value in document[section].items() if other != key}
        document["search"] = mapping_or_empty(self.to_document()["search"])
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def _drop_unset_domain_keys(domain: Section) -> dict[str, Value]:
    return {key: value for key, value in domain.items() if value is not None and value is not False and value != {}}
