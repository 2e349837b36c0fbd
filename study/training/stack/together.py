"""Which configurations can be trained as one stack."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from study import methods
from study.knobs import Knob
from study.training.config import TrialConfig

FREE = frozenset(
    {"learning_rate", "momentum", "weight_decay", "schedule", "lr_milestones", "lr_decay", "lr_floor", "warmup_epochs"}
    | {"probe_learning_rate", "clip_norm", "seed", "epochs", "jitter", "corruption", "noise", "crop_scale"}
    | {"keep_epochs", "final"}
)
"""Keys of the `train` section that are each row's own: they are used on the host, or where a row's views are made."""

ALONE: Mapping[str, Any] = {"micro_batch": None, "compile": False, "graph": False}
"""Keys of the `train` section that a stack works with at this value alone."""


def apart(first: TrialConfig, second: TrialConfig) -> str | None:
    """Why two configurations cannot be trained as one; None if they can, as far as configurations tell."""
    for section in ("data", "model"):
        if dict(getattr(first, section)) != dict(getattr(second, section)):
            return f"{section} differs"
    ours, theirs = asdict(first.train), asdict(second.train)
    for key, only in ALONE.items():
        if ours[key] != only:
            return f"train.{key} {ours[key]!r} needs a trial of its own"
    if differing := [key for key in ours.keys() - FREE if ours[key] != theirs[key]]:
        return f"train.{sorted(differing)[0]} differs"
    if (ours["clip_norm"] is None) != (theirs["clip_norm"] is None):
        return "train.clip_norm differs"
    if first.method.keys() != second.method.keys():
        return f"method.{sorted(first.method.keys() ^ second.method.keys())[0]} differs"
    knobs = methods.method_knobs(first.method)
    for key, value in first.method.items():
        if value != second.method[key] and not (key in knobs and _is_number(knobs[key], value, second.method[key])):
            return f"method.{key} differs"
    if first.method.get("adversary") == "classifier":
        return "method.adversary 'classifier' changes what a step does"
    if (varies := methods.needs(first.method).varies) is not None:
        return f"method.{varies} {first.method[varies]!r} has steps that differ from batch to batch"
    return None


def varying(configs: list[TrialConfig]) -> set[str]:
    """The keys of the `method` section whose numbers differ among configurations that go together."""
    first = configs[0].method
    return {key for key in first if any(config.method[key] != first[key] for config in configs)}


def _is_number(knob: Knob, *values: Any) -> bool:
    return float in knob.kinds and all(isinstance(value, (int, float)) for value in values)
