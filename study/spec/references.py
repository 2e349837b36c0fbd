"""What a search has to beat that needs no search: the models of the field's libraries that are fitted beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from study.data.dataset import Facts
from study.errors import nearest
from study.spec.checks import Problems

if TYPE_CHECKING:
    from study.spec.study_spec import StudySpec

Needs = Literal["nothing", "groups", "two"]


@dataclass(frozen=True)
class Kind:
    """A reference.

    Attributes:
        words: within a sentence.
        needs: `groups`: the bias class of every training sample; `two`: that, and two classes.
        of_images: whether it is fitted to images, too: to their pixels, or to a frozen network's features.
        needs_group: whether it needs the bias class of whom it judges, or draws by chance: it is shown, and neither
            chosen nor exported.
    """

    words: str
    needs: Needs = "nothing"
    of_images: bool = False
    needs_group: bool = False


REFERENCES: Mapping[str, Kind] = {
    "majority": Kind("the most frequent class for all", of_images=True),
    "logistic_regression": Kind("logistic regression", of_images=True),
    "logistic_regression_class_balanced": Kind("logistic regression, class-balanced"),
    "logistic_regression_cell_balanced": Kind("logistic regression, cell-balanced", "groups", of_images=True),
    "hist_gradient_boosting_class_balanced": Kind("histogram gradient boosting, class-balanced"),
    "threshold_optimizer": Kind("ThresholdOptimizer on logistic regression", "two", needs_group=True),
    "exponentiated_gradient": Kind("ExponentiatedGradient of logistic regressions", "two", needs_group=True),
}
"""The references that there are, by name; `study.training.references` fits them."""


MOST_VALUES = 3 * 64 * 64
"""Of an image whose pixels are fitted to."""


def unsuited(name: str, facts: Facts, of_features: bool = False) -> str | None:
    """Why a reference is not for data of these facts; None: it is.

    Args:
        of_features: whether it is fitted to a frozen network's features of images.
    """
    kind, trained = REFERENCES[name], facts.on("train")
    if not facts.is_table and not kind.of_images:
        return "is for tables, and the data are images"
    if not facts.is_table and not of_features and prod(facts.shape) > MOST_VALUES:
        return f"is for images of at most {MOST_VALUES} values, these have {prod(facts.shape)}"
    if kind.needs != "nothing" and (not trained.bias_classes or facts.some_bias):
        return "needs the bias class of every training sample"
    if kind.needs == "two" and facts.classes != 2:
        return f"is for two classes, the data have {facts.classes}"
    if kind.needs_group and not facts.on("val").bias_classes:
        return "needs the bias class of every validation sample"
    return None


def wanted(spec: "StudySpec") -> Iterator[str]:
    """The references of a study, by name, in the order of the table. None of a function, of a final training, and where
    trials differ in their data."""
    asked = spec.search.references
    if asked is False or spec.function or spec.final_seeds is not None or spec.varied_data:
        return
    names, of_features = REFERENCES if asked in (True, "auto") else asked, is_of_features(spec)
    yield from (name for name in REFERENCES if name in names and unsuited(name, spec.facts, of_features) is None)


def is_of_features(spec: "StudySpec") -> bool:
    """Return whether references are fitted to a frozen network's features, as trials are."""
    return bool(spec.model_sections[0].get("frozen")) and not spec.facts.is_table


def check_references(spec: "StudySpec", problems: Problems) -> None:
    """Check that the references that a file names exist and suit its data."""
    asked = spec.search.references
    if isinstance(asked, bool | str):
        return
    for place, name in enumerate(asked):
        at = ("search", "references", str(place))
        if name not in REFERENCES:
            problems.add(at, f"{name!r} given. {nearest(name, REFERENCES)}Allowed: {', '.join(REFERENCES)}")
        elif spec.function:
            problems.add(at, f"{name!r} given, but a function of your own trains, whose data are its own")
        elif spec.varied_data:
            problems.add(at, f"{name!r} given, but trials differ in their data ({', '.join(spec.varied_data)})")
        elif why := unsuited(name, spec.facts, is_of_features(spec)):
            problems.add(at, f"{name!r} given, which {why}")
    if len(set(asked)) < len(asked):
        problems.add(("search", "references"), f"{asked} given: one is repeated")
