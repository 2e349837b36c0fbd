"""Add terms against the bias to a method: a regulariser, an adversary; and where the bias is known from."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from study.knobs import Knob, Range, SearchRange, Section, read_knobs, to_options
from study.losses.loss_catalogue import Loss, regularisers_by_name
from study.losses.pairs import gram_matrix

if TYPE_CHECKING:
    from torch import Tensor

NamedTensors = Mapping[str, Optional["Tensor"]]


@dataclass(frozen=True)
class TermWeights:
    """Weights of the two terms (FairKL paper Eq. 11).

    The papers' values are those of Biased-MNIST at its strongest correlation (Table 6) and of Corrupted CIFAR-10
    (Table 7); the ranges hold all of Tables 6, 7 and 12 and appendix B.2. The released code squares alpha and
    multiplies it by temperature over 0.07, so that the printed 0.03 and 0.1 weigh the first term by 0.0013 and 0.014:
    those are the values here, where alpha acts once. They are not for `alpha_squared`.

    Attributes:
        alpha: weight of the contrastive (or classification) term.
        lambda_: weight of the regulariser.
        alpha_squared: alpha acts squared where lambda is not 0, as in the paper's released code; to reproduce only.
    """

    alpha: Annotated[float, Range(low=0.0), SearchRange(0.0001, 1.0, log=True, paper=(0.0013, 0.014))] = 1.0
    lambda_: Annotated[float, Range(low=0.0), SearchRange(0.5, 1.5, paper=(0.75, 1.0))] = 0.0
    alpha_squared: bool = False

    @property
    def contrastive_factor(self) -> float:
        """Factor of the first term."""
        return self.alpha**2 if self.alpha_squared and self.lambda_ != 0 else self.alpha


@dataclass(frozen=True)
class LossTerm:
    """A loss function with its hyperparameters; of the named tensors it takes those that it has parameters for."""

    function: Loss
    options: Section

    @classmethod
    def from_method(cls, function: Loss, method: Section) -> LossTerm:
        """Set the hyperparameters to those of a `method` section."""
        accepted = {knob.key for knob in read_knobs(function)}
        parameters = {name: name.rstrip("_") for name in inspect.signature(function).parameters}
        return cls(function, {name: method[key] for name, key in parameters.items() if key in accepted & method.keys()})

    @cached_property
    def accepted_tensors(self) -> frozenset[str]:
        """Named tensors that the function may be given."""
        _, *others = inspect.signature(self.function).parameters
        return frozenset(others) - {knob.key for knob in read_knobs(self.function)}

    def __call__(self, first: Tensor, inputs: NamedTensors) -> Tensor:
        tensors = {name: inputs[name] for name in self.accepted_tensors if inputs.get(name) is not None}
        return self.function(first, **tensors, **self.options)


@dataclass(frozen=True)
class RegularisedLoss:
    """alpha * loss + lambda * regulariser, alpha applied once (FairKL paper Eq. 11)."""

    contrastive: LossTerm
    regulariser: LossTerm | None
    weights: TermWeights

    def __call__(self, embeddings: Tensor, features: Tensor, inputs: NamedTensors, labels: NamedTensors) -> Tensor:
        """Compute the value to minimise, a scalar.

        Args:
            embeddings: what the contrastive term sees, unit rows, (V, B, D).
            features: what the regulariser sees, the encoder's output of the first view, unit rows, (1, B, F); the same
                tensor as `embeddings` where there is one view and no projection head.
            inputs: what the loss may ask for by name: `target`, `bias`, ...
            labels: what the regulariser may ask for by name.
        """
        if self.regulariser is None or self.weights.lambda_ == 0:
            return self.weights.contrastive_factor * self.contrastive(embeddings, inputs)
        if features is embeddings:
            shared = {"similarity": gram_matrix(embeddings)}
            inputs, labels = {**inputs, **shared}, {**labels, **shared}
        contrast = self.contrastive(embeddings, inputs)
        return self.weights.contrastive_factor * contrast + self.weights.lambda_ * self.regulariser(features, labels)


NO_REGULARISER = "none"


def regulariser_knobs(method: Section) -> Iterator[Knob]:
    """Yield the knobs `regulariser`, `alpha`, and where there is a regulariser `lambda` and its own hyperparameters."""
    about = "debiasing term that is added to the loss, weighted by `lambda`"
    yield Knob("regulariser", Literal[(NO_REGULARISER, *regularisers_by_name())], NO_REGULARISER, False, about)
    function = regularisers_by_name().get(str(method.get("regulariser")))
    yield from (knob for knob in read_knobs(TermWeights) if function or knob.key == "alpha")
    if function:
        yield from read_knobs(function)


def build_regulariser(method: Section) -> LossTerm | None:
    """Return the regulariser of a checked `method` section, if it has one."""
    function = regularisers_by_name().get(str(method.get("regulariser")))
    return LossTerm.from_method(function, method) if function else None


BIAS_FROM_LABELS = "labels"
BIAS_FROM_SOME_LABELS = "some_labels"
BIAS_FROM_MODEL = "model"
BIAS_FROM_EARLY_LAYERS = "early_layers"


BIAS_SOURCE_DOC = (
    "where the bias is known from: `labels` of all samples; `some_labels`; `model`: features of a bias-capturing model "
    "(FairKL paper B.2.4); `early_layers` of a frozen network: the class that a linear classifier of them gives"
)
"""Meaning of the key `bias_source`."""


@dataclass(frozen=True)
class BiasSourceOptions:
    """Keys of `bias_source`: of `some_labels` (FSCL paper Table 5), of `model`, and of what stands in for labels.

    The model is a BagNet trained first, once for a study, on the targets alone.

    Attributes:
        known_bias: share of the training samples whose bias the method knows, drawn by the trial's seed.
        unknown_bias: samples of unknown bias: `pseudo_labels` of a classifier trained on the known ones, or a loss
            without bias, `sup_con`.
        bias_field: receptive field of the bias-capturing model, in pixels.
        bias_epochs: epochs of the network that stands in for bias labels, by Adam in batches of 256.
        bias_learning_rate: learning rate of the network that stands in for bias labels.
    """

    known_bias: Annotated[float, Range(above=0.0, high=1.0)] = 0.1
    unknown_bias: Literal["pseudo_labels", "sup_con"] = "pseudo_labels"
    bias_field: Literal[9, 17, 33] = 9
    bias_epochs: Annotated[int, Range(low=1)] = 10
    bias_learning_rate: Annotated[float, Range(above=0.0)] = 0.001


def bias_source_knobs(method: Section, takes_features: bool, takes_unknown: bool) -> Iterator[Knob]:
    """Yield the knobs of the source of the bias of a `method` section.

    Args:
        takes_features: the functions can work with bias features; else labels are the only source.
        takes_unknown: the method can do without the bias of some samples.
    """
    by_model = [BIAS_FROM_MODEL] if takes_features else []
    sources = (BIAS_FROM_LABELS, BIAS_FROM_SOME_LABELS, BIAS_FROM_EARLY_LAYERS, *by_model)
    yield Knob("bias_source", Literal[sources], BIAS_FROM_LABELS, False, BIAS_SOURCE_DOC)
    with_some = ["known_bias", "unknown_bias"] if takes_unknown else ["known_bias"]
    keys = {BIAS_FROM_SOME_LABELS: with_some, BIAS_FROM_MODEL: ["bias_field"]}.get(str(method.get("bias_source")), [])
    if keys and method.get("unknown_bias") != "sup_con":
        keys += ["bias_epochs", "bias_learning_rate"]
    yield from (knob for knob in read_knobs(BiasSourceOptions) if knob.key in keys)


def bias_model_receptive_field(method: Section) -> int | None:
    """Return the receptive field of the bias-capturing model that a `method` section asks for, if it does."""
    return to_options(BiasSourceOptions, method).bias_field if method.get("bias_source") == BIAS_FROM_MODEL else None


ADVERSARY_DOC = (
    "classifier of the bias against which the encoder is trained, by gradient reversal: `representation`: beside the "
    "method's own loss; `classifier`, of a contrastive method: in a stage of its own, the last `classifier_epochs`"
)
"""Meaning of the key `adversary`."""


@dataclass(frozen=True)
class AdversaryOptions:
    """Keys of an adversary.

    Attributes:
        adversary_weight: weight of the reversed gradient.
        adversary_hidden: units of the adversary's one hidden layer.
    """

    adversary_weight: Annotated[float, Range(low=0.0), SearchRange(0.01, 0.1, log=True)] = 0.1
    adversary_hidden: Annotated[int, Range(low=1)] = 128


@dataclass(frozen=True)
class ClassifierStageOptions:
    """Key of a stage in which a classifier and an adversary train the encoder on.

    Attributes:
        classifier_epochs: number of last epochs that train the encoder with cross entropy and the adversary (FSCL Table
            6).
    """

    classifier_epochs: Annotated[int, Range(low=1)] = 10


def adversary_knobs(method: Section, has_stage: bool) -> Iterator[Knob]:
    """Yield the knobs of an adversary of a `method` section.

    Args:
        has_stage: it can have one in a stage of its own.
    """
    places = ("none", "representation", *(["classifier"] if has_stage else []))
    yield Knob("adversary", Literal[places], "none", False, ADVERSARY_DOC)
    if method.get("adversary", "none") != "none":
        yield from read_knobs(AdversaryOptions)
    if method.get("adversary") == "classifier":
        yield from read_knobs(ClassifierStageOptions)


def classifier_stage_epochs(method: Section) -> int:
    """Return how many of the last epochs are a classifier stage; 0: there is none."""
    if method.get("adversary") != "classifier":
        return 0
    return to_options(ClassifierStageOptions, method).classifier_epochs
