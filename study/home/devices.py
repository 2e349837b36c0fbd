"""What a study's trials ran on, as its ledger tells."""

from collections.abc import Mapping
from typing import NamedTuple

from study.home.record import StudyRecord

NAMES = {"driver": "driver", "cuda": "CUDA", "rocm": "ROCm", "capability": "compute capability"}


class Device(NamedTuple):
    """A device, what is known of it (see `study.training.device.facts`), and how many trials ran on one last."""

    facts: Mapping[str, str]
    trials: int


def devices(record: StudyRecord) -> list[Device]:
    """The kinds of device that trials ran on, in the order in which they were first used. A trial counts where it ran
    last; one whose device is not known does not count."""
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    for trial in list(record.trials.values()):
        if trial.device:
            key = tuple(trial.device.items())
            counts[key] = counts.get(key, 0) + 1
    return [Device(dict(key), count) for key, count in counts.items()]


def in_words(facts: Mapping[str, str]) -> str:
    """A device as one phrase: `NVIDIA H100 80GB HBM3 (driver 580.65.06, CUDA 13.2, compute capability 9.0)`."""
    if facts["name"] == "cpu":
        return "CPU"
    known = ", ".join(f"{word} {facts[key]}" for key, word in NAMES.items() if key in facts)
    return f"{facts['name']} ({known})" if known else facts["name"]
