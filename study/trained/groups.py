"""How well a final model does for each group of class and bias class, and which it serves worst."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from study.data import Dataset, Facts, Split
from study.home.record import TrialRecord
from study.metrics.rules import FEWEST
from study.ranking import epochs
from study.spec import StudySpec

ALIKE = 1e-6
"""Difference of accuracies below which they are the same."""


@dataclass(frozen=True)
class Group:
    """A group on a split: its class and bias class by name, how many samples it has, and the share of right ones."""

    target: str
    bias: str
    samples: int
    accuracy: float
    metric: str


def split_of(trial: TrialRecord) -> str:
    """The split that a final model is described on."""
    return "test" if trial.tested else "val"


def groups(spec: StudySpec, trial: TrialRecord, dataset: Dataset) -> list[Group]:
    """Those with samples and a measured accuracy, by class and then bias class; none where there are too many."""
    split, facts = split_of(trial), dataset.facts
    samples, found = dataset.splits[split], []
    for target in range(facts.classes):
        for bias in range(facts.on(split).bias_classes or 0):
            metric = f"{split}/group_{target}_{bias}_accuracy"
            accuracy = trial.tested.get(metric, epochs.value(spec.objective, trial, metric))
            if accuracy is None or samples.bias is None:
                continue
            count = int(np.sum((samples.target == target) & (samples.bias == bias)))
            names = (facts.class_names or tuple(map(str, range(facts.classes))))[target]
            bias_names = facts.bias_names or tuple(map(str, range(facts.bias_classes or 0)))
            found.append(Group(names, bias_names[bias], count, accuracy, metric))
    return found


def worst(spec: StudySpec, trial: TrialRecord, dataset: Dataset) -> dict[str, Any] | None:
    """What `predictions.warning` needs, as plain values; None where groups are not known, or all of `FEWEST` samples
    and more are served alike."""
    split = split_of(trial)
    values = {**epochs.values(spec.objective, trial), **trial.tested}
    overall, least = values.get(f"{split}/accuracy"), values.get(f"{split}/worst_group_accuracy")
    if overall is None or least is None or overall - least < ALIKE:
        return None
    found = groups(spec, trial, dataset)
    sizes = _sizes(dataset.splits[split], dataset.facts)
    group = min((one for one in found if one.samples >= FEWEST), key=lambda one: one.accuracy, default=None)
    if (found and (group is None or overall - group.accuracy < ALIKE)) or (not found and sizes and sizes[0] < FEWEST):
        return None
    of_group = None if group is None else asdict(group)
    least = least if group is None else group.accuracy
    return {"split": split, "overall": overall, "accuracy": least, "group": of_group, "sizes": sizes}


def _sizes(samples: Split, facts: Facts) -> list[int]:
    """How many samples each group has that has any, in ascending order."""
    if samples.bias is None or not facts.bias_classes:
        return []
    known = (samples.target >= 0) & (samples.bias >= 0)
    counts = np.bincount(samples.target[known] * facts.bias_classes + samples.bias[known])
    return sorted(counts[counts > 0].tolist())
