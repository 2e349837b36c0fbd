"""Whether a search was enough, in words."""

from functools import partial

from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.ranking.remaining_gain import remaining_gain, sentence
from study.spec import StudySpec


def enough(spec: StudySpec, record: StudyRecord) -> str | None:
    """What more search of this kind would gain at most, or why that is not known; None before a trial is complete."""
    remaining = remaining_gain(spec, record)
    if spec.final_seeds is not None or not any(trial.state == "complete" for trial in record.by_stage("search")):
        return None
    return sentence(spec, remaining, partial(formatting.change, spec.metric, signed=False))
