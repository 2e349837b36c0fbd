"""The tuning curve of a search: what the best of so many trials reaches, with a band that no distribution can break.

Dodge et al. (2019, "Show Your Work") print the best validation value as a function of the budget. Their estimate of the
mean is biased downwards (Tang et al. 2020, "Showing Your Work Doesn't Always Work"); here it is the U-statistic, which
is not. The curve of the median and the bands are those of Lourie et al. (2024, "Show Your Work with Confidence"): what
is known of the distribution of one trial's value, all at once (`cdf_band`), gives a band of the curve at all budgets at
once. The best of k trials has its median where one trial has its quantile 0.5^(1/k). It needs independent draws from
one distribution, so it is refused for every other search.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

from study.analysis.statistics.frame import metric as metric_of
from study.analysis.statistics.spent import seconds
from study.errors import UserError
from study.home.events import ENDED
from study.home.folder import Home
from study.home.record import StudyRecord, TrialRecord
from study.metrics import Direction, better, find
from study.ranking.remaining_gain import drawn
from study.spec import StudySpec
from study.spec.declarations import declaration
from study.spec.space import grid_size

# Simultaneous confidence bands from independent draws, exact for every distribution.
#
# Of the distribution function: the band of Learned-Miller and DeStefano (2008, "A probabilistic upper bound on
# differential entropy"), which Lourie et al. (2024, "Show Your Work with Confidence", section 3) use for tuning curves.
# F at the i-th of n ordered draws has a beta(i, n + 1 - i) distribution, and each gets the equal-tailed interval of one
# level, chosen so that all of them hold at once. Of given quantiles alone the band is narrower: each lies between two
# ordered draws, as many draws are below it as a binomial count says. Both levels are computed, not simulated:
# `chance_to_stay` is the probability that the counts of a uniform sample stay within limits. A discrete distribution
# (ties) is covered at least as often as a continuous one.

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_EXACT = 1000
"""Draws up to which the level is computed, in about 2 s at most; above, the band is that of Dvoretzky, Kiefer and
Wolfowitz with Massart's (1990) constant, which is wider."""

NEGLIGIBLE = 1e-16


@lru_cache(maxsize=64)
def band(draws: int, confidence: float) -> tuple[Floats, Floats]:
    """Limits of F between the ordered draws, that all hold at once with this probability.

    Returns:
        `low` and `high`, each of shape (draws + 1,): with i draws at or below x, F(x) is between `low[i]` and
        `high[i]`. Read only.
    """
    if draws > MOST_EXACT:
        reach = np.sqrt(np.log(2 / (1 - confidence)) / (2 * draws))
        share = np.arange(draws + 1) / draws
        low, high = np.clip(share - reach, 0, 1), np.clip(share + reach, 0, 1)
    else:
        lower, upper = limits(draws, pointwise_level(draws, confidence))
        low, high = np.concatenate([[0.0], lower]), np.concatenate([upper, [1.0]])
    low.flags.writeable = high.flags.writeable = False
    return low, high


def limits(draws: int, level: float) -> tuple[Floats, Floats]:
    """The equal-tailed intervals, each missed with probability `level`, of F at each of the ordered draws."""
    places = np.arange(1, draws + 1)
    lower, upper = (betaincinv(places, draws + 1 - places, tail) for tail in (level / 2, 1 - level / 2))
    return lower, upper


@lru_cache(maxsize=64)
def pointwise_level(draws: int, confidence: float) -> float:
    """The probability with which each limit alone may be missed, for all of them to hold with `confidence`."""

    from scipy.optimize import brentq  # here: loading it takes longer than the report of a study too small for a band

    def missing(log_level: float) -> float:
        return joint_coverage(*limits(draws, float(np.exp(log_level)))) - confidence

    miss = 1 - confidence
    return float(np.exp(brentq(missing, np.log(miss / (2 * draws)), np.log(miss), xtol=1e-4)))


@lru_cache(maxsize=64)
def quantile_places(draws: int, confidence: float, quantiles: tuple[float, ...]) -> tuple[Places, Places]:
    """Between which ordered draws quantiles lie, all at once with this probability.

    Args:
        quantiles: of which shares, ascending, above 0 and below 1.

    Returns:
        For each quantile the place of the draw below it, from 1 (0: none is), and of the one above it (draws + 1: none
        is).
    """
    from scipy.stats import binom  # here, as above

    times, miss = np.array(quantiles), 1 - confidence

    def places(level: float) -> tuple[Places, Places]:
        return binom.ppf(level / 2, draws, times).astype(int), binom.ppf(1 - level / 2, draws, times).astype(int)

    low, high = np.log(miss / (2 * len(times))), np.log(min(1.0, 2 * miss))  # Bonferroni's level holds, this one not
    while high - low > 1e-3:
        middle = (low + high) / 2
        holds = chance_to_stay(draws, times, *places(float(np.exp(middle)))) >= confidence
        low, high = (middle, high) if holds else (low, middle)
    least, most = places(float(np.exp(low)))
    return least, most + 1


def joint_coverage(lower: Floats, upper: Floats) -> float:
    """The probability that each ordered uniform draw lies between its limits; both ascend."""
    draws = len(lower)
    times = np.concatenate([lower, upper])
    least = np.concatenate([np.zeros(draws, int), np.arange(1, draws + 1)])  # draws that have come by an upper limit
    most = np.concatenate([np.arange(draws), np.full(draws, draws)])  # and may have come by a lower one
    order = np.argsort(times, kind="stable")
    return chance_to_stay(draws, times[order], least[order], most[order])


def chance_to_stay(draws: int, times: Floats, least: Places, most: Places) -> float:
    """The probability that at each of these times, ascending, `least` to `most` uniform draws are at or below it.

    Their number is followed from time to time as that of a Poisson process, given that it ends at n (Moscovich and
    Nadler, 2017, "Fast calculation of boundary crossing probabilities for Poisson processes").
    """
    chance, first, now = np.ones(1), 0, 0.0
    for time, low, high in zip(times, least, most, strict=True):
        chance, first = _later(chance, first, draws * (time - now))
        now = time
        begin, end = max(first, int(low)), min(first + len(chance) - 1, int(high))
        if end < begin:
            return 0.0
        chance, first = chance[begin - first : end + 1 - first], begin
    chance, first = _later(chance, first, draws * (1 - now))
    if not first <= draws < first + len(chance):
        return 0.0
    return float(chance[draws - first] / _poisson(draws, draws, draws)[0])


def _later(chance: Floats, first: int, rate: float) -> tuple[Floats, int]:
    """The distribution of the count after a further stretch; `chance[j]` is that of `first + j`."""
    if rate <= 0:
        return chance, first
    reach = 9 * np.sqrt(rate)
    begin = max(0, int(rate - reach))
    after = np.convolve(chance, _poisson(rate, begin, int(rate + reach + 25)))
    likely = np.flatnonzero(after > NEGLIGIBLE)
    return after[likely[0] : likely[-1] + 1], first + begin + int(likely[0])


def _poisson(rate: float, first: int, last: int) -> Floats:
    """The chances of `first` to `last` events."""
    counts = np.arange(first, last + 1)
    chances: Floats = np.exp(counts * np.log(rate) - rate - gammaln(counts + 1))
    return chances


FEWEST = 5
"""Trials below which there is no curve."""

MOST_ROWS = 200
"""Budgets of a curve at most."""

CELLS_PER_TRIAL = 20
"""A space of choices needs so many cells per trial: a cell that was tried is not drawn again, which would show."""


@dataclass(frozen=True)
class Draws:
    """Independent trials of a search.

    Attributes:
        metric: as `val/accuracy`.
        gains: (trials,) its value, turned so that larger is better; -inf of a failed trial and of one that misses a
            constraint: it found nothing.
        epochs, gpu_hours: of one trial, on average.
        better: which direction of the metric is; None: as its name says.
    """

    metric: str
    gains: Floats
    epochs: float
    gpu_hours: float
    better: Direction | None = None

    @property
    def lower_is_better(self) -> bool:
        """Whether the smaller of two values is the better one."""
        return (self.better or better(self.metric)) == "min"


def tuning_curve(name: str, metric: str | None = None, confidence: float = 0.95) -> pd.DataFrame:
    """The tuning curve of a study of this home (`STUDY_HOME`, else `./studies`).

    The curve is over configurations drawn at random, each with the training seed that the search used (the mean over
    seeds with `search.replicates`). Baseline and enqueued configurations are left out.

    Args:
        metric: one that all trials have, as `test/accuracy` where the test split was read in each epoch
            (`train.report_test`); by default the study's own.
        confidence: with which the band holds at all budgets at once.

    Returns:
        Indexed by `trials`: k = 1 to all; of more than 200 an even selection of their logarithms. `epochs` and
        `gpu_hours`: what k trials cost on average. `median`, `low`, `high`: the median over searches of the best of k
        trials, its estimate and its band, in the metric's unit. `mean`, `mean_low`, `mean_high`: the same for the mean,
        NaN where a trial found nothing or the metric has no bound. An end of the band that no draw gives is the
        metric's bound, infinite where it has none.

    Raises:
        UserError: there is no such study, or its trials are no independent draws.

    Example:
        >>> from study.analysis import tuning_curve
        >>> curve = tuning_curve("random_search")  # doctest: +SKIP
        >>> curve.loc[[1, 8], ["median", "low", "high"]]  # doctest: +SKIP
    """
    folder = Home.locate().find(name)
    spec, record = folder.spec(), StudyRecord.load(folder.ledger_file)
    found = draws(spec, record, metric)
    if isinstance(found, str):
        raise UserError(f"{name}: has no tuning curve. {found}")
    return curve(found, confidence)


def draws(spec: StudySpec, record: StudyRecord, metric: str | None = None) -> Draws | str:
    """The trials that a search drew independently of one another; a sentence that says why there are none."""
    metric = metric or spec.metric
    if reason := _dependent(spec):
        return reason
    trials = drawn(spec, record)
    if running := [trial.number for trial in trials if trial.state not in ENDED]:
        return f"{len(running)} of its trials have not ended, and those that have are the faster ones."
    if any(trial.state == "pruned" for trial in trials):
        return "Early stopping ended some of its trials, and what they would have reached is not known."
    if record.enough in ("plateau", "stop"):
        return f"search.{record.enough} ended it, so how many trials there are depends on their values."
    if record.enough == "a user":
        return "A user ended it, perhaps because of the values, so how many trials there are may depend on them."
    if len(trials) < FEWEST:
        return f"Its sampler drew {len(trials)} trials, and at least {FEWEST} are needed."
    cells = _cells(spec)
    if cells is not None and cells < CELLS_PER_TRIAL * len(trials):
        return f"Its space has {cells} cells and a cell is not tried twice, so its {len(trials)} trials are no draws."
    values = [_value(spec, record, trial, metric) for trial in trials]
    if any(value is None for value in values):
        return f"{metric} is not known of every trial."
    direction = spec.direction(metric)
    sign = -1 if direction == "min" else 1
    gains = np.array([sign * value if math.isfinite(value) else -math.inf for value in values if value is not None])
    if not np.isfinite(gains).any():
        return "No trial is complete."
    runs = [run for trial in trials for run in (trial, *record.repeats_of(trial.number, "replicate"))]
    hours = sum(map(seconds, runs)) * spec.resources.gpu / 3600
    return Draws(metric, gains, sum(run.epochs for run in runs) / len(trials), hours / len(trials), direction)


def curve(found: Draws, confidence: float = 0.95) -> pd.DataFrame:
    """The table of `tuning_curve`."""
    gains = np.sort(found.gains)
    count = len(gains)
    trials = _budgets(count)
    worst, most = _bounds(found)
    worst = min(worst, float(gains[0]))  # a trial that found nothing
    quantiles = 0.5 ** (1 / trials)
    below, above = quantile_places(count, confidence, tuple(quantiles.tolist()))
    known = np.concatenate([[worst], gains, [most]])
    columns = {
        "median": gains[np.minimum(np.ceil(count * quantiles - 1e-9).astype(int), count) - 1],
        "low": known[below],
        "high": known[above],
        **_means(gains, trials, band(count, confidence), (worst, most)),
    }
    if found.lower_is_better:
        columns = {SWAPPED.get(name, name): -values for name, values in columns.items()}
    order = ["median", "low", "high", "mean", "mean_low", "mean_high"]
    costs = {"epochs": trials * found.epochs, "gpu_hours": trials * found.gpu_hours}
    return pd.DataFrame(costs | {name: columns[name] for name in order}, index=pd.Index(trials, name="trials"))


SWAPPED = {"low": "high", "high": "low", "mean_low": "mean_high", "mean_high": "mean_low"}
"""Which end of a band is which, once a metric of which less is better is turned back."""


def _means(
    gains: Floats, trials: NDArray[np.int64], shares: tuple[Floats, Floats], bounds: tuple[float, float]
) -> dict[str, Floats]:
    """The mean of the best of k trials: the U-statistic, and its band, for which the values must be bounded."""
    low, high = shares
    worst, most = bounds
    unknown = np.full(len(trials), np.nan)
    if not np.isfinite(gains).all():
        return {"mean": unknown, "mean_low": unknown, "mean_high": unknown}
    mean = _means_of_subsets(gains, trials)
    steps = np.diff(np.concatenate([[worst], gains, [most]]))
    powers = {name: ends[None] ** trials[:, None] for name, ends in (("mean_low", high), ("mean_high", low))}
    if not math.isfinite(worst) or not math.isfinite(most):
        return {"mean": mean, "mean_low": unknown, "mean_high": unknown}
    return {"mean": mean, **{name: most - power @ steps for name, power in powers.items()}}


def _means_of_subsets(gains: Floats, sizes: NDArray[np.int64]) -> Floats:
    """The mean over all subsets of each size of their largest value, `gains` ascending."""
    count, total = len(gains), np.zeros(len(sizes))
    chance = sizes / count  # that the value at this place is the largest of a random subset
    for place in range(count - 1, -1, -1):
        total += chance * gains[place]
        chance = chance * np.maximum(place - sizes + 1, 0) / max(place, 1)
    return total


def _budgets(count: int) -> NDArray[np.int64]:
    """1 to `count`; of many, an even selection of their logarithms."""
    if count <= MOST_ROWS:
        return np.arange(1, count + 1)
    return np.unique(np.round(np.geomspace(1, count, MOST_ROWS)).astype(np.int64))


def _dependent(spec: StudySpec) -> str | None:
    """Why the trials of a study of this kind are no independent draws."""
    if spec.final_seeds is not None:
        return "A final training draws no configurations."
    if len(spec.objective.metrics) > 1:
        return "With several metrics there is no single best value."
    if not declaration(spec.search.sampler).independent:
        return (
            f"Its sampler is {spec.search.sampler}, so each trial depends on those before it; the trials of sampler "
            "random are independent draws."
        )
    return None


def _cells(spec: StudySpec) -> int | None:
    """Return how many configurations the space has, None if it cannot be told or they are too many to matter."""
    try:
        return grid_size(spec.space)
    except ValueError:
        return None


def _value(spec: StudySpec, record: StudyRecord, trial: TrialRecord, metric: str) -> float | None:
    """A draw's value, the mean over its seeds; -inf where it found nothing; None where the metric is missing."""
    runs: Sequence[TrialRecord] = [trial, *record.repeats_of(trial.number, "replicate")]
    if any(run.state != "complete" for run in runs):
        return -math.inf
    limits = spec.objective.constraints
    means = {name: _mean([metric_of(spec, run, name) for run in runs]) for name in (metric, *spec.objective.needed)}
    kept = (limit.excess(mean) <= 0 for limit in limits if (mean := means[limit.metric]) is not None)
    return means[metric] if all(kept) else -math.inf


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def _bounds(draws: Draws) -> tuple[float, float]:
    """The least and the largest value, turned so that larger is better."""
    known = find(draws.metric)
    low = -math.inf if known is None or known.low is None else known.low
    high = math.inf if known is None or known.high is None else known.high
    return (-high, -low) if draws.lower_is_better else (low, high)
