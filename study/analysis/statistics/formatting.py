"""Numbers as people read them. Accuracies are printed in percent, everything else as the fraction or number it is."""

import math
from collections.abc import Iterable, Sequence

from study.knobs import Value
from study.metrics import is_percent_metric
from study.metrics.metric_format import decimals_of_plain_numbers, format_metric, format_metric_range, is_whole_count
from study.ranking import Results, SeedStatistics
from study.ranking.arms import Arm
from study.ranking.difference import Difference
from study.spec import StudySpec

MISSING_TEXT = "-"

SYMBOL_BY_KEY = {
    "method.alpha": r"$\alpha$",
    "method.lambda": r"$\lambda$",
    "method.epsilon": r"$\epsilon$",
    "method.tau_plus": r"$\tau^{+}$",
    "method.beta": r"$\beta$",
    "method.sigma2": r"$\sigma^{2}$",
    "method.temperature": r"$\tau$",
    "method.positives": r"$M$",
    "data.rho": r"$\rho$",
}
"""The papers' symbols, by key."""

SEARCH_END_REASONS = {
    "time": "its time limit was reached",
    "gpu_hours": "its GPU hours were spent",
    "a user": "a user ended it",
    "every configuration of the space": "its space has no more configurations",
}
"""Why a search ended before its number of trials."""


def format_metric_value(metric: str, number: float | None) -> str:
    """Return a value as `76.2%`, or `0.123` for a metric other than an accuracy."""
    if number is None or math.isnan(number):
        return MISSING_TEXT
    return format_metric(metric, number)


def format_mean_and_deviation(metric: str, spread: SeedStatistics | None) -> str:
    """Return `76.2 ± 1.3%` (sample standard deviation), without the second part for a single value."""
    if spread is None or math.isnan(spread.mean):
        return MISSING_TEXT
    return format_metric(metric, spread.mean, spread.standard_deviation)


def format_arm_mean(arm: Arm, metric: str) -> str:
    """Return the `format_mean_and_deviation` of an arm's metric."""
    return format_mean_and_deviation(metric, arm.metric_statistics(metric))


def format_difference(metric: str, number: float, signed: bool = True, beside: Sequence[float] = ()) -> str:
    """Return a difference as `+16.0 points`, or `+0.012` for a metric other than an accuracy.

    Args:
        beside: ends of the interval that stands beside it, whose decimals it has.
    """
    (text,) = _numbers_in_unit(metric, number, beside=beside)
    text = text if signed else text.removeprefix("+")
    return f"{text} points" if is_percent_metric(metric) else text


def _numbers_in_unit(metric: str, *numbers: float, beside: Sequence[float] = ()) -> list[str]:
    """Return numbers as `+16.0` (percent) or `+0.012`, all with as many decimals as tell them apart.

    A number of which these would show nothing is written as `+0.0004`; counts, not in percent, as `+530`.
    """
    are_large = all(is_whole_count(number) or abs(number) >= 100 for number in numbers)
    plain = 0 if are_large else decimals_of_plain_numbers(*numbers, *beside)
    scale, digits = (100, 1) if is_percent_metric(metric) else (1, plain)
    scaled = [round(scale * number, MAX_DECIMALS) for number in numbers]
    while len({round(each, digits) for each in scaled}) < len(set(scaled)) and digits < MAX_DECIMALS:
        digits += 1
    shown = [
        max(digits, math.ceil(-math.log10(abs(each))) if each and not round(each, digits) else 0) for each in scaled
    ]
    return [f"{each + 0.0:+.{places}f}" for each, places in zip(scaled, shown, strict=True)]


MAX_DECIMALS = 12
"""Largest number of decimals: what is smaller is the noise of rounding."""


def every_seed_or_draw_text(difference: Difference) -> str:
    """Return what each has the same value where an interval has no width: every seed, or every draw of the samples."""
    return "every draw of the samples" if difference.is_over_samples else "every seed"


def zero_width_interval_text(difference: Difference) -> str:
    """Return what stands for an interval without a width, which says nothing: `on every seed alike`."""
    return f"on {every_seed_or_draw_text(difference)} alike"


TOO_FEW_SEEDS_TEXT = "too few seeds to judge"
"""Stands for an interval that two seeds alone make so wide that it holds zero."""


def printed_interval_ends(difference: Difference) -> Sequence[float]:
    """Return the ends of an interval that are printed; none where words stand in its place."""
    return () if difference.is_unclear_for_few_seeds else difference.interval or ()


def difference_with_interval(metric: str, difference: Difference, words: str = "95% interval ", where: str = "") -> str:
    """Return `+16.0 points (95% interval +12.1 to +19.9)`; the change alone where there is no interval.

    Args:
        words: before the interval.
        where: behind the change, with a blank before it.
    """
    text = format_difference(metric, difference.value, beside=printed_interval_ends(difference)) + where
    if difference.interval is None:
        return text
    if difference.has_zero_width:
        return f"{text} {zero_width_interval_text(difference)}"
    before = "" if difference.is_unclear_for_few_seeds else words
    return f"{text} ({before}{format_difference_interval(metric, difference)})"


def format_difference_interval(metric: str, difference: Difference) -> str:
    """Return `+12.1 to +19.9`, in the unit of `format_difference`; words in its place where it says nothing."""
    if difference.interval is None:
        return MISSING_TEXT
    if difference.has_zero_width:
        return zero_width_interval_text(difference)
    if difference.is_unclear_for_few_seeds:
        return TOO_FEW_SEEDS_TEXT
    return " to ".join(_numbers_in_unit(metric, *difference.interval))


def difference_with_verdict(metric: str, difference: Difference, better: bool, over: str, where: str = "") -> str:
    """Return the `difference_with_interval` of a difference, and whether it is beyond the spread over seeds.

    Args:
        better: whether its direction is the wanted one.
        where: as in `difference_with_interval`.
        over: what the trials behind it differ in.
    """
    if difference.is_clear is None and difference.is_over_samples:
        return f"{format_difference(metric, difference.value)}{where}, whose error on other samples is not known"
    if difference.is_clear is None or difference.is_unclear_for_few_seeds:
        seeds = "one seed" if difference.is_clear is None else "two seeds"
        return f"{format_difference(metric, difference.value)}{where}, which {seeds} cannot tell from luck"
    if difference.has_zero_width and not difference.value:
        return f"the same on {every_seed_or_draw_text(difference)}{where}"
    found, which = difference_with_interval(metric, difference, where=where), "better" if better else "worse"
    if difference.has_zero_width and difference.is_clear:
        return f"{found}, {which}{'' if difference.is_over_samples else ' on these samples'}"
    return f"{found}, {f'{which} beyond' if difference.is_clear else 'within'} the spread over {over}"


def format_value_interval(metric: str, ends: tuple[float, float] | None) -> str:
    """Return `64.1 to 79.9%`, the ends of a value's interval, in the unit of `format_metric_value`."""
    return MISSING_TEXT if ends is None else format_metric_range(metric, *ends)


def format_setting(value: object) -> str:
    """Return a parameter's value as text; a float with four significant digits."""
    if isinstance(value, float):
        return MISSING_TEXT if math.isnan(value) else f"{value:.4g}"
    if value is None:
        return MISSING_TEXT
    if isinstance(value, list | tuple):
        return ", ".join(format_setting(item) for item in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `11th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def format_duration(seconds: float) -> str:
    """Return seconds as `40 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def join_with_and(items: Iterable[Value]) -> str:
    """Return `1`, `1 and 2`, `1, 2 and 3`; of more than twelve, the first ten and how many more there are."""
    texts = [str(item) for item in items] or [MISSING_TEXT]
    if len(texts) > 12:
        return f"{', '.join(texts[:10])} and {len(texts) - 10} more"
    *front, last = texts
    return f"{', '.join(front)} and {last}" if front else last


def trial_numbers_text(numbers: Sequence[int]) -> str:
    """Return `trial 3`, `trials 3 and 4`."""
    return f"trial{'s' if len(numbers) > 1 else ''} {join_with_and(numbers)}"


def seed_numbers_text(numbers: Sequence[int]) -> str:
    """Return `1, 2, 3`; of more than three in a row `1 to 5`; `-` for none."""
    in_a_row = range(numbers[0], numbers[0] + len(numbers)) if numbers else ()
    if len(numbers) > 3 and list(numbers) == list(in_a_row):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers)) or MISSING_TEXT


def seeds_text(numbers: Sequence[int], folds: int = 0) -> str:
    """Return `seed 0`, `one fold, seed 0`, `3 seeds (1, 2, 3)`, or `5 folds, each time on a seed of its own (...)`.

    Args:
        folds: how many folds the trials ran on; 0: the data have none.
    """
    if folds > 1 and len(numbers) > 1:
        times = f" {len(numbers) // folds} times" if len(numbers) >= 2 * folds else ""
        return f"{folds} folds{times}, each time on a seed of its own ({', '.join(map(str, numbers))})"
    if not numbers:
        return "no seed yet"
    if len(numbers) == 1:
        return "one fold, " * (folds == 1) + f"seed {numbers[0]}"
    repeated = "" if len(set(numbers)) == len(numbers) else ", some repeated"
    return f"{len(numbers)} seeds ({', '.join(map(str, numbers))}{repeated})"


def fresh_seeds_text(spec: StudySpec) -> str:
    """Return what configurations run on again: `fresh seeds`, or `all folds`, each of them on a fresh seed."""
    return "fresh seeds" if spec.folds is None else "all folds"


def arm_folds_and_seeds_text(arm: Arm, metric: str) -> str:
    """Return the folds and seeds behind an arm's value of a metric, in words."""
    return seeds_text(arm.metric_seeds(metric), len({trial.fold for trial in arm.trials} - {None}))


def name_of_best(results: Results) -> str:
    """Return what the configuration that leads is called: the best, with several metrics by the first.

    Where a reference is above it, it leads the search alone.
    """
    leads = "first of the search" if results.references_above_best else "best"
    return f"{leads} by first metric" if results.spec.objective.has_several_metrics else leads


def metric_with_direction(spec: StudySpec, name: str) -> str:
    """Return a metric's name and which values of it are better."""
    words = {"max": " (higher is better)", "min": " (lower is better)", None: ""}
    return name + words[spec.direction(name)]


def search_value_basis_text(spec: StudySpec) -> str:
    """Return what the search compares configurations by: `one seed`, `one fold`, `mean over 3 seeds`."""
    if spec.folds and spec.search.folds == "each":
        return "mean over all folds"
    if len(spec.seeds) == 1:
        return "one fold" if spec.folds else "one seed"
    return f"mean over {len(spec.seeds)} {'folds and seeds' if spec.folds else 'seeds'}"


METRICS_IN_WORDS = {
    "unbiased_accuracy": "accuracy with each group weighing alike",
    "shrunk_unbiased_accuracy": "accuracy with each group weighing alike (small ones shrunk)",
    "inferred_unbiased_accuracy": "accuracy with each inferred group weighing alike",
    "unbiased_log_loss": "log loss with each group weighing alike",
    "shrunk_unbiased_log_loss": "log loss with each group weighing alike (small ones shrunk)",
    "inferred_unbiased_log_loss": "log loss with each inferred group weighing alike",
    "balanced_log_loss": "log loss with each class weighing alike",
    "auc": "area under the ROC curve",
}
"""Metrics in words, where the name's own are not those that a reader knows."""

SPLITS_IN_WORDS = {"val": "validation", "test": "the test split", "train": "training"}


def metric_in_words(metric: str) -> str:
    """Return a metric as a reader calls it, with its name: `accuracy on validation (val/accuracy)`."""
    split, _, name = metric.partition("/")
    return f"{METRICS_IN_WORDS.get(name, name.replace('_', ' '))} on {SPLITS_IN_WORDS.get(split, split)} ({metric})"
