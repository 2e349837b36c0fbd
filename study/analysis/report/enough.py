"""Whether a search was enough, in words."""

from functools import partial

from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.ranking.remaining_gain import remaining_gain, sentence
from study.spec import StudySpec


def enough(spec: StudySpec, record: StudyRecord) -> str | None:
    """What more search of this kind would gain at most; None where that is not known."""
    return _said(spec, record, is_known=True)


def unknown(spec: StudySpec, record: StudyRecord) -> str | None:
    """Why it is not known; None where it is, or before a trial of the search is complete."""
    return _said(spec, record, is_known=False)


def _said(spec: StudySpec, record: StudyRecord, is_known: bool) -> str | None:
    if spec.final_seeds is not None or not any(trial.state == "complete" for trial in record.by_stage("search")):
        return None
    remaining = remaining_gain(spec, record)
    if (remaining.gain is not None) != is_known:
        return None
    return sentence(spec, remaining, partial(formatting.change, spec.metric, signed=False))
