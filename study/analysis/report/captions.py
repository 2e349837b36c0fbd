"""The captions of the report's figures, in the order in which the page shows them."""

from study.analysis.statistics import formatting, hypervolume, seed_words
from study.spec import StudySpec

CAPTIONS = {
    "seeds": "Each ring is one seed; the tick is the mean, the line one sample standard deviation to each side.",
    "ablation": "Each bar is one step on the way from the baseline to the best, from the value before it to the value "
    "after it; the line is the interval of its end. The intervals hold together in 95% of cases.",
    "learning_curves": "Each line is one trial. Trials that repeat one on another seed are left out.",
    "trade_off": "Each mark is one configuration of the search. The front joins those that keep the constraints and "
    "are not dominated in these two metrics.",
    "hypervolume": "The volume between the validation front and the reference point ({reference}), after each complete "
    "configuration of the search, of those that keep the constraints.",
    "worst_group": "Each mark is one configuration of the search.",
    "parameters": "Each mark is one trial of the search, {leading}; complete ones are coloured by their order. A "
    "pruned trial (by early stopping) is drawn below all values, in the row of the epoch at which it was pruned. The "
    "dashed line is the baseline{mean}.",
    "importance": "Shares of the metric's variance over the searched space, each value drawn with equal chance, from "
    "the search's complete trials that have the parameter; with early stopping, among what it let through. A "
    "parameter: what it explains alone. Interactions: what pairs explain beyond that. Remainder: noise between trials, "
    "and what is too jagged or takes three parameters. Lines are 95% intervals.",
    "surface": "Each mark is one complete trial{mean}. Each tile with three trials or more is their mean.",
    "ranks": "Each mark is one complete trial{mean}, coloured by its place among all of them: an outlying value hides "
    "no other.",
    "parallel": "Each line is one complete trial, coloured by its value{mean}. On the page, draw along an axis to pick "
    "trials.",
    "progress": "Each mark is one trial of the search, {leading}. A pruned trial has no value at the end: it is drawn "
    "below all values, in the row of the epoch at which it was pruned. Only complete trials count for the best so "
    "far{mean}.",
    "best_over_time": "The best value of a complete configuration so far, {searched}. Left: over wall-clock time, with "
    "pauses. Right: over the time that trials ran, summed over trials. The dashed line is the baseline{mean}.",
    "timeline": "Each bar is one trial from its start to its end; of a trial that was lost or interrupted, its last "
    "run. There are as many rows as trials ran at once, and what is empty was idle. Pauses of the study are left out.",
    "tuning_curve": "The line is the median, over searches of this kind, of the best of so many trials drawn at "
    "random, each with the training seed of this search. The band holds at all numbers of trials at once with 95%, "
    "whatever the values' distribution; where it is pale, no trial bounds it from one side. A dashed line is the "
    "baseline, where it is not below the figure.",
}
"""In braces what depends on the seeds, see `caption`."""

WHICH_MODELS = (
    "Features of the encoder at the last epoch, on the test split (validation where there is none): for the baseline "
    "and the best configuration the first of the fresh seeds. Nothing was chosen by these figures."
)

MODEL_CAPTIONS = {
    "similarities": "All pairs of samples. Where the bias does not matter, the two lines of a panel coincide. Shown "
    "are the baseline, all configurations that were confirmed on fresh seeds, and the epochs of train.keep_epochs. The "
    "FairKL paper's Fig. 5 compares values of epsilon in this way.",
    "groups": "Left: mean cosine of two samples of a group, its compactness. Right: mean cosine of a sample of the "
    "group and one of another class; lower means better separated. The spread over groups is that of the FSCL paper's "
    "Fig. 2: the smaller, the fairer.",
    "neighbours": "Anchors drawn at random, each with the samples of other classes of the lowest and the highest "
    "cosine, which is given below each image.",
    "tsne": "Distances between clusters say little. Where the bias does not matter, the colours on the right mix.",
}


def caption(name: str, spec: StudySpec) -> str:
    """A figure's caption, with the seeds that its values stand on."""
    means = "" if len(spec.seeds) == 1 else f" (mean over its {len(spec.seeds)} seeds)"
    return CAPTIONS[name].format(
        leading=seed_words.leading(spec), searched=seed_words.searched(spec), mean=means, reference=_reference(spec)
    )


def _reference(spec: StudySpec) -> str:
    """The reference point of the hypervolume, as far as the metrics themselves say it."""
    worst = hypervolume.bounds(spec)
    return ", ".join(
        f"{name} {'the worst that was found' if value is None else formatting.setting(value)}"
        for name, value in zip(spec.objective.metrics, worst, strict=True)
    )
