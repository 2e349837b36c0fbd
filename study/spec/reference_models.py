"""References of a study: models of the field's libraries that need no search, which the search has to beat."""

from collections.abc import Collection, Iterator
from math import prod
from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.errors import suggest_or_list
from study.methods.reference import REFERENCES, ReferenceKind
from study.spec.key_errors import ProblemCollector

if TYPE_CHECKING:
    from study.spec.study_spec import StudySpec

__all__ = ["REFERENCES", "ReferenceKind"]

MAX_PIXEL_INPUT_VALUES = 3 * 64 * 64
"""Values of an image up to which a reference is fitted to its pixels."""


def why_reference_unsuited(name: str, facts: Facts, of_features: bool = False) -> str | None:
    """Return why a reference is not for data of these facts; None: it is.

    Args:
        of_features: whether it is fitted to a frozen network's features of images.
    """
    kind, trained = REFERENCES[name], facts.facts_of_split("train")
    if not facts.is_table and not kind.suits_images:
        return "is for tables, and the data are images"
    if not facts.is_table and not of_features and prod(facts.shape) > MAX_PIXEL_INPUT_VALUES:
        return f"is for images of at most {MAX_PIXEL_INPUT_VALUES} values, these have {prod(facts.shape)}"
    if kind.needs != "nothing" and (not trained.bias_classes or facts.some_bias):
        return "needs the bias class of every training sample"
    if kind.needs == "two" and facts.classes != 2:
        return f"is for two classes, the data have {facts.classes}"
    if kind.predicts_by_group and not facts.facts_of_split("val").bias_classes:
        return "needs the bias class of every validation sample"
    return None


def requested_reference_names(spec: "StudySpec") -> Iterator[str]:
    """Yield the references of a study, by name, in the order of `REFERENCES`.

    There are none for a function, for a final training, and where trials differ in their data.
    """
    asked = spec.search.references
    if asked is False or spec.training_function or spec.final_seeds is not None or spec.varied_data_keys:
        return
    names: Collection[str] = REFERENCES if isinstance(asked, bool | str) else asked
    of_features = fits_references_to_frozen_features(spec)
    for name in REFERENCES:
        if name in names and why_reference_unsuited(name, spec.data_facts, of_features) is None:
            yield name


def fits_references_to_frozen_features(spec: "StudySpec") -> bool:
    """Return whether references are fitted to a frozen network's features, as trials are."""
    return bool(spec.model_sections[0].get("frozen")) and not spec.data_facts.is_table


def check_references(spec: "StudySpec", problems: ProblemCollector) -> None:
    """Check that the references that a file names exist and suit its data."""
    asked = spec.search.references
    if isinstance(asked, bool | str):
        return
    for place, name in enumerate(asked):
        at = ("search", "references", str(place))
        if name not in REFERENCES:
            problems.add_problem(at, f"{name!r} given. {suggest_or_list(name, REFERENCES)}")
        elif spec.training_function:
            problems.add_problem(at, f"{name!r} given, but a function of your own trains, whose data are its own")
        elif spec.varied_data_keys:
            keys = ", ".join(spec.varied_data_keys)
            problems.add_problem(at, f"{name!r} given, but trials differ in their data ({keys})")
        elif why := why_reference_unsuited(name, spec.data_facts, fits_references_to_frozen_features(spec)):
            problems.add_problem(at, f"{name!r} given, which {why}")
    if len(set(asked)) < len(asked):
        problems.add_problem(("search", "references"), f"{asked} given: one is repeated")
