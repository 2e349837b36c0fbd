"""Which cards a study's trials fit, by the memory that is counted of them."""

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from study.errors import UserError
from study.spec import StudySpec
from study.spec.schema import Domain

if TYPE_CHECKING:
    from study.training.counted_memory import CountedMemory

GIB = 2**30
CARDS = (80, 40, 24)
"""GiB of the cards that a plan looks at."""

LIBRARIES = 0.05
"""Share of a card that is left to CUDA, its libraries and gaps between tensors, which are not counted."""

MOST_CASES = 4
"""Configurations that are counted: the largest of each network, size of images and precision."""

SIZES = (
    "train.batch_size",
    "train.micro_batch",
    "train.crop_size",
    "method.views",
    "method.positives",
    "train.precision",
)
"""Further keys that a warning names."""


def memory(spec: StudySpec, samples: int | None = None) -> dict[str, Any] | None:
    """The memory of a study's largest trial, counted without a GPU; None for a function of the user's own, and where a
    network cannot be counted.

    Args:
        samples: of its largest data set, all splits together; None: not known.

    Returns:
        `step_gib`, `evaluation_gib`: at the peak of a training step and of a batch of evaluation, networks and
        optimizer included; `images_gib`: of all samples, None where they are not counted; `needed_gib`: what must fit;
        `fits`: by GiB of a card, whether a trial fits the study's share of it;
        `params`: of that trial; `notes`.
    """
    if spec.function:
        return None
    counted = []
    for params in _candidates(spec):
        if (found := _counted(spec, params)) is None:
            return None
        counted.append((found, params))
    most, params = max(counted, key=lambda one: max(one[0].step, one[0].evaluation))
    document = spec.trial_document(params)
    facts = spec.describe(document["data"])
    peak = max(most.step, most.evaluation)
    images = None if samples is None else samples * math.prod(facts.shape) * (4 if facts.is_table else 1)
    return {
        "step_gib": most.step / GIB,
        "evaluation_gib": most.evaluation / GIB,
        "images_gib": None if images is None else images / GIB,
        "needed_gib": peak / GIB,
        "fits": {str(card): fits(peak, card * GIB, spec.resources.gpu) for card in CARDS},
        "params": {key: value for key, value in params.items() if key in spec.space.structure or key in SIZES},
        "notes": _notes(document, most),
    }


def fits(peak: int, card: float, share: float) -> bool:
    """Return whether so many bytes fit a share (at most 1) of a card of so many bytes."""
    return peak <= min(share, 1.0) * card * (1 - LIBRARIES)


def smallest_card() -> int | None:
    """Bytes of the smallest GPU that this process sees, where it has loaded PyTorch; None: it sees none."""
    if "torch" not in sys.modules:  # a study without GPU has no use for it
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    return min(torch.cuda.get_device_properties(card).total_memory for card in range(torch.cuda.device_count()))


def check_card(spec: StudySpec, card: int) -> None:
    """Refuse a study whose own configuration cannot fit its share of this machine's card; one that cannot be counted
    may try.

    Args:
        card: its memory in bytes.

    Raises:
        UserError: says what a trial takes, and what would take less.
    """
    if spec.function or not spec.resources.gpu or (most := _counted(spec, {})) is None:
        return
    peak, share = max(most.step, most.evaluation), min(spec.resources.gpu, 1.0)
    if peak > share * card:
        raise UserError(
            f"a trial takes {peak / GIB:.1f} GiB of a GPU by count, its share of this one is "
            f"{share * card / GIB:.1f} GiB. Less: {_remedies(spec)}"
        )


def lines(document: Mapping[str, Any] | None, share: float) -> list[str]:
    """The same for people."""
    if document is None:
        return []
    images = document["images_gib"]
    parts = f"a step {document['step_gib']:.1f}, evaluation {document['evaluation_gib']:.1f}"
    beside = "" if images is None else f"; all samples {images:.1f} more, or in the host's memory where they do not fit"
    fitting = [size for size, does in document["fits"].items() if does]
    of = "" if share >= 1 else f"{share:g} of "
    lacking = [size for size, does in document["fits"].items() if not does]
    where = f"fits {of}a card of {' or '.join(fitting)} GiB" if fitting else f"fits {of}no card"
    params = ", ".join(f"{key} {value}" for key, value in document["params"].items())
    which = f", of the largest with {params}" if params else ""
    told = [
        f"GPU memory of a trial{which}: {document['needed_gib']:.1f} GiB by count ({parts}{beside}): {where}"
        + (f", not of {' or '.join(lacking)} GiB" if lacking else "")
    ]
    return told + document["notes"]


def _remedies(spec: StudySpec) -> str:
    train = spec.base["train"]
    ways = [] if train["precision"] == "bfloat16" else ["--set train.precision=bfloat16"]
    ways += ["a larger resources.gpu"] if spec.resources.gpu < 1 else []
    return ", ".join([*ways, "a smaller train.batch_size, or train.micro_batch"])


def _notes(document: Mapping[str, Any], most: "CountedMemory") -> list[str]:
    notes = []
    if most.without_loss:
        notes.append("  the loss's own memory is not in it")
    micro = document["train"]["micro_batch"]
    if micro is not None and most.batch_norm:
        notes.append(
            f"  train.micro_batch: batch normalisation takes its statistics from the views of {micro} samples, not of "
            f"{document['train']['batch_size']}: results differ from those of the whole batch"
        )
    return notes


def _counted(spec: StudySpec, params: Mapping[str, Any]) -> "CountedMemory | None":
    """Return a trial's memory; None: it cannot be counted."""
    from study.training.counted_memory import CannotCount, count

    config = spec.trial_config(params)
    try:
        return count(config, spec.describe(config.data))
    except CannotCount:
        return None


def _candidates(spec: StudySpec) -> list[dict[str, Any]]:
    """The largest trials among those of each combination of the keys that decide on others."""
    found: dict[str, tuple[float, dict[str, Any]]] = {}
    for case in spec.space.cases():

        def largest(key: str, domain: Domain, case: Mapping[str, Any] = case) -> Any:
            return case[key] if key in case else _largest(key, domain)

        params = spec.space.walk(largest)
        document = spec.trial_document(params)
        kind = json.dumps([document["model"], spec.describe(document["data"]).shape, document["train"]["precision"]])
        pixels = _pixels(spec, params)
        if kind not in found or pixels > found[kind][0]:
            found[kind] = pixels, params
    return [params for _, params in sorted(found.values(), key=lambda one: -one[0])[:MOST_CASES]]


def _largest(key: str, domain: Domain) -> Any:
    ends = domain.ends()
    numbers = [end for end in ends if isinstance(end, int | float) and not isinstance(end, bool)]
    if key == "train.precision" and "float32" in ends:
        return "float32"
    return max(numbers) if len(numbers) == len(ends) and key.startswith(("train.", "method.", "model.")) else ends[0]


def _pixels(spec: StudySpec, params: Mapping[str, Any]) -> float:
    """Return what a step sees, roughly: by it the largest trials are found."""
    document = spec.trial_document(params)
    method, train = document["method"], document["train"]
    shape = spec.describe(document["data"]).shape
    views = 2 if train["augmentation"] != "none" and "views" not in method else int(method.get("views", 1))
    views += int(method.get("positives", 1)) - 1
    half = 2 if train["precision"] == "bfloat16" else 1
    return float(train["batch_size"] * views * math.prod(shape[-2:]) / half)
