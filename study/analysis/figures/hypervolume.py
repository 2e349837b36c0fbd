"""The hypervolume of the front over the trials of a search with several metrics."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.style import BLUE, new, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.hypervolume import over_trials
from study.home.record import StudyRecord
from study.ranking import searched
from study.spec import StudySpec


@styled
def hypervolume(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """How the front grew; None for a study of one metric, and with fewer than two complete configurations."""
    if len(spec.objective.metrics) < 2:
        return None
    volumes = _volumes(spec, record)
    if len(volumes) < 2:
        return None
    last = max(volumes.values())
    reached = next(number for number, volume in volumes.items() if volume == last)
    after = sum(number > reached for number in _ended(record))
    title = f"Hypervolume {last:.4g} after trial {reached}"
    title += f"; the {formatting.count(after, 'trial')} after it added nothing" if after else ""
    figure, (axes,) = new(title, 3.2, 1)
    axes.step(*steps(spec, record), where="post", color=BLUE, linewidth=2.2)
    axes.set_xlabel("trial")
    axes.set_ylabel("hypervolume")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def steps(spec: StudySpec, record: StudyRecord) -> tuple[list[int], list[float]]:
    """Numbers of trials, up to the last that ended, and the hypervolume after each."""
    volumes = _volumes(spec, record)
    heights = list(volumes.values())
    return [*volumes, max(_ended(record))], [*heights, heights[-1]]


def _volumes(spec: StudySpec, record: StudyRecord) -> dict[int, float]:
    return over_trials(spec, sorted(searched(record, spec), key=lambda candidate: candidate.trial.number))


def _ended(record: StudyRecord) -> list[int]:
    return [trial.number for trial in record.by_stage("search") if trial.state in ("complete", "pruned")]
