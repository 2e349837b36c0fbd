"""One search on one table: slots that train an epoch per tick, and what was chosen for how many epochs.

The rules are those of `tests/benchmarks/peers`: a tick is an epoch on every busy slot, reports are heard in the slots'
order, a proposal becomes the nearest configuration that was not begun, and an epoch costs 1.
"""

from dataclasses import dataclass, field

import numpy as np

from study.spec.objective import TrialScore
from tests.benchmarks.frugal.methods import Production
from tests.benchmarks.frugal.table import Array, Table


@dataclass
class Run:
    """What a search did: the chosen configuration each time it changed, with the epochs spent until then; and what it
    tried, in that order."""

    trace: list[tuple[int, int]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    spent: int = 0


def play(table: Table, method: Production, seed: int, slots: int, budget: int, trials: int | None = None) -> Run:
    """A search whose configurations all train on the table's seed of this number.

    Args:
        budget: epochs after which all stops.
        trials: how many configurations it may begin; None: all of the table.
    """
    curves, run = table.seen[seed], Run()
    rows = run.rows
    most = min(trials or len(curves), len(curves))
    begun = np.zeros(len(curves), dtype=bool)
    epochs: list[int] = []
    busy: list[int | None] = [None] * slots
    furthest, leader = 0, -1
    sign = 1.0 if table.spec.mode == "max" else -1.0
    while run.spent < budget:
        for slot in range(slots):
            if busy[slot] is None:
                busy[slot] = following(table, method, rows, begun, epochs, most)
        if all(trial is None for trial in busy):
            break
        for slot, trial in enumerate(busy):
            if trial is None:
                continue
            if run.spent == budget:
                break
            epochs[trial] += 1
            run.spent += 1
            epoch, value = epochs[trial], curves[rows[trial], epochs[trial] - 1]
            better = leader < 0 or value > curves[rows[leader], epoch - 1]
            if epoch > furthest or (epoch == furthest and better):
                furthest, leader = epoch, trial
                if not run.trace or run.trace[-1][1] != rows[trial]:
                    run.trace.append((run.spent, rows[trial]))
            if method.hear(trial, epoch, TrialScore((sign * value,), (value,))) != "on":
                busy[slot] = following(table, method, rows, begun, epochs, most)
    return run


def following(
    table: Table, method: Production, rows: list[int], begun: Array, epochs: list[int], most: int
) -> int | None:
    """The new trial that a free slot trains, which is added to `rows`; None: there are enough."""
    if len(rows) >= most:
        return None
    number = len(rows)
    row = table.nearest(method.propose(number), begun)
    begun[row] = True
    rows.append(row)
    epochs.append(0)
    method.begun(number, table.params[row])
    return number


def chosen(run: Run, at: int) -> int | None:
    """What was chosen when so many epochs were spent."""
    return next((row for spent, row in reversed(run.trace) if spent <= at), None)


def regret(run: Run, truth: Array, at: int) -> float:
    """What the choice falls short of the best after so many epochs; of no choice: the mean configuration's."""
    row = chosen(run, at)
    return float(truth.max() - (truth.mean() if row is None else truth[row]))


def until(run: Run, truth: Array, budget: int, within: float = 0.01) -> int:
    """Epochs until the choice is for the first time this near to the best; the budget where it never is."""
    return next((spent for spent, row in run.trace if truth[row] >= truth.max() - within), budget)


def for_good(run: Run, truth: Array, budget: int, within: float = 0.01) -> int:
    """Epochs until the choice is this near to the best and stays so; the budget where it never is."""
    since = budget
    for spent, row in reversed(run.trace):
        if truth[row] < truth.max() - within:
            break
        since = spent
    return since
