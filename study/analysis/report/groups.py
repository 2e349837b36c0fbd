"""What the summary says of groups: which is the worst, on how many samples, and how far its accuracy may be off."""

from collections.abc import Iterator

from study.analysis.statistics import formatting
from study.analysis.statistics.debiased import group_range, sampling_error, worst_group
from study.analysis.statistics.difference import Side, final_side, sides
from study.home.record import StudyRecord
from study.metrics import group_names
from study.metrics.rules import DEBIASED
from study.spec import StudySpec

WORST = "worst_group_accuracy"
BY_CLASS = ("equalized_odds", "equal_opportunity")


def groups(spec: StudySpec, record: StudyRecord) -> Iterator[str]:
    """Paragraphs below the summary; none without bias labels."""
    compared = [side for side in (*sides(spec, record), final_side(spec, record)) if side]
    if not any(side.spread(f"{split}/{name}") for side in compared for split in ("val", "test") for name in DEBIASED):
        return
    for split in ("val", "test"):
        texts = [text for side in compared if (text := _worst(record, side, split))]
        if texts:
            yield f"The worst group on {split}: {'; '.join(texts)}.{_sizes(record, split)}"
        cells = (record.groups or {}).get(split)
        if cells and any(side.spread(f"{split}/{name}") for side in compared for name in BY_CLASS):
            yield f"On {split} {group_names.compared(cells, (record.groups or {}).get('classes'))}"
    if named := _named(record):
        yield named
    side = compared[-1]
    whose = side.label if side.label.startswith("trial") else f"the {side.label}"
    if any(
        sampling_error(record, side, f"{split}/{name}") is not None for split in ("val", "test") for name in DEBIASED
    ):
        yield (
            f"The split's error is the standard error of the value of {whose}, because the split is a sample: more "
            "seeds do not make it smaller. The smallest of several groups is, besides, too low on average, the more so "
            "the fewer samples they have."
        )


def _worst(record: StudyRecord, side: Side, split: str) -> str | None:
    """The worst group of a side, with its name and size where they are known."""
    value = side.spread(f"{split}/{WORST}")
    if value is None:
        return None
    text = f"{side.label} {formatting.mean(WORST, value)}"
    group = worst_group(record, side, split)
    if group is None:
        return text
    samples = "" if group.samples is None else f" of {formatting.count(group.samples, 'sample')}"
    return f"{text} ({group.name}{samples})"


def _named(record: StudyRecord) -> str | None:
    """Which class and bias class each number of a group stands for; None for data without names."""
    found = group_names.of_study(record.groups)
    return f"Groups by name: {'; '.join(f'{name}: {words}' for name, words in found.items())}." if found else None


def _sizes(record: StudyRecord, split: str) -> str:
    found = group_range(record, split)
    return f" The split has {found[0]} groups of {found[1]} to {found[2]} samples." if found else ""
