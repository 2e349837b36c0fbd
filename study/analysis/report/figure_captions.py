"""Captions of the report's figures, with what their values are based on."""

from study.analysis.figures.trade_off_figures import (
    is_trade_off_front_drawn,
    reference_in_trade_off,
    trade_off_configurations,
)
from study.analysis.statistics import formatting
from study.ranking import Results
from study.ranking.final_model import final_model_trials
from study.spec import StudySpec
from study.spec.rungs import RungSchedule
from study.text import sentence_case

FIGURE_CAPTIONS = {
    "front": "{left} mark is one configuration of the search{mean}. The ring is {chosen}.{fresh}{beaten}",
    "seeds": "{tick}{fitted}",
    "ablation": "Each bar is one step on the way from the baseline to what led the search, from the value before it "
    "to the value after it; the line is the interval of its end. The intervals hold together in 95% of cases.",
    "learning_curves": "Each line is one trial.{repeats}{of_folds}{rungs}",
    "trade_off": "{left} mark is one configuration of the search{joined}.{fresh}{of_folds}{undrawn}",
    "importance": "Shares of the metric's variance over the searched space, each value drawn with equal chance, from "
    "the search's complete trials that have the parameter; with early stopping, among what it let through. A "
    "parameter: what it explains alone. Interactions: what pairs explain beyond that. Remainder: noise between trials, "
    "and what is too jagged or takes three parameters. Lines are 95% intervals.",
}
"""Captions by figure; what depends on the study is in braces, see `figure_caption`."""

RINGS_TEXT = "Each ring is one {}. The tick is the mean, the line one sample standard deviation to each side."


JOINED_FOLDS_TEXT = (
    "On validation the diamond is the value over the samples of all folds together, as in every table, and the line "
    "its standard error. On test each ring is one fold's model, on a seed of its own, the tick the mean, the line one "
    "sample standard deviation to each side."
)


def figure_caption(name: str, results: Results) -> str:
    """Return a figure's caption, with what its values are based on."""
    means = "" if len(results.spec.seeds) == 1 else f" (mean over its {len(results.spec.seeds)} seeds)"
    repeats = "" if results.spec.final_seeds is not None else " Trials that repeat one on another seed are left out."
    given = {
        "mean": means,
        "repeats": repeats,
        "of_folds": "",
        "rungs": _rungs_text(results.spec),
        "tick": RINGS_TEXT.format("seed"),
        "fitted": f" {reference_fit_count_text(results.spec)}." if results.reference_as_result else "",
    }
    if not results.reference_as_result and results.best_reference and results.spec.final_seeds is None:
        given["fitted"] = f" {sentence_case(results.best_reference.name_in_sentence)} has no seeds."
    if results.final_training_arm and results.final_training_arm.is_fitted_without_seed:
        given["tick"] = "The ring is its value: it was fitted once."
    elif len(final_model_trials(results)) > 1:
        given["tick"] += " The diamond is the model, the ensemble of their networks."
    if results.spec.folds and results.spec.final_seeds is None:
        are_joined = any(arm.joined_folds for arm in results.fresh_seed_arms)
        given["tick"] = JOINED_FOLDS_TEXT if are_joined else RINGS_TEXT.format("fold")
        if results.spec.search.folds != "each":
            given["of_folds"] = " Each trial is measured on one fold, so part of what sets them apart is the fold."
    if name == "trade_off":
        given |= _trade_off_caption_words(results)
    if name == "front":
        given |= _front_caption_words(results)
    return FIGURE_CAPTIONS[name].format(**given)


def _trade_off_caption_words(results: Results) -> dict[str, str]:
    """Return what the caption of the trade-off says of this one: of a second panel, and of the line in the first."""
    searched, fresh = trade_off_configurations(results)
    reference = None if reference_in_trade_off(results) else results.reference_as_result
    where = formatting.fresh_seeds_text(results.spec)
    aside = ", the baseline left aside" if results.baseline else ""
    are_read = {any(trial.test_metrics for trial in arm.trials) for arm in results.fresh_seed_arms}
    read = " and whose test split was read" * (len(are_read) > 1)  # the panel is of test where one was read
    return {
        "left": "First panel: each" if searched and fresh else "Each",
        "joined": f"; the front joins those that no other beats in both{aside}" * is_trade_off_front_drawn(results),
        "fresh": f" Second: those that ran on {where}{read}, mean ± sample standard deviation over these."
        * bool(fresh),
        "undrawn": f" The result, {reference.name_in_sentence}, needs no search and is not among them."
        if reference
        else "",
    }


def _front_caption_words(results: Results) -> dict[str, str]:
    """Return what the caption of the front says of this one."""
    fresh = any(score is candidate.confirmed_score for candidate, score in results.scored_candidates)
    right = f" The others: those that ran on {formatting.fresh_seeds_text(results.spec)}, mean ± sample standard "
    right += "deviation over these; what is grey is not on the front."
    chosen = "what leads the search" if results.reference_as_result else "what was chosen"
    chosen = f"{chosen} of the front: {results.spec.objective.front_choice_text}"
    if results.scored_candidates[0][1].total_violation > 0:
        chosen = "what misses the limits by least: there is no front"
    beaten = " The front is that of all metrics: in these two alone some of it may look beaten."
    return {
        "chosen": chosen,
        "left": "First panel: each" if fresh else "Each",
        "fresh": right * fresh,
        "beaten": beaten * (len(results.spec.objective.metrics) > 2),
    }


def _rungs_text(spec: StudySpec) -> str:
    """Return what the dotted lines among learning curves are; nothing where there are none."""
    if spec.final_seeds is not None or not RungSchedule(spec.search.early_stopping, spec.epochs).rung_epochs:
        return ""
    in_full = "; the baseline runs in full" * (spec.search.baseline is not None)
    return (
        " Dotted lines are the epochs at which a trial is compared with those that reached them before it, and pruned "
        f"where it is worse{in_full}."
    )


def reference_fit_count_text(spec: StudySpec) -> str:
    """Return how often a reference was fitted, as a sentence without its full stop."""
    return f"What needs no search was fitted once{' on each fold' if spec.folds else ''}"
