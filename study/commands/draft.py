"""Draft a user's first study file: from a few answers to commented YAML that `study plan` accepts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from study import data, methods, models
from study.data import Facts
from study.errors import UserError
from study.knobs import Params, Scalar, Section, Value
from study.metrics import METRICS, available_metrics, lower_is_better
from study.spec.load import check_and_complete_document
from study.spec.yaml_document import apply_profile, dump_yaml_flow, parse_study_yaml
from study.text import study_command
from study.training import augment

if TYPE_CHECKING:
    from jinja2 import Template

BiasLabelCoverage = Literal["labels", "some_labels", "none"]
"""Which samples have bias labels."""

BiasGuess = Literal["colour", "texture", "unknown"]
"""What a user without bias labels believes that a model may learn instead of the class."""


FAIR_KL_SUFFIX = "+fair_kl"
"""Appended to a method's name: the method with FairKL as its regulariser."""

METHODS_WITH_BIAS_LABELS = (f"eps_sup_info_nce{FAIR_KL_SUFFIX}",)
METHODS_WITHOUT_BIAS_LABELS = ("cross_entropy", "learning_from_failure")
"""Methods of a file on images whose user names none; on a table cross entropy is always among them."""

_INFO_NCE_METHODS = (
    "info_nce debiased_info_nce hard_negative_info_nce fair_info_nce weakly_supervised_info_nce fair_cclk "
    "hard_negative_cclk weakly_supervised_cclk wcl"
)
ORDINARY_LOSS_BY_METHOD = {
    **{name: name for name in ("eps_sup_info_nce", "eps_sup_con", "eps_info_nce", "sup_con_in")},
    **dict.fromkeys(("sup_con", "fair_sup_con", "bias_con", "soft_con"), "sup_con"),
    **dict.fromkeys(_INFO_NCE_METHODS.split(), "info_nce"),
}
"""The ordinary loss that each method extends; all others extend cross entropy."""

ORDINARY_LOSS_VALUES = {"alpha": 1.0, "lambda": 0.0, "epsilon": 0.0, "class_weights": 0.0, "cell_weights": 0.0}
"""Values with which a counterpart is that loss and nothing else."""

UNSEARCHED_METHOD_KEYS = ("base_temperature", "kernel")
"""Keys that a first study does not search, although they have ranges."""

FROZEN_FEATURES_METHOD = "bias_balanced_cross_entropy"
"""The method on a frozen network's features; without bias labels the network's early layers stand for them."""

FEATURES_DECAY_TIMES_IMAGES, FEATURES_DECAY_RANGE_FACTOR = 120.0, 3.0
"""Weight decay of layers on a frozen network's features: the first value tried is the first number divided by the
number of training images, and the range searched is that value divided and multiplied by the second number. Among 0.05
to 0.4 on folders of 400 to 1,200 images this lost little to the best of each; validation splits with ten conflicting
samples chose worse ones (`tests/benchmarks/photographs.py`)."""

EARLY_LAYERS_VALUE = "early_layers"
"""The value of `method.bias_source` and `train.inferred_groups` that a pretrained network makes possible."""

MIN_COLOUR_JITTER, MAX_COLOUR_JITTER = 1.5, 2.5
"""Range of the colour jitter's factor; at the largest, hues turn by a quarter of the circle either way."""


@dataclass(frozen=True)
class BiasKnowledge:
    """What the user knows of the bias."""

    known_labels: BiasLabelCoverage = "none"
    guess: BiasGuess = "unknown"


def default_methods(bias: BiasKnowledge, is_table: bool, pretrained: bool = False) -> tuple[str, ...]:
    """Return the methods of a study whose user names none."""
    if pretrained:
        return (FROZEN_FEATURES_METHOD,)
    if bias.known_labels != "none" or bias.guess == "texture":
        return (*METHODS_WITHOUT_BIAS_LABELS[:1], *METHODS_WITH_BIAS_LABELS) if is_table else METHODS_WITH_BIAS_LABELS
    return METHODS_WITHOUT_BIAS_LABELS[:1] if bias.guess == "colour" else METHODS_WITHOUT_BIAS_LABELS


def method_section(named: str, bias: BiasKnowledge, is_table: bool, pretrained: bool = False) -> Section:
    """Return the section of a method.

    On a table its classes weigh alike, and a contrastive loss of classes has cross entropy beside it. On a pretrained
    network early layers stand for bias labels.

    Args:
        named: `NAME`, or `NAME+fair_kl` for FairKL with it.
    """
    values: dict[str, Value] = {"name": named.removesuffix(FAIR_KL_SUFFIX)}
    if named.endswith(FAIR_KL_SUFFIX):
        values["regulariser"] = "fair_kl"
    knobs = methods.method_knobs(values)
    if is_table and "class_weights" in knobs:
        values["class_weights"] = 1.0
    if is_table and "cross_entropy" in knobs and methods.method_needs(with_method_defaults(values)).labels_key:
        values["cross_entropy"] = "plain"
    source = knobs.get("bias_source")
    if bias.known_labels == "some_labels" and source:
        return {**values, "bias_source": "some_labels", "known_bias": 1.0}
    if bias.known_labels == "none" and source and pretrained:
        return {**values, "bias_source": EARLY_LAYERS_VALUE}
    if bias.known_labels == "none" and bias.guess == "texture" and source and "model" in source.choices:
        return {**values, "bias_source": "model"}
    return values


def method_sections_by_label(
    names: Sequence[str], bias: BiasKnowledge, is_table: bool, pretrained: bool = False
) -> dict[str, Section]:
    """Return the sections of the methods of one file by their labels in it, the file's own first.

    A label that is a method's name stands for the file's own section with that name in it; a section that differs from
    that has another label. The file's own section is the first that takes a regulariser and has none, else the first
    with a regulariser.
    """
    found = [method_section(name, bias, is_table, pretrained) for name in names]

    def rank(values: Section) -> int:
        takes = "regulariser" in methods.method_knobs(values)
        return 2 if not takes else int("regulariser" in values)

    own, *others = sorted(found, key=rank)
    labelled = {str(own["name"]): own}
    for values in others:
        kept = {key: value for key, value in own.items() if key in methods.method_knobs(values)}
        is_own = {**kept, "name": values["name"]} == values and values["name"] not in labelled
        labelled[f"{values['name']}{'' if is_own else '_' + str(values.get('regulariser', 'drafted'))}"] = values
    return labelled


def with_method_defaults(values: Section) -> dict[str, Value]:
    """Return a method's section with every default filled in."""
    return {key: knob.default for key, knob in methods.method_knobs(values).items()} | dict(values)


def bias_needs_sentence(values: Section) -> str:
    """Return a sentence on what a method needs to know of the bias."""
    source = values.get("bias_source")
    if source == "model":
        return f"{values['name']} needs no bias labels: a network that sees small patches stands for them."
    if source == EARLY_LAYERS_VALUE:
        return f"{values['name']} needs no bias labels: what early layers of the network see stands for them."
    if source == "some_labels":
        return f"{values['name']} needs some bias labels and guesses the others."
    no = "" if methods.method_needs(with_method_defaults(values)).bias_key else "no "
    return f"{values['name']} needs {no}bias labels."


def draft_search_space(
    labelled: Mapping[str, Section], facts: Facts, trained: Facts, views: bool, bias: BiasKnowledge, rows: int | None
) -> dict[str, Value]:
    """Return the search space.

    It has the methods, their own keys and the learning rate; for tables weights of samples and of networks; and changes
    of colour where colour may be the bias.

    Args:
        trained: what is trained on, as `study.models.facts_of_network_inputs`.
        rows: training rows of a table; None: not known, or no table.
    """
    names = [str(values["name"]) for values in labelled.values()]
    space: dict[str, Value] = {}
    if len(names) > 1 or ordinary_loss_name(names) not in names:
        space["method.name"] = {"choices": list(labelled)}
    knobs = {label: methods.method_knobs(values) for label, values in labelled.items()}
    for declared in knobs.values():
        for key, knob in declared.items():
            weighs = key != "alpha" or "lambda" in declared
            if knob.search_range and key not in UNSEARCHED_METHOD_KEYS and weighs:
                space[f"method.{key}"] = "paper"
    if "method.alpha" in space and not all("lambda" in declared for declared in knobs.values() if "alpha" in declared):
        there = [label for label, declared in knobs.items() if "lambda" in declared]
        space["method.alpha"] = {"range": "paper", "when": {"method.name": there}}
    if facts.is_table:
        of_table = table_search_space(rows, views)
        space |= {key: domain for key, domain in of_table.items() if key != CELL_WEIGHTS_KEY or facts.bias_classes}
    else:
        space["train.learning_rate"] = {"low": 0.0003, "high": 0.01, "log": True}
    return space | dict(_colour_augmentation_keys(trained, views, bias))


CLASS_WEIGHTS_KEY, CELL_WEIGHTS_KEY = "method.class_weights", "method.cell_weights"
MAX_TABLE_WEIGHT_DECAY, TABLE_WEIGHT_DECAY_TIMES_ROWS, DEFAULT_ROWS = 0.05, 8.0, 1000
"""Weight decay of a table: the strongest that is searched; the first one tried, times the number of training rows; and
that number where it is not known. A decay w added to the mean loss equals w times the rows added to the summed loss:
few rows need a larger one. Above 0.05 some linear networks learn nothing (`tests/benchmarks/references.py`)."""

MIN_ROWS_FOR_HIDDEN_LAYERS = 3000
"""Training rows of a table from which on a network with hidden layers is tried as well: with fewer it was worse."""


def table_search_space(rows: int | None, views: bool) -> dict[str, Value]:
    """Return what is searched on a table: networks, weights of samples and weight decay, for so many training rows."""
    networks: dict[str, Value] = {}
    if rows and rows >= MIN_ROWS_FOR_HIDDEN_LAYERS and not views:
        networks["model.name"] = {"choices": ["linear", "mlp"]}
    min_decay = round_to_two_digits(first_table_weight_decay(rows) / 5)
    return {
        **networks,
        CLASS_WEIGHTS_KEY: {"low": 0.7, "high": 1.0},
        CELL_WEIGHTS_KEY: {"low": 0.0, "high": 1.0},
        "train.learning_rate": {"low": 0.001, "high": 0.01, "log": True},
        "train.weight_decay": {"low": min_decay, "high": MAX_TABLE_WEIGHT_DECAY, "log": True},
    }


def first_table_params(rows: int | None) -> Params:
    """Return what is tried first on a table, with cross entropy; its network and training are those of the file."""
    params: Params = {"model.name": "linear", CLASS_WEIGHTS_KEY: 1.0, CELL_WEIGHTS_KEY: 0.0}
    return {**params, "train.learning_rate": 0.003, "train.weight_decay": first_table_weight_decay(rows)}


def first_table_weight_decay(rows: int | None) -> float:
    """Return the weight decay that is tried first on a table of so many training rows."""
    return round_to_two_digits(min(0.02, TABLE_WEIGHT_DECAY_TIMES_ROWS / (rows or DEFAULT_ROWS)))


def round_to_two_digits(value: float) -> float:
    """Round to two significant digits."""
    return float(f"{value:.2g}")


def default_augmentation(facts: Facts, views: bool, bias: BiasKnowledge) -> str | None:
    """Return the augmentation of the file: one that gives different views if the methods need them; None: none."""
    if views:
        wishes = ("corrupt_columns",) if facts.is_table else ("simclr", "crop_flip")
        return next((name for name in wishes if augment.why_augmentation_unsuited(name, facts) is None), wishes[-1])
    return "bias_con" if next(_colour_augmentation_keys(facts, views, bias), None) else None


def baseline_params(sections: Sequence[Section], space: Section) -> Params:
    """Return the baseline: the plain loss, on samples as they are unless the loss needs views of them."""
    plain = ordinary_loss_name([str(values["name"]) for values in sections])
    keys = methods.method_knobs({**sections[0], "name": plain})
    params: dict[str, Scalar] = {"method.name": plain} if "method.name" in space else {}
    if "model.name" in space:
        params["model.name"] = "linear"
    for key, value in ORDINARY_LOSS_VALUES.items():
        if key in keys and f"method.{key}" in space and (key != "alpha" or "lambda" in keys):
            params[f"method.{key}"] = value
    if "train.augmentation" in space:
        params["train.augmentation"] = "none"
    return params


def first_tried_params(labelled: Mapping[str, Section], space: Section, rows: int | None) -> Params | None:
    """Return the configuration tried first on a table with cross entropy; None: no table, or without that method."""
    params = {key: value for key, value in first_table_params(rows).items() if key in space}
    if CLASS_WEIGHTS_KEY not in params or "cross_entropy" not in labelled or "regulariser" in labelled["cross_entropy"]:
        return None
    return ({"method.name": "cross_entropy"} if "method.name" in space else {}) | params


def has_paper_values(sections: Sequence[Section], space: Section) -> bool:
    """Return whether a paper found values of searched keys good."""
    knobs = [(f"method.{key}", knob) for values in sections for key, knob in methods.method_knobs(values).items()]
    return any(knob.search_range is not None and knob.search_range.paper and key in space for key, knob in knobs)


def ordinary_loss_name(names: Sequence[str]) -> str:
    """Return the ordinary loss of these methods: cross entropy if one of them extends it, else that of the first."""
    counterparts = [ORDINARY_LOSS_BY_METHOD.get(name, "cross_entropy") for name in names]
    return "cross_entropy" if "cross_entropy" in counterparts else counterparts[0]


def default_metric(facts: Facts) -> str:
    """Return the metric to search by: what a model is worth without the bias, as far as validation can tell.

    With bias labels that is a log loss, which tells more of a few samples than how many are right: measured by
    `tests/benchmarks/search_values.py`. Without them, images are judged by inferred groups, and tables by their worst
    class: on a table a network errs at hard rows, not at those against a bias (`tests/benchmarks/selection_rules.py`).
    """
    if "shrunk_unbiased_log_loss" in available_metrics(facts.facts_of_split("val")):
        return "shrunk_unbiased_log_loss"
    return "worst_class_accuracy" if facts.is_table else "inferred_unbiased_accuracy"


def _colour_augmentation_keys(facts: Facts, views: bool, bias: BiasKnowledge) -> Iterator[tuple[str, Value]]:
    """Yield the keys that take colours away, unless the bias is known to be something else."""
    if bias.known_labels != "none" and bias.guess != "colour":
        return
    if bias.guess == "texture" or facts.is_table or facts.shape[0] != 3:
        return
    if not views:
        yield "train.augmentation", {"choices": ["bias_con"]}  # the baseline has none
    yield "train.jitter", {"low": MIN_COLOUR_JITTER, "high": MAX_COLOUR_JITTER}


MAX_SMALL_IMAGE_SIDE = 64
"""Longest side in pixels up to which a network keeps the image's size in its first layer."""

MIN_PHOTOGRAPH_SIDE = 96
"""Shortest side in pixels from which published weights are pointed out."""

BATCH_SIZES, MIN_STEPS_PER_EPOCH = (128, 64, 32), 20
"""Batch sizes, and the steps that an epoch should have: a study of images takes the first size that gives as many, else
the last; measured on 690 images by `tests/benchmarks/networks.py`."""

SEARCH_MARGIN, SEARCH_MARGIN_ON_FOLDS = 1.5, 0.5
"""Standard errors by which another configuration has to be ahead of the papers' on images; measured by
`tests/benchmarks/overtuning.py`, with folds by `tests/benchmarks/folds.py`."""

CONFIRM_TOP_ON_FOLDS, CONFIRM_TOP_ON_TABLE_FOLDS = 3, 5
"""Configurations that run on all folds after the search: of images as `tests/benchmarks/folds.py` measured, of tables
as `tests/benchmarks/rare_classes.py`."""

N_FOLDS, MAX_SAMPLES_FOR_FOLDS = 5, 2400
"""Number of folds, and training samples up to which a study with bias labels has folds: measured on about as many, and
on 20,000, by `tests/benchmarks/folds.py`. On images it also has a fitted probe: in so few steps the online one does not
come to rest (`tests/benchmarks/results/draft-space.md`)."""

PROFILE_OVERRIDES: Mapping[str, Params] = {
    "cpu": {"train.epochs": 20, "train.precision": "float32", "resources.gpu": 0},
    "gpu": {"train.precision": "bfloat16", "resources.gpu": 0.25},
}
"""Overrides for the other kind of machine: `cpu` in a study drafted for a GPU, `gpu` in one for CPUs."""


@dataclass(frozen=True)
class DraftAnswers:
    """Answers that a study file is made from.

    Attributes:
        data_section: its section.
        methods: one or several, which are then searched over.
        uses_gpu: whether its trials have a GPU each, or a share of one.
        n_training_images: number of training images of the user's own; None: not known, or no images.
        n_training_rows: number of training rows of a table; None: not known, or no table.
        bias_knowledge: what the user knows of it.
        data_comment: a comment above the data.
        tries_papers_first: whether the papers' configurations are tried first, where there are some.
        model_section: that of a frozen pretrained network; None: one of random weights.
    """

    name: str
    data_section: Section
    methods: tuple[str, ...]
    uses_gpu: bool
    n_trials: int
    bias_knowledge: BiasKnowledge
    n_training_images: int | None = None
    n_training_rows: int | None = None
    data_comment: str | None = None
    tries_papers_first: bool = True
    model_section: Section | None = None


def draft_study_file(answers: DraftAnswers, file: str, schema: str | None = None) -> str:
    """Return the text of a study file, checked by loading it with and without its profile.

    Args:
        file: its future name, for comments and messages.
        schema: where an editor finds the JSON Schema.

    Raises:
        UserError: the answers contradict each other.
    """
    facts = data.describe(dict(answers.data_section))
    bias = answers.bias_knowledge
    labelled = method_sections_by_label(answers.methods, bias, facts.is_table, answers.model_section is not None)
    sections = list(labelled.values())
    names = [str(section["name"]) for section in sections]
    plain = method_section(ordinary_loss_name(names), bias, facts.is_table)
    views = any(methods.method_needs(with_method_defaults(section)).views_key for section in [plain, *sections])
    shapes = views or any("regulariser" in section for section in sections)
    model = dict(answers.model_section) if answers.model_section else _model_section(facts, answers.uses_gpu, views)
    model |= {"adapter": 1} if answers.model_section and shapes else {}
    model |= {"head": "mlp"} if views else {}
    trained = models.facts_of_network_inputs(model, facts)
    epochs = 60 if answers.uses_gpu and not answers.model_section else 20
    images = math.inf if answers.n_training_images is None else answers.n_training_images
    batch = next((size for size in BATCH_SIZES if images >= MIN_STEPS_PER_EPOCH * size), BATCH_SIZES[-1])
    train: dict[str, Value] = {"epochs": epochs, "batch_size": batch, "learning_rate": 0.001}
    if facts.is_table:
        train |= {
            key[6:]: value
            for key, value in first_table_params(answers.n_training_rows).items()
            if key.startswith("train.")
        }
    augmentation = default_augmentation(trained, views, bias)
    train |= {"augmentation": augmentation} if augmentation else {}
    few = bias.known_labels != "none" and not answers.uses_gpu and images <= MAX_SAMPLES_FOR_FOLDS
    if few and answers.methods == METHODS_WITH_BIAS_LABELS and not facts.is_table and not answers.model_section:
        train["probe"] = "fitted"
    train |= {"precision": "bfloat16"} if answers.uses_gpu else {}
    space = draft_search_space(labelled, facts, trained, views, bias, answers.n_training_rows)
    point, decay = first_tried_params(labelled, space, answers.n_training_rows), 0.0
    if answers.model_section:
        decay = round_to_two_digits(min(0.3, FEATURES_DECAY_TIMES_IMAGES / (answers.n_training_images or DEFAULT_ROWS)))
        ends = decay / FEATURES_DECAY_RANGE_FACTOR, decay * FEATURES_DECAY_RANGE_FACTOR
        low, high = map(round_to_two_digits, ends)
        space["train.weight_decay"] = {"low": low, "high": high, "log": True}
        train["weight_decay"] = decay
    on_features = answers.model_section is not None and [*labelled] == [FROZEN_FEATURES_METHOD]
    if on_features:
        del space["train.learning_rate"]
        train["schedule"] = "cosine"
        point = {"method.name": FROZEN_FEATURES_METHOD, "train.weight_decay": decay}
    metric = default_metric(facts)
    if METRICS[metric].needs_inferred_groups:
        train["inferred_groups"] = EARLY_LAYERS_VALUE if answers.model_section else "gce"
    profile = "cpu" if answers.uses_gpu else "gpu"
    has_folds = _should_use_folds(answers, metric)
    text = _study_file_template().render(
        schema=schema,
        about=f"{answers.name}: {', '.join(names)} on {data.dataset_title(answers.data_section, facts)}.",
        **{verb: study_command(verb, file) for verb in ("plan", "trial", "run")},
        name=answers.name,
        note=answers.data_comment,
        data={**answers.data_section, "folds": N_FOLDS} if has_folds else answers.data_section,
        folds=N_FOLDS if has_folds else None,
        model=model,
        are_photos=not trained.is_table and facts.shape[0] == 3 and min(facts.shape[1:]) >= MIN_PHOTOGRAPH_SIDE,
        methods=[bias_needs_sentence(section) for section in sections],
        method=sections[0],
        alternatives={label: values for label, values in labelled.items() if label != values["name"]},
        train=train,
        space=space,
        baseline=baseline_params(sections, space),
        first=point if answers.tries_papers_first else None,
        on_features=on_features,
        papers=answers.tries_papers_first and has_paper_values(sections, space),
        margin=None if facts.is_table else SEARCH_MARGIN_ON_FOLDS if has_folds else SEARCH_MARGIN,
        top=CONFIRM_TOP_ON_TABLE_FOLDS if facts.is_table else CONFIRM_TOP_ON_FOLDS,
        trials=answers.n_trials,
        metric_words=METRICS[metric].description + (" Smaller is better." if lower_is_better(metric) else ""),
        metric=f"val/{metric}",
        resources="{cpu: 2, gpu: 0.5}" if answers.uses_gpu else "{cpu: 1, gpu: 0}",
        profile=profile,
        overrides=PROFILE_OVERRIDES[profile],
    )
    for chosen in (None, profile):
        document = parse_study_yaml(text, file)
        apply_profile(document, chosen)
        check_and_complete_document(document)
    return text


def _study_file_template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("study.commands")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    environment.filters["flow"] = dump_yaml_flow
    return environment.get_template("draft.yaml.j2")


def _should_use_folds(answers: DraftAnswers, metric: str) -> bool:
    """Return whether a user's samples are few, have bias labels and can be divided into folds."""
    samples = answers.n_training_rows if answers.n_training_images is None else answers.n_training_images
    if samples is None or samples > MAX_SAMPLES_FOR_FOLDS or metric != "shrunk_unbiased_log_loss":
        return False
    try:
        data.describe({**answers.data_section, "folds": N_FOLDS})
    except UserError:  # the split is the user's own, or there is no such key
        return False
    return True


def _model_section(facts: Facts, gpu: bool, head: bool) -> dict[str, Value]:
    if facts.is_table:
        return {"name": "mlp" if head else "linear"}
    if not gpu:
        return {"name": "small_conv_net"}
    return {"name": "resnet18", "stem": "imagenet" if max(facts.shape[1:]) > MAX_SMALL_IMAGE_SIDE else "cifar"}
