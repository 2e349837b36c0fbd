"""Where a method's knowledge of the bias comes from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from study.knobs import Knob, Range, knobs

LABELS, SOME_LABELS, MODEL = "labels", "some_labels", "model"


ABOUT = (
    "where the bias is known from: `labels`; `some_labels`: labels of a part of the samples only; `model`, where the "
    "loss can do with them: features of a bias-capturing model instead of labels (FairKL paper B.2.4)"
)
"""What the key `bias_source` means."""


@dataclass(frozen=True)
class SomeLabels:
    """Keys of `bias_source: some_labels` (FSCL paper Table 5)."""

    known_bias: Annotated[
        float,
        Range(above=0.0, high=1.0),
        Doc("share of the training samples whose bias the method knows, drawn by the trial's seed"),
    ] = 0.1
    unknown_bias: Annotated[
        Literal["pseudo_labels", "sup_con"],
        Doc(
            "samples of unknown bias: `pseudo_labels` of a classifier trained on the known ones, or a loss "
            "without bias, `sup_con`"
        ),
    ] = "pseudo_labels"


@dataclass(frozen=True)
class BiasModel:
    """Keys of `bias_source: model`: a BagNet trained first, once for a study, on the targets alone."""

    bias_field: Annotated[Literal[9, 17, 33], Doc("receptive field of the bias-capturing model, in pixels")] = 9


@dataclass(frozen=True)
class Preparation:
    """Keys of the network that stands in for labels."""

    bias_epochs: Annotated[
        int, Range(low=1), Doc("epochs of the network that stands in for bias labels, by Adam in batches of 256")
    ] = 10
    bias_learning_rate: Annotated[
        float, Range(above=0.0), Doc("learning rate of the network that stands in for bias labels")
    ] = 0.001


def source_knobs(method: Mapping[str, Any], takes_features: bool, takes_unknown: bool) -> Iterator[Knob]:
    """The keys about the source of the bias of a `method` section.

    Args:
        takes_features: the functions can work with bias features; else labels are the only source.
        takes_unknown: the method can do without the bias of some samples.
    """
    sources = (LABELS, SOME_LABELS, *([MODEL] if takes_features else []))
    yield Knob("bias_source", Literal[sources], LABELS, False, ABOUT)
    source = method.get("bias_source", LABELS)
    if source == SOME_LABELS:
        yield from (knob for knob in knobs(SomeLabels) if takes_unknown or knob.key == "known_bias")
    if source == MODEL:
        yield from knobs(BiasModel)
    if source in (SOME_LABELS, MODEL) and method.get("unknown_bias") != "sup_con":
        yield from knobs(Preparation)


def patch(method: Mapping[str, Any]) -> int | None:
    """The receptive field of the bias-capturing model that a `method` section asks for, if it does."""
    return int(method.get("bias_field", BiasModel.bias_field)) if method.get("bias_source") == MODEL else None
