"""reference: a model of scikit-learn or fairlearn that needs no search, fitted at once, to be compared with or used.

`study.training.reference_fitting` fits it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from study.catalogue import REFERENCE_METHOD
from study.data.dataset import Facts
from study.knobs import Knob, Section
from study.methods.method_needs import MethodNeeds

if TYPE_CHECKING:
    from study.methods.base_method import Method, NetworkFactory

NAMES = [REFERENCE_METHOD]


@dataclass(frozen=True)
class ReferenceKind:
    """A reference.

    Attributes:
        description: its name within a sentence.
        needs: `groups`: the bias class of every training sample; `two`: that, and two classes.
        suits_images: whether it is also fitted to images: to their pixels, or to a frozen network's features.
        predicts_by_group: whether it needs the bias class of whom it judges, or draws by chance: it is shown, and
            neither chosen nor exported.
        is_constant: whether it says the same class of every sample, which shows what guessing is worth.
    """

    description: str
    needs: Literal["nothing", "groups", "two"] = "nothing"
    suits_images: bool = False
    predicts_by_group: bool = False
    is_constant: bool = False


REFERENCES: Mapping[str, ReferenceKind] = {
    "majority": ReferenceKind("the most frequent class for all", suits_images=True, is_constant=True),
    "logistic_regression": ReferenceKind("logistic regression", suits_images=True),
    "logistic_regression_class_balanced": ReferenceKind("class-balanced logistic regression"),
    "logistic_regression_cell_balanced": ReferenceKind(
        "cell-balanced logistic regression", "groups", suits_images=True
    ),
    "hist_gradient_boosting_class_balanced": ReferenceKind("class-balanced gradient boosting"),
    "threshold_optimizer": ReferenceKind("ThresholdOptimizer on logistic regression", "two", predicts_by_group=True),
    "exponentiated_gradient": ReferenceKind(
        "ExponentiatedGradient of logistic regressions", "two", predicts_by_group=True
    ),
}
"""References by name; `study.training.reference_fitting` fits them."""


EXPORTABLE_REFERENCES = tuple(name for name, kind in REFERENCES.items() if not kind.predicts_by_group)


def knobs(method: Section) -> Iterator[Knob]:
    """Yield the knob `model`: which of the references that judge by a sample alone."""
    yield Knob("model", Literal[EXPORTABLE_REFERENCES], None, True, "which model of scikit-learn")


def needs(method: Section) -> MethodNeeds:
    """Return the needs: bias labels where cells weigh alike."""
    name = method.get("model")
    return MethodNeeds(bias_key="model" if name in REFERENCES and REFERENCES[str(name)].needs == "groups" else None)


def build(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """Build the method of a complete, checked section."""
    from study.methods.fitted_classifier import ReferenceMethod

    return ReferenceMethod(str(method["model"]), facts, new_network())
