"""The parts of a user's first study: which methods, what is searched of them, what they are compared with.

The defaults are those that `tests/benchmarks/own_folder.py` measured best on images that they had not seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from study import methods
from study.data import Facts
from study.errors import UserError
from study.metrics import available
from study.training import augment

Known = Literal["labels", "some_labels", "none"]
"""What is known of the bias: labels of all samples, of some of them, or of none."""

Guess = Literal["colour", "texture", "unknown"]
"""What may betray the class where there are no bias labels."""

Section = Mapping[str, Any]

ADDED = "+fair_kl"
"""Behind a method's name: with FairKL as its regulariser."""

WITH_LABELS, WITHOUT_LABELS = (f"eps_sup_info_nce{ADDED}",), ("cross_entropy", "learning_from_failure")
"""The methods that are drafted where the user names none."""

COUNTERPARTS = {
    "eps_sup_info_nce": "eps_sup_info_nce",
    "eps_sup_con": "eps_sup_con",
    "eps_info_nce": "eps_info_nce",
    "sup_con_in": "sup_con_in",
    "sup_con": "sup_con",
    "fair_sup_con": "sup_con",
    "bias_con": "sup_con",
    "soft_con": "sup_con",
    "info_nce": "info_nce",
    "debiased_info_nce": "info_nce",
    "hard_negative_info_nce": "info_nce",
    "fair_info_nce": "info_nce",
    "weakly_supervised_info_nce": "info_nce",
    "fair_cclk": "info_nce",
    "hard_negative_cclk": "info_nce",
    "weakly_supervised_cclk": "info_nce",
    "wcl": "info_nce",
}
"""The ordinary loss that a method is made from; of all others the cross entropy."""

PLAIN = {"alpha": 1.0, "lambda": 0.0, "epsilon": 0.0}
"""Values with which a counterpart is that loss and nothing else."""

LEFT_ALONE = ("base_temperature", "kernel")
"""Keys that a first study does not search, although they have ranges."""

WEAKEST, STRONGEST = 1.5, 2.5
"""Factors of the colour jitter; at the largest, hues turn by a quarter of the circle either way."""


@dataclass(frozen=True)
class Bias:
    """What the user knows of the bias."""

    known: Known = "none"
    guess: Guess = "unknown"


def default_methods(bias: Bias) -> tuple[str, ...]:
    """The methods of a study whose user names none."""
    if bias.known != "none" or bias.guess == "texture":
        return WITH_LABELS
    return WITHOUT_LABELS[:1] if bias.guess == "colour" else WITHOUT_LABELS


def section(named: str, bias: Bias) -> dict[str, Any]:
    """The section of a method: `NAME`, or `NAME+fair_kl` for FairKL with it."""
    values: dict[str, Any] = {"name": named.removesuffix(ADDED)}
    if named.endswith(ADDED):
        values["regulariser"] = "fair_kl"
    source = methods.method_knobs(values).get("bias_source")
    if bias.known == "some_labels" and source:
        return {**values, "bias_source": "some_labels", "known_bias": 1.0}
    if bias.known == "none" and bias.guess == "texture" and source and "model" in source.names:
        return {**values, "bias_source": "model"}
    return values


def sections(names: Sequence[str], bias: Bias) -> list[dict[str, Any]]:
    """The sections of the methods of one file, one with a regulariser first.

    Raises:
        UserError: some have FairKL with them, and others that could have it have not: it is one key of the file.
    """
    found = sorted((section(name, bias) for name in names), key=lambda values: "regulariser" not in values)
    takes = [values for values in found if "regulariser" in methods.method_knobs(values)]
    if without := [values["name"] for values in takes if "regulariser" not in values and "regulariser" in found[0]]:
        problem = f"fair_kl is for all methods of a file that take it, and {without[0]} does"
        raise UserError(f"--method {','.join(names)}: {problem}. Give {without[0]}{ADDED}, or draft two files")
    return found


def complete(values: Section) -> dict[str, Any]:
    """A section with every default filled in."""
    return {key: knob.default for key, knob in methods.method_knobs(values).items()} | dict(values)


def words(values: Section) -> str:
    """What a method needs to know of the bias."""
    source = values.get("bias_source")
    if source == "model":
        return f"{values['name']} needs no bias labels: a network that sees small patches stands for them."
    if source == "some_labels":
        return f"{values['name']} needs some bias labels and guesses the others."
    return f"{values['name']} needs {'' if methods.needs(complete(values)).bias else 'no '}bias labels."


def search_space(sections: Sequence[Section], facts: Facts, views: bool, bias: Bias) -> dict[str, Any]:
    """The search space: the methods, their own keys, the learning rate, and colours where they may betray it."""
    names = [values["name"] for values in sections]
    space: dict[str, Any] = {}
    if len(names) > 1 or plain_name(names) not in names:
        space["method.name"] = {"choices": names}
    for values in sections:
        knobs = methods.method_knobs(values)
        for key, knob in knobs.items():
            weighs = key != "alpha" or "lambda" in knobs
            if knob.searched and key not in LEFT_ALONE and weighs:
                space[f"method.{key}"] = "paper"
    space["train.learning_rate"] = {"low": 0.0003, "high": 0.01, "log": True}
    return space | dict(_colours(facts, views, bias))


def augmentation(facts: Facts, views: bool, bias: Bias) -> str | None:
    """The augmentation of the file: one that gives different views if the methods need them; None: none."""
    if views:
        wishes = ("corrupt_columns",) if facts.is_table else ("simclr", "crop_flip")
        return next((name for name in wishes if augment.suits(name, facts) is None), wishes[-1])
    return "bias_con" if next(_colours(facts, views, bias), None) else None


def baseline(sections: Sequence[Section], space: Mapping[str, Any]) -> dict[str, Any]:
    """The plain loss that the result is compared with, on samples as they are unless the loss needs views of them."""
    plain = plain_name([values["name"] for values in sections])
    keys = methods.method_knobs({**sections[0], "name": plain})
    params: dict[str, Any] = {"method.name": plain} if "method.name" in space else {}
    for key, value in PLAIN.items():
        if key in keys and f"method.{key}" in space:
            params[f"method.{key}"] = value
    if "train.augmentation" in space:
        params["train.augmentation"] = "none"
    return params


def in_papers(sections: Sequence[Section], space: Mapping[str, Any]) -> bool:
    """Whether a paper found values of searched keys good."""
    knobs = [(f"method.{key}", knob) for values in sections for key, knob in methods.method_knobs(values).items()]
    return any(knob.searched is not None and knob.searched.paper and key in space for key, knob in knobs)


def plain_name(names: Sequence[str]) -> str:
    """The ordinary loss of these methods: the cross entropy if one is made from it, else that of the first."""
    counterparts = [COUNTERPARTS.get(name, "cross_entropy") for name in names]
    return "cross_entropy" if "cross_entropy" in counterparts else counterparts[0]


def metric(facts: Facts) -> str:
    """What is searched on: the accuracy without the bias, as far as the validation split can say it.

    Without bias labels, images are judged by inferred groups, tables by their worst class: measured by
    `tests/benchmarks/selection_rules.py`, where a network of a table errs at hard rows, not at those against a bias.
    """
    if "shrunk_unbiased_accuracy" in available(facts.on("val")):
        return "shrunk_unbiased_accuracy"
    return "worst_class_accuracy" if facts.is_table else "inferred_unbiased_accuracy"


def _colours(facts: Facts, views: bool, bias: Bias) -> Iterator[tuple[str, Any]]:
    """Keys that take colours away, unless it is known what the bias is."""
    if bias.known != "none" and bias.guess != "colour":
        return
    if bias.guess == "texture" or not _has_colours(facts):
        return
    if not views:
        yield "train.augmentation", {"choices": ["bias_con"]}  # the baseline has none
    yield "train.jitter", {"low": WEAKEST, "high": STRONGEST}


def _has_colours(facts: Facts) -> bool:
    return not facts.is_table and facts.shape[0] == 3
