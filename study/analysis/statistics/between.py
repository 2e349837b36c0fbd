"""The best configurations of two studies against each other, where they ran on the same seeds, data and splits."""

from dataclasses import replace
from typing import Any

from study.analysis.statistics.difference import Side, chosen_among, difference, side_of
from study.home.record import StudyRecord
from study.ranking import best
from study.spec import StudySpec

Study = tuple[StudySpec, StudyRecord]


def against(first: Study, other: Study) -> dict[str, Any]:
    """The other study's best minus the first one's, by metric of the study and split.

    Both bests were chosen by what they are compared by. The interval allows for each pair that could have been chosen.

    Returns:
        Each as `Difference.to_document`; empty for the same study, or where data, splits or epochs differ, or the bests
        share fewer than two seeds.
    """
    one, two = (_best(*study) for study in (other, first))
    if one is None or two is None or first[0].name == other[0].name or _setting(first[0]) != _setting(other[0]):
        return {}
    gaps = {
        name: difference(one.values(name), two.values(name), one.among * two.among)
        for metric in first[0].objective.metrics
        for name in (f"{split}/{metric.split('/')[1]}" for split in ("val", "test"))
    }
    return {name: gap.to_document() for name, gap in gaps.items() if gap and gap.paired}


def _best(spec: StudySpec, record: StudyRecord) -> Side | None:
    """The best configuration; the baseline, if it leads, was chosen as one more."""
    chosen = best(record, spec)
    return replace(side_of(spec, chosen), among=chosen_among(spec, record, chosen) + 1) if chosen else None


def _setting(spec: StudySpec) -> list[Any]:
    """What must be the same: data and splits, and when a trial is taken."""
    return [*spec.data_sections, spec.objective.window]
