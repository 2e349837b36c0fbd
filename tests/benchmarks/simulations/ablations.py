"""What `study ablate` says of steps whose worth is known: intervals, sums, signs and interactions."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from study.analysis.statistics.ablation_effects import AblationEffect, EffectKind, StepTexts, compute_ablation_effects
from study.ranking.ablation_steps import AppliedSteps, ablation_configurations
from study.ranking.difference import mean_difference

from .row import Row

SEED, NOISE = 2.0, 1.0
"""Standard deviations of what a seed does to all configurations, and of what it does to one; correlated by 0.8."""

Truth = Callable[[AppliedSteps], float]


def worth(*steps: float, both: float = 0.0) -> Truth:
    """A truth in which each step is worth so much anywhere, and the first two together `both` more."""
    return lambda moved: sum(steps[place] for place in moved) + (both if {0, 1} <= moved else 0.0)


def drawn(truth: Truth, count: int, seeds: int, rng: np.random.Generator) -> dict[AppliedSteps, dict[int, float]]:
    """The metric by seed of each configuration of an ablation of so many steps."""
    shared = SEED * rng.standard_normal(seeds)
    return {
        moved: dict(enumerate(truth(moved) + shared + NOISE * rng.standard_normal(seeds)))
        for moved in ablation_configurations(count)
    }


def words(count: int) -> list[StepTexts]:
    return [StepTexts((f"knob {place}",), f"knob {place} = 1", f"knob {place} = 0") for place in range(count)]


def of(found: Sequence[AblationEffect], part: EffectKind) -> list[AblationEffect]:
    """The effects of a part, the baseline's line left out."""
    return [effect for effect in found if effect.kind == part and effect.difference]


def truths(truth: Truth, count: int, part: EffectKind) -> list[float]:
    """What the effects of a part are worth."""
    none, best = frozenset[int](), frozenset(range(count))
    alone = [truth(frozenset({place})) - truth(none) for place in range(count)]
    without = [truth(best) - truth(best - {place}) for place in range(count)]
    return {
        "path": [truth(frozenset(range(place + 1))) - truth(frozenset(range(place))) for place in range(count)],
        "gain": [truth(best) - truth(none)],
        "adding": alone,
        "removing": without,
        "interaction": [one - other for one, other in zip(without, alone, strict=True)],
    }[part]


def holds(effect: AblationEffect, value: float) -> bool:
    assert effect.difference is not None
    assert effect.difference.interval is not None
    low, high = effect.difference.interval
    return low <= value <= high


NAMES: dict[EffectKind, str] = {
    "path": "intervals of the path's steps, all at once",
    "adding": "intervals of steps added to the baseline, all at once",
    "removing": "intervals of steps in the best, all at once",
    "interaction": "intervals of interactions, all at once",
}


def coverage(truth: Truth, what: str, count: int, seeds: int, draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """How often intervals hold, and whether the steps sum to the gain."""
    at_once = dict.fromkeys(NAMES, 0)
    single, gains, error = 0, 0, 0.0
    for _ in range(draws):
        found = compute_ablation_effects(drawn(truth, count, seeds, rng), words(count))
        for part in NAMES:
            right = [holds(*pair) for pair in zip(of(found, part), truths(truth, count, part), strict=True)]
            at_once[part] += all(right)
            single += sum(right) if part == "path" else 0
        (gain,) = of(found, "gain")
        gains += holds(gain, truths(truth, count, "gain")[0])
        steps = [effect.difference.value for effect in of(found, "path") if effect.difference]
        assert gain.difference is not None
        error = max(error, abs(sum(steps) - gain.difference.value))
    simulated = f"{what}; {count} steps, {seeds} seeds"
    for part, name in NAMES.items():
        yield Row(name, "ablate, report", simulated, "at least 95%", 0.95, 1.0, at_once[part] / draws, draws)
    each = single / (draws * count)
    yield Row("interval of one step", "ablate, report", simulated, "at least 95%", 0.95, 1.0, each, draws)
    yield Row("interval of the gain", "ablate, report", simulated, "95%", 0.94, 0.96, gains / draws, draws)
    yield Row("steps less the gain, at most", "ablate, report", simulated, "0", 0.0, 1e-9, error, 0)


def claims(truth: Truth, what: str, count: int, seeds: int, draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """How often a step is said to be beyond the spread although it is worth nothing, or with the wrong sign."""
    wrong, wrong_single, interacting = 0, 0, 0
    for _ in range(draws):
        values = drawn(truth, count, seeds, rng)
        found = compute_ablation_effects(values, words(count))
        worths = truths(truth, count, "path")
        for_path = zip(of(found, "path"), worths, strict=True)
        wrong += any(_is_clear(effect) and _value(effect) * value <= 0 for effect, value in for_path)
        interacting += any(map(_is_clear, of(found, "interaction")))
        alone = (mean_difference(values[frozenset({place})], values[frozenset()]) for place in range(count))
        wrong_single += any(one is not None and bool(one.is_clear) for one in alone)
    simulated = f"{what}; {count} steps, {seeds} seeds"
    null = not any(worths)
    told = "a step beyond the spread, step by step" + ("" if null else ", with the wrong sign")
    yield Row(told, "report", simulated, "at most 5%", 0.0, 0.05, wrong / draws, draws)
    told = "what a step is worth depends on the others"
    yield Row(told, "report", simulated, "at most 5%", 0.0, 0.05, interacting / draws, draws)
    if null:
        told = "(a step beyond its single 95% interval, which is not printed)"
        yield Row(told, "-", simulated, "-", 0.0, 1.0, wrong_single / draws, draws)


def chosen(top: int, seeds: int, draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """The gain of the best of several equal configurations, by the seeds that chose it and by others."""
    held, held_chosen, excess = 0, 0, 0.0
    best, baseline = frozenset({0}), frozenset[int]()
    for _ in range(draws):
        shared, noise = SEED * rng.standard_normal(2 * seeds), NOISE * rng.standard_normal((top + 1, 2 * seeds))
        values = shared + noise
        winner = 1 + int(values[1:, :seeds].mean(axis=1).argmax())
        for own in (True, False):
            part = slice(0, seeds) if own else slice(seeds, 2 * seeds)
            by_seed = {baseline: dict(enumerate(values[0, part])), best: dict(enumerate(values[winner, part]))}
            (gain,) = of(compute_ablation_effects(by_seed, words(1)), "gain")
            held_chosen += own and holds(gain, 0.0)
            held += not own and holds(gain, 0.0)
            excess += _value(gain) / draws if own else 0.0
    simulated = f"no gain; best of top {top}, {seeds} seeds"
    yield Row("interval of the gain", "ablate, report", simulated, "95%", 0.94, 0.96, held / draws, draws)
    told = "(the same by the seeds that chose, which are not used)"
    yield Row(told, "-", simulated, "-", 0.0, 1.0, held_chosen / draws, draws)
    told = "(gain by the seeds that chose, in standard deviations of a configuration's noise)"
    yield Row(told, "-", simulated, "-", 0.0, np.inf, excess / NOISE, 0)


def only(gained: float, seeds: int, draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """The gain of the only configuration that was confirmed, on the same seeds, where it beat the baseline there."""
    held, shown = 0, 0
    for _ in range(draws):
        (gain,) = of(compute_ablation_effects(drawn(worth(gained), 1, seeds, rng), words(1)), "gain")
        if _value(gain) > 0:
            shown += 1
            held += holds(gain, gained)
    simulated = f"a gain of {gained:g} sd, found on these seeds; top 1, {seeds} seeds"
    yield Row("interval of the gain", "ablate, report", simulated, "at least 95%", 0.95, 1.0, held / shown, shown)


def rows(draws: int) -> Iterator[Row]:
    """Of `draws` simulated ablations each."""
    rng = np.random.default_rng(1905)
    yield from coverage(worth(1.0, 0.5, 0.0), "worth 1, 0.5 and 0 sd", 3, 3, draws, rng)
    yield from coverage(worth(1.0, 0.5, 0.0, both=1.0), "the same, the first two together 1 more", 3, 5, draws, rng)
    yield from coverage(worth(1.0, -0.5, both=1.0), "worth 1 and -0.5 sd, together 1 more", 2, 5, draws, rng)
    yield from coverage(worth(1.0, 0.5, 0.0, 0.0, 0.0, 0.0), "worth 1, 0.5, else 0 sd", 6, 5, draws, rng)
    yield from claims(worth(0.0, 0.0, 0.0), "no step is worth anything", 3, 3, draws, rng)
    yield from claims(worth(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), "no step is worth anything", 6, 5, draws, rng)
    yield from claims(worth(0.3, 0.3, 0.3), "each worth 0.3 sd, no interactions", 3, 5, draws, rng)
    yield from chosen(5, 5, draws, rng)
    yield from chosen(2, 3, draws, rng)
    yield from only(0.0, 3, draws, rng)
    yield from only(0.5, 5, draws, rng)


def _is_clear(effect: AblationEffect) -> bool:
    return bool(effect.difference and effect.difference.is_clear)


def _value(effect: AblationEffect) -> float:
    assert effect.difference is not None
    return effect.difference.value
