"""Is a search enough: by how much as many trials again would raise its best value, at most, with what confidence.

The statement is of the value that the search itself looks at (the validation split, the search's own seeds), of trials
of the same kind: same space, sampler and early stopping. It is a prediction limit from the spacings at the top. Of n
independent draws let Y_1 >= Y_2 >= ... be the best. In an exponential tail the normalised spacings i (Y_i - Y_(i+1))
are independent with one mean (Renyi, 1953), which the mean over the first of them estimates, and the limit is exact.
Where the tail is lighter (the hazard rate rises towards the best value: normal noise, smooth optima, bounded metrics),
spacings shrink towards the top (Barlow and Proschan, 1966) and the limit is too large, so that it holds more often.

It does not hold where a small part of the space, which the search has not met, is far better than all the rest: that no
statement from the values alone can know. Hays et al. (2025, "Statistical Guarantees in the Search for Less
Discriminatory Algorithms", arXiv 2512.23943) bound the gain of a continued search from independent draws in the same
spirit, the tighter the more is assumed of their distribution.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from statistics import fmean

from study.home.events import ENDED
from study.home.record import TrialRecord
from study.metrics import find
from study.ranking import Results
from study.spec import StudySpec
from study.spec.objective import Score
from study.spec.sampler_facts import SAMPLERS

MIN_ENDED_TRIALS = 10
"""Smallest number of ended trials before anything is said."""

FEWEST_COMPLETE = 4
"""Smallest number of complete trials among them."""

SIMULATED = 50_000


@dataclass(frozen=True)
class RemainingGain:
    """The gain that more search would bring.

    Attributes:
        gain: at most so much over the best value, in the metric's own unit, at least 0; None: nothing can be said.
        trials: that the sampler drew and that have ended.
        further: trials to come that the statement is about: as many again.
        confidence: of the statement.
        reason: why nothing can be said, as a sentence.
        is_any: whether the gain is all that the metric has left, so that the statement says nothing.
    """

    gain: float | None
    trials: int
    further: int
    confidence: float
    reason: str | None = None
    is_any: bool = False


def remaining_gain(results: Results) -> RemainingGain:
    """Return what more search would gain, with the confidence of `search.stop`, else 95%.

    The baseline and the configurations of `search.enqueue` are no draws; the best value may be theirs. Of trials that
    early stopping pruned and of those that miss a constraint it is known alone that they are not the best.
    """
    results, stop = results.without_extensions, results.spec.search.stop
    confidence = stop.confidence if stop else 0.95
    scores = {candidate.trial.number: candidate.score for candidate in results.searched}
    draws, so_far = {trial.number for trial in drawn(results)}, SoFar()
    for trial in results.record.by_stage("search"):
        if trial.state in ENDED:
            so_far.add(scores.get(trial.number), trial.number in draws)
    if reference := results.baseline:
        so_far.add(reference.score, drawn=False)
    reason = unsuitable(results.spec) or so_far.lacks(results.spec)
    gain = None if reason else so_far.gain(results.spec, confidence, checked_often=stop is not None)
    is_any = bool(gain) and gain == so_far.left(results.spec)
    return RemainingGain(gain, so_far.ended, so_far.ended, confidence, reason, is_any)


def sentence(spec: StudySpec, remaining: RemainingGain, amount: Callable[[float], str] = "{:.4g}".format) -> str:
    """Return the statement in words, or why there is none.

    Args:
        amount: formats a gain in the unit that the reader sees.
    """
    if remaining.gain is None:
        return f"What more search would gain is not known. {remaining.reason}"
    if remaining.is_any:
        return f"What more search would gain is not known. The values so far rule out no gain in {spec.metric}."
    verb = "raise" if spec.mode == "max" else "lower"
    seeds = "the seeds" if len(spec.seeds) > 1 else "the seed"
    return (
        f"More search of this kind gains at most {amount(remaining.gain)} with {100 * remaining.confidence:g}% "
        f"confidence: as many trials again ({remaining.further}) {verb} the best {spec.metric}, on {seeds} of the "
        "search, by no more."
    )


def drawn(results: Results) -> list[TrialRecord]:
    """Return the trials whose configurations the sampler drew: without baseline, enqueued ones and replicates."""
    later = list(results.record.by_stage("search"))[len(results.spec.search.enqueue) :]
    return [trial for trial in later if not trial.enqueued]


def unsuitable(spec: StudySpec) -> str | None:
    """Return why nothing can be said of a study of this kind, whatever its trials find; None where it can."""
    search = spec.search
    if spec.final_seeds is not None:
        return "A final training searches nothing."
    if len(spec.objective.metrics) > 1:
        return "With several metrics there is no single best value."
    if SAMPLERS[search.sampler].every_cell:
        return "A grid ends with its last cell: a finer or wider grid is another search."
    if not SAMPLERS[search.sampler].foreseeable:
        return f"The estimate was not validated for the sampler {search.sampler}."
    return None


@dataclass
class SoFar:
    """A search as far as the statement needs it.

    Attributes:
        gains: the values of the complete draws that keep the constraints, turned so that larger is better.
        given: the best value of the configurations that were given, -inf without any.
        ended: draws that have ended, in whatever state.
    """

    gains: list[float] = field(default_factory=list)
    given: float = -math.inf
    ended: int = 0

    def add(self, score: Score | None, drawn: bool) -> None:
        """Add a configuration that has ended.

        Args:
            score: of a complete one, else None.
            drawn: whether the sampler drew it; else it was given.
        """
        self.ended += drawn
        if score is not None and score.violation == 0:
            if drawn:
                self.gains.append(score.gains[0])
            else:
                self.given = max(self.given, score.gains[0])

    def lacks(self, spec: StudySpec) -> str | None:
        """Return why nothing can be said yet; None where it can."""
        if self.ended < MIN_ENDED_TRIALS:
            return f"{self.ended} of the sampler's trials have ended, and at least {MIN_ENDED_TRIALS} are needed."
        if len(self.gains) < FEWEST_COMPLETE:
            kept = " and keep the constraints" if spec.objective.constraints else ""
            return f"{len(self.gains)} of them are complete{kept}, and at least {FEWEST_COMPLETE} are needed."
        if min(self.gains) == max(self.gains) < _most(spec):
            value = f"{abs(self.gains[0]):.4g}"
            return f"All {len(self.gains)} have the same value, {value}, so nothing says how far others lie apart."
        if self.given > max(self.gains) and not SAMPLERS[spec.search.sampler].independent:
            return "The best configuration was given to the search, so its own draws do not say how it goes on from it."
        return None

    def gain(self, spec: StudySpec, confidence: float, checked_often: bool) -> float:
        """Return by how much as many trials again raise the best value, at most; see `limit`.

        Args:
            checked_often: whether the search ends as soon as it is small enough, so that the trial after which it is
                asked is chosen by it: the error allowed to each statement is then half as large.
        """
        miss = (1 - confidence) * (0.5 if checked_often else 1.0)
        beyond = limit(self.gains, self.ended, self.ended, 1 - miss)
        return max(0.0, min(max(self.gains) + beyond - max(*self.gains, self.given), self.left(spec)))

    def left(self, spec: StudySpec) -> float:
        """Return how far the best value is from the best that the metric can have."""
        return _most(spec) - max(*self.gains, self.given)


def limit(gains: Sequence[float], trials: int, further: int, confidence: float) -> float:
    """Return by how much `further` draws exceed the best of `gains` at most, with this confidence.

    Metrics are counts of samples divided by their number: one step between two values, the smallest that is seen, is
    added, so that ties do not read as a top that is flat.

    Args:
        gains: of the draws that have a value, two or more; larger is better.
        trials: all draws, those without a value among them.
    """
    best = sorted(gains, reverse=True)
    tops = tuple(sorted({min(top, len(best) - 1) for top in _tops(trials)}))
    spacings = [place * (best[place - 1] - best[place]) for place in range(1, tops[-1] + 1)]
    steps = [high - low for high, low in pairwise(best) if high - low > 1e-9]
    factors = _factors(trials, further, tops, round(1 - confidence, 9))
    beyond = min(factor * fmean(spacings[:top]) for factor, top in zip(factors, tops, strict=True))
    return beyond + min(steps, default=0.0)


def _tops(trials: int) -> tuple[int, int]:
    """Return how many of the best spacings are looked at.

    Two numbers: the larger gives a steady estimate, the smaller a better one where the tail is lighter.
    """
    most = max(3, min(round(1.5 * math.sqrt(trials)), trials // 3))
    return min(5, most), most


def _most(spec: StudySpec) -> float:
    """Return the largest gain that the metric can have."""
    metric = find(spec.metric)
    if spec.mode == "max":
        return math.inf if metric is None or metric.high is None else metric.high
    return math.inf if metric is None or metric.low is None else -metric.low


@lru_cache(maxsize=4096)
def _factors(trials: int, further: int, tops: tuple[int, ...], miss: float) -> tuple[float, ...]:
    """Return for each of `tops` a multiple of the mean of so many normalised spacings.

    Further draws from an exponential tail exceed one of these multiples with chance `miss`, each of them as often. A
    draw is above the (top + 1)-th best with a chance that is beta(top + 1, trials - top) distributed; beyond it the
    tail begins anew. From 50,000 simulated samples with a fixed seed: the chance is right to 0.1 of a percent.
    """
    import numpy as np

    generator, most = np.random.default_rng(0), tops[-1]
    spacings = generator.exponential(size=(SIMULATED, most))
    chances = generator.beta(most + 1, trials - most, size=SIMULATED)
    highest = generator.random(SIMULATED) ** (1 / further)
    gains = np.log(chances / (1 - highest)) - spacings @ (1 / np.arange(1, most + 1))
    ratios = np.array([gains / spacings[:, :top].mean(1) for top in tops])
    worst = (ratios.argsort(1).argsort(1) + 0.5).max(0) / SIMULATED
    level = float(np.quantile(worst, 1 - miss))
    return tuple(float(max(0.0, factor)) for factor in np.quantile(ratios, min(level, 1.0), axis=1))
