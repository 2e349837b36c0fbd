"""When trials ran, and in how many places at once."""

from bisect import bisect_right
from itertools import accumulate

import pandas as pd

from study.home.record import StudyRecord


def occupancy(record: StudyRecord) -> pd.DataFrame:
    """When trials ran, in as many lanes as trials ran at once on each node.

    Of each trial that was started there are its last run and those before it was extended. A ledger names nodes and no
    processes: a run is in the first lane of its trial's node that is free.

    Returns:
        Indexed by `trial`, a row per run: `node`, `lane` from 0, `state`, and `start` and `end` in seconds since the
        first trial began, without the time between a session's last start or end of a trial and the next session.
    """
    latest = max((trial.ended or trial.started or 0.0 for trial in record.trials.values()), default=0.0)
    runs = sorted((start, number, end) for number, trial in record.trials.items() for start, end in trial.spans(latest))
    openings, cuts = _pauses(record, sorted(time for start, _, end in runs for time in (start, end)))

    def running(time: float) -> float:
        """Seconds of sessions up to a moment."""
        return time - cuts[bisect_right(openings, time)]

    free: dict[tuple[str, int], float] = {}
    rows = []
    for start, number, end in runs:
        trial = record.trials[number]
        node = (trial.node or "").partition(":")[0]  # behind it stands the process
        lanes = [lane for lane in free if lane[0] == node]
        lane = next((lane for lane in lanes if free[lane] <= start + 0.001), (node, len(lanes)))
        free[lane] = end
        times = [running(time) - running(runs[0][0]) for time in (start, end)]
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


def _pauses(record: StudyRecord, times: list[float]) -> tuple[list[float], list[float]]:
    """When sessions after the first began, and how much had been cut out before the first of them, the second ...

    Args:
        times: at which trials began and ended, in order.
    """
    openings = [session["time"] for session in record.sessions[1:]]
    begins = [session["time"] for session in record.sessions]
    gaps = []
    for opening, before in zip(openings, begins, strict=False):
        place = bisect_right(times, opening)
        gaps.append(opening - max(before, times[place - 1] if place else before))
    return openings, [0.0, *accumulate(gaps)]
