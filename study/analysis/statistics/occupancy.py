"""When trials ran, and in how many places at once."""

from bisect import bisect_right
from itertools import accumulate

import pandas as pd

from study.home.record import StudyRecord


def occupancy(record: StudyRecord) -> pd.DataFrame:
    """The last run of each trial that was started, in as many lanes as trials ran at once on each node.

    A ledger names nodes and no processes: a trial is in the first lane of its node that is free.

    Returns:
        Indexed by `trial`: `node`, `lane` from 0, `state`, and `start` and `end` in seconds since the first trial
        began, without the time between a session's last trial and the next session.
    """
    runs = sorted((trial.started, trial.number) for trial in record.trials.values() if trial.started is not None)
    latest = max((trial.ended or trial.started or 0.0 for trial in record.trials.values()), default=0.0)
    ends = {number: record.trials[number].ended or latest for _, number in runs}
    openings, cuts = _pauses(record, sorted(ends.values()))

    def running(time: float) -> float:
        """Seconds of sessions up to a moment."""
        return time - cuts[bisect_right(openings, time)]

    free: dict[tuple[str, int], float] = {}
    rows = []
    for start, number in runs:
        trial = record.trials[number]
        node = (trial.node or "").partition(":")[0]  # behind it stands the process
        lanes = [lane for lane in free if lane[0] == node]
        lane = next((lane for lane in lanes if free[lane] <= start + 0.001), (node, len(lanes)))
        free[lane] = ends[number]
        times = [running(time) - running(runs[0][0]) for time in (start, ends[number])]
        rows.append((number, node, lane[1], trial.state, *times))
    columns = ["trial", "node", "lane", "state", "start", "end"]
    return pd.DataFrame(rows, columns=columns).set_index("trial")


def places(frame: pd.DataFrame) -> list[tuple[str, int]]:
    """Node and lane of each place in which trials of an `occupancy` ran, in order."""
    return sorted(set(zip(frame["node"], frame["lane"], strict=True)))


def busy(frame: pd.DataFrame) -> float:
    """The share of the time of all places in which a trial ran."""
    whole = 0.0 if frame.empty else len(places(frame)) * float(frame["end"].max())
    return float((frame["end"] - frame["start"]).sum()) / whole if whole else 1.0


def _pauses(record: StudyRecord, ends: list[float]) -> tuple[list[float], list[float]]:
    """When sessions after the first began, and how much had been cut out before the first of them, the second ..."""
    openings = [session["time"] for session in record.sessions[1:]]
    begins = [session["time"] for session in record.sessions]
    gaps = []
    for opening, before in zip(openings, begins, strict=False):
        place = bisect_right(ends, opening)
        gaps.append(opening - max(before, ends[place - 1] if place else before))
    return openings, [0.0, *accumulate(gaps)]
