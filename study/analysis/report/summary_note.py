"""What stands under the summary: over which seeds its numbers are, and what its interval allows for."""

from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Difference, Side, difference, sides
from study.home.record import StudyRecord
from study.ranking import epochs
from study.spec import StudySpec


def summary_note(spec: StudySpec, record: StudyRecord) -> str:
    """One sentence each on the spread, the seeds, and the interval where there is one."""
    note = f"Mean ± sample standard deviation over the seeds in the last column, {epochs.words(spec.objective)}."
    same = "" if spec.function else " All seeds use the same data and splits."
    if spec.final_seeds is not None:
        return note + same
    reference, best = sides(spec, record)
    if best:
        note += f" {_seeds(spec, best)}"
    gain = best and reference and difference(best.values(spec.metric), reference.values(spec.metric), best.among)
    if gain and gain.interval:
        note += f" {_interval(gain)}"
    return note + same


def _seeds(spec: StudySpec, best: Side) -> str:
    """Whether the trials by which the best was chosen are among those that are shown."""
    if best.trials[0].stage == "confirm":
        return "The seeds are fresh: the trial by which a configuration came this far is not among them."
    if len(spec.seeds) == 1:
        return (
            "The search saw this seed and chose by it: by the luck of that choice the best looks, on average, too good."
        )
    return (
        "The search saw these seeds and chose by them: no seed is fresh, and by the luck of that choice the best "
        "looks, on average, too good."
    )


def _interval(gain: Difference) -> str:
    method = (
        "Difference and 95% interval are by seed, over the seeds that both have (Student's t of the differences)"
        if gain.paired
        else "The 95% interval of the difference is Welch's"
    )
    if gain.among == 1:
        return f"{method}."
    chosen = formatting.count(gain.among, "configuration")
    return f"{method}, widened because the best was chosen among {chosen} by the same trials."
