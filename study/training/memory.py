"""How much of a GPU's memory a trial takes."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from study.data.dataset import Facts
from study.training.config import TrialConfig

NO_MATTER = ("seed", "threads", "epochs", "learning_rate", "weight_decay", "lr_milestones", "keep_epochs", "final")
"""Keys of `train` that change nothing about it."""


def trial_memory(document: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """The counted memory of a trial, see `study.training.counted_memory.CountedMemory`: its attributes by name.

    Args:
        document: its complete sections.
        facts: of its data.

    Raises:
        study.training.cannot_count.CannotCount: its network cannot be built or trained without values.
    """
    train = {key: value for key, value in document["train"].items() if key not in NO_MATTER}
    question = {"model": document["model"], "method": document["method"], "train": train}
    shown = {key: value for key, value in asdict(facts).items() if not key.endswith(("names", "title"))}
    return _trial_memory(json.dumps([question, shown], sort_keys=True))


@cache
def _trial_memory(question: str) -> dict[str, Any]:
    from study.training.counted_memory import count

    document, facts = json.loads(question)
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    return asdict(count(TrialConfig.from_document({"data": {}, **document}), Facts(**plain)))
