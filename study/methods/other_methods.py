"""Methods that are more than a loss with what can be added to it: the keys of each, its needs, and how it is built.

Each is a row of `METHODS`, whose building function has the method's name and docstring.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from study.data.dataset import Facts
from study.knobs import Knob, Range, SearchRange, Section, read_knobs, to_options
from study.losses.hyperparameter_types import ClassPrior, DebiasedTemperature
from study.losses.wcl_losses import WclForm
from study.methods.debiasing import AdversaryOptions, bias_source_knobs
from study.methods.method_needs import PLAIN_CROSS_ENTROPY, MethodNeeds
from study.methods.sample_weights import balance_knobs

if TYPE_CHECKING:
    from study.methods.base_method import Method, NetworkFactory


@dataclass(frozen=True)
class DeclaredMethod:
    """A method, of the form that `study.methods` asks of a module.

    Attributes:
        build: builds it of a complete, checked section.
        Options: its own keys.
        fixed_needs: what it needs of the data.
        has_bias_source_knobs: whether `bias_source` says where the bias is known from.
    """

    build: "Callable[[Section, Facts, NetworkFactory], Method]"
    Options: type
    fixed_needs: MethodNeeds
    has_bias_source_knobs: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.build.__doc__)

    def knobs(self, method: Section) -> Iterator[Knob]:
        """Yield the knobs of a `method` section."""
        yield from read_knobs(self.Options)
        yield from balance_knobs(method)
        if self.has_bias_source_knobs:
            yield from bias_source_knobs(method, takes_features=False, takes_unknown=False)

    def needs(self, method: Section) -> MethodNeeds:
        """Return what it needs of the data, whatever its keys say."""
        return self.fixed_needs


@dataclass(frozen=True)
class GroupDroOptions:
    """Keys of the method. Its strong L2 penalty is `train.weight_decay` (FSCL Table 10: search both).

    Attributes:
        group_step: step size of the groups' weights.
        group_adjustment: C: a group of n training samples has C / sqrt(n) added to its loss.
    """

    group_step: Annotated[float, Range(low=0.0)] = 0.01
    group_adjustment: Annotated[float, Range(low=0.0), SearchRange(0.0, 5.0)] = 0.0


def group_dro(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """group_dro: the worst group of class and bias counts most (Group DRO, Sagawa et al. 2020; FSCL paper Table 10)."""
    from study.methods.classifier_methods import GroupDro

    asked = to_options(GroupDroOptions, method)
    return GroupDro(asked.group_step, asked.group_adjustment, facts, new_network())


def laftr(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """laftr: a classifier of rows from whose features, and the class, an adversary cannot tell the bias.

    LAFTR for equalized odds, Madras et al. 2018; WCL paper Table 3.
    """
    from study.methods.classifier_methods import Laftr

    return Laftr(to_options(AdversaryOptions, method), facts, new_network())


@dataclass(frozen=True)
class NoOptions:
    """Keys of the method: there are none of its own."""


def equalized_odds_postprocessing(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """equalized_odds_postprocessing: a cross entropy classifier with thresholds per bias class (WCL paper Table 3).

    Hardt et al. 2016. Training knows nothing of it; the thresholds are fitted when the classifier is evaluated.
    """
    from study.methods.classifier_methods import EqualizedOddsPostprocessing

    return EqualizedOddsPostprocessing({"name": PLAIN_CROSS_ENTROPY}, facts, new_network())


@dataclass(frozen=True)
class LearningFromFailureOptions:
    """Keys of the method.

    Attributes:
        q: q of the biased classifier's generalised cross entropy (1 - p^q) / q; 0 is the cross entropy. To be searched
            (WCL paper 6.2): where classes are noisy, as in COMPAS, a large one makes the noise weigh most.
        memory: share of the old value in a sample's running loss.
    """

    q: Annotated[float, Range(low=0.0, high=1.0), SearchRange(0.0, 1.0)] = 0.7
    memory: Annotated[float, Range(low=0.0, below=1.0)] = 0.7


def learning_from_failure(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """learning_from_failure: what a classifier drawn to easy samples fails on weighs more for a second one.

    LfF, Nam et al. 2020; WCL paper 5.1 and Table 3.
    """
    from study.methods.two_networks import LearningFromFailure

    asked = to_options(LearningFromFailureOptions, method)
    return LearningFromFailure(asked.q, asked.memory, facts, new_network(), new_network())


@dataclass(frozen=True)
class JustTrainTwiceOptions:
    """Keys of the method.

    Attributes:
        identification: share of the epochs that train the first network, at least one; the rest trains the second.
        upweight: weight in the second training of a sample that the first network got wrong (lambda_up).
    """

    identification: Annotated[float, Range(above=0.0, below=1.0), SearchRange(0.05, 0.5)] = 0.2
    upweight: Annotated[float, Range(low=1.0), SearchRange(4.0, 100.0, log=True)] = 20.0


def just_train_twice(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """just_train_twice: a second training, where what a first one got wrong weighs more (JTT, Liu et al. 2021)."""
    from study.methods.two_networks import JustTrainTwice

    asked = to_options(JustTrainTwiceOptions, method)
    return JustTrainTwice(asked.identification, asked.upweight, facts, new_network(), new_network())


@dataclass(frozen=True)
class WclOptions:
    """Keys of the method.

    Attributes:
        tau_plus: probability that two samples share their class, in both losses; 0 in the triplet's is Eq. 5.
    """

    temperature: DebiasedTemperature = 0.5
    tau_plus: ClassPrior = 0.1
    form: WclForm = "sum"


def wcl(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """wcl: two encoders without labels; what the biased one finds hard weighs more for the debiased one (WCL paper)."""
    from study.methods.two_networks import Wcl

    asked = to_options(WclOptions, method)
    return Wcl(asked.temperature, asked.tau_plus, asked.form, new_network(), new_network())


DECLARED_METHODS = (
    DeclaredMethod(
        group_dro, GroupDroOptions, MethodNeeds(labels_key="name", bias_key="name"), has_bias_source_knobs=True
    ),
    DeclaredMethod(
        laftr,
        AdversaryOptions,
        MethodNeeds(labels_key="name", bias_key="name", only_tables=True),
        has_bias_source_knobs=True,
    ),
    DeclaredMethod(
        equalized_odds_postprocessing,
        NoOptions,
        MethodNeeds(labels_key="name", bias_key="name", only_binary=True, bias_to_predict=True),
    ),
    DeclaredMethod(learning_from_failure, LearningFromFailureOptions, MethodNeeds(labels_key="name")),
    DeclaredMethod(
        just_train_twice,
        JustTrainTwiceOptions,
        MethodNeeds(labels_key="name", min_epochs=("name", 2), total_epochs_key="identification"),
    ),
    DeclaredMethod(wcl, WclOptions, MethodNeeds(views_key="name", varying_key=None)),
)

METHODS = {row.build.__name__: row for row in DECLARED_METHODS}
"""Methods by name."""
