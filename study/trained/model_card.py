"""The model card of a final model: what it is, its data, how well it does for which groups, and how it was chosen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study import models, ranking
from study.data import Dataset, Facts
from study.data.cells import count_cells_of_split
from study.data.positive_class import positive_class_name
from study.data.table_findings import shortcut_sentences
from study.home.record import TrialRecord
from study.metrics import METRICS, group_names, is_percent_metric, is_standard_error
from study.metrics.intervals import wilson_interval
from study.metrics.metric_format import UNDEFINED_NUMBER_TEXT, format_metric, format_metric_range
from study.metrics.worst_group import GroupCounts, find_worst_group
from study.ranking import RELATIVE_TOLERANCE, Results, SeedStatistics
from study.ranking.arms import is_fitted_once
from study.ranking.chosen_epoch import chosen_epoch_text, metrics_at_chosen_epoch
from study.spec import StudySpec
from study.spec.schema import ExportOrigin
from study.spec.trial_sections import section_knobs
from study.text import escape_markdown, format_parameter, pluralise, rows_as_markdown


def _over_seeds_text(trials: Sequence[TrialRecord]) -> str:
    return f"over {pluralise(len(trials), 'seed')}"


@dataclass(frozen=True)
class DescribedModel:
    """The model that a card is about.

    Attributes:
        trials: the complete final trial whose weights it has, or those of an ensemble.
        metrics: every metric on validation and test, None for what is not a number.
    """

    trials: Sequence[TrialRecord]
    metrics: Mapping[str, float | None]

    @property
    def is_ensemble(self) -> bool:
        """Whether its probabilities are the mean of several networks'."""
        return len(self.trials) > 1

    @property
    def metrics_column_title(self) -> str:
        """Head of the column of its metrics."""
        return "the model" if self.is_ensemble else f"seed {self.trials[0].seed}"

    @property
    def described_split(self) -> str:
        """Split that it is described on."""
        return "test" if any(name.startswith("test/") for name in self.metrics) else "val"


def described_model(results: Results, trials: Sequence[TrialRecord]) -> DescribedModel:
    """Return what a card says of the network of one final trial, or of the study's ensemble, whose trials these are."""
    if len(trials) > 1:
        assert results.record.ensemble is not None
        return DescribedModel(trials, results.record.ensemble.metrics)
    (trial,) = trials
    return DescribedModel(trials, {**metrics_at_chosen_epoch(results.spec.objective, trial), **trial.test_metrics})


def group_counts_of_split(model: DescribedModel, dataset: Dataset) -> GroupCounts | None:
    """Return the counts of the groups on the split of its card; None without bias labels there."""
    split = model.described_split
    samples, facts = dataset.splits.get(split), dataset.facts.facts_of_split(split)
    found = None if samples is None else count_cells_of_split(samples, facts)
    if found is None or not found.cells:
        return None
    labelled = found.samples - found.unlabelled
    return GroupCounts.from_metrics(
        split, found.cells, lambda name: model.metrics.get(f"{split}/{name}"), labelled, facts.aligned_cells
    )


CARD_FAIRNESS_METRICS = (
    "equalized_odds_difference",
    "equalized_odds",
    "equal_opportunity",
    "demographic_parity",
    "accuracy_parity",
)
"""Gaps between groups as fractions, 0 is fair. The first is fairlearn's, the second the papers' mean."""


def model_card(
    results: Results,
    model: DescribedModel,
    dataset: Dataset,
    description: str,
    size: str = "",
    whole: bool = False,
    inputs: Sequence[str] = (),
) -> str:
    """Return a model card in Markdown.

    Args:
        description: docstring of the data set's module; the first line is used.
        size: how large it is and how long a sample takes; empty: not known.
        whole: whether a frozen network's weights are among the model's files.
        inputs: columns of a table of the user's that the model takes.
    """
    trials = results.final_training_trials
    seeds = ", ".join(str(trial.seed) for trial in trials)
    method = results.spec.base["method"]
    trained_for = pluralise(results.spec.epochs, "epoch")
    made = (
        f"{_section_name_text(results.spec, 'method')} on {_section_name_text(results.spec, 'model')}, "
        f"trained for {trained_for}"
    )
    made = f"scikit-learn's `{method['model']}`, fitted" if results.spec.is_scikit_learn_reference else made
    columns = [_over_seeds_text(trials), "95%", model.metrics_column_title]
    values = (
        f"Mean ± sample standard deviation over the seeds, {chosen_epoch_text(results.spec.objective)}; its "
        "95% interval by the seeds and by the error of the split's own samples, which all seeds share; and the "
    )
    chosen = [metrics_at_chosen_epoch(results.spec.objective, trial)["epoch"] for trial in model.trials]
    if model.is_ensemble:
        whose = (
            f"on seeds {seeds}. The model is the ensemble of their {len(model.trials)} networks: its probabilities are "
            f"the mean of theirs, {_why_ensemble_text(results.spec)}"
        )
        of_each = dict.fromkeys(map(str, chosen))
        values += f"value of the ensemble. Its weights are those at the end of epoch {', '.join(of_each)}."
    else:
        why = _why_seed_text(results.spec, model.trials[0], dataset)
        whose = f"on seeds {seeds}. The weights are those of {model.metrics_column_title}, {why}"
        values += f"value of this seed. Its weights are those at the end of epoch {chosen[0]}."
    if is_fitted_once(results.spec, trials):
        whose, columns = "once: it knows no seed, or hardly", ["value", "95%"]
        values = "The 95% interval is by the error of the split's own samples."
    rows = [row[: 1 + len(columns)] for row in _metric_rows(results.spec, trials, model)]
    parts = [
        f"# {results.spec.name}",
        f"{made} {whose}.",
        *_worst_group_sentences(model, dataset),
        *_initial_weights_sentences(results, whole),
        *(["## Size and time", size] if size else []),
        "## Data",
        *_data_sentences(results.spec, dataset, description),
        *([f"Inputs: {', '.join(map(escape_markdown, inputs))}."] if inputs else []),
        "## Metrics",
        values,
        rows_as_markdown(["metric", *columns], rows),
        "## Groups",
        *_group_sections(results.spec, trials, model, dataset),
        "## How it was chosen",
        _configuration_sentence(results.spec),
        *_configuration_choice_sentences(results),
        "## Limits",
        *_limit_sentences(results.spec, dataset),
    ]
    return "\n\n".join(parts) + "\n"


def _section_name_text(spec: StudySpec, section: str) -> str:
    """Return what the study calls a section, and its name where that is another."""
    name, label = f"`{spec.base[section]['name']}`", spec.exported_label(section)
    return f"`{label}` ({name})" if label else name


def _initial_weights_sentences(results: Results, whole: bool) -> Iterator[str]:
    """Yield which weights training began from, or stays on, where it was not random ones."""
    model = results.spec.base["model"]
    is_frozen = model.get("frozen")
    begins = "It is trained on features of a frozen network with" if is_frozen else "Training began from"
    if models.has_trained_stages(model):
        begins = "It is trained on maps and features of a frozen network, whose last stages train along, with"
    where = "is among the model's files" if whole else "is needed wherever the model is used"
    needed = f" Their file {where}." if is_frozen else ""
    needed += " What they learned of their own data, biases too, may be in this model."
    needed += " Features are rounded to float16, as in training." if is_frozen else ""
    for entry in results.record.sessions[-1].weights or ():
        yield (
            f"{begins} the weights {escape_markdown(entry['name'])} ({escape_markdown(entry['file'])}, SHA-256 "
            f"{entry['sha256']}).{needed}"
        )


def _why_ensemble_text(spec: StudySpec) -> str:
    if spec.folds or spec.train.with_val:
        return "so that its log loss is at most the mean of theirs; nothing is left to choose one of them by"
    return "as it is better on validation than each of them"


def _why_seed_text(spec: StudySpec, trial: TrialRecord, dataset: Dataset) -> str:
    if spec.folds:
        return (
            "the first of them: it was trained on all samples outside test (data.folds), and nothing is left to choose"
        )
    if spec.train.with_val:
        return "the first of them: the validation split was used for training and could not choose"
    facts = dataset.facts
    words = group_names.group_metric_in_words(spec.metric, facts.class_names, facts.bias_names)
    metric = spec.metric + (f" ({escape_markdown(words)})" if words else "")
    score = ranking.mean_score(spec.objective, [trial])
    if score and score.total_violation > 0:
        missed = spec.objective.broken_constraints_text(score)
        return f"the one of them that comes closest to the limits: it misses {escape_markdown(missed)}"
    limits = escape_markdown(" and ".join(spec.search.constraints))
    return f"the best {f'of those that keep {limits}' if limits else 'of them'} by {metric}"


def _data_sentences(spec: StudySpec, dataset: Dataset, description: str) -> Iterator[str]:
    section = ", ".join(f"{key} {value}" for key, value in spec.base["data"].items() if value not in (None, "", []))
    counts = ", ".join(f"{len(split)} in {name}" for name, split in dataset.splits.items())
    yield escape_markdown(description.splitlines()[0] if description else dataset.facts.title)
    yield f"{escape_markdown(section)}; fingerprint {dataset.fingerprint}. {counts}."
    if dataset.facts.class_names:
        yield f"Classes: {', '.join(map(escape_markdown, dataset.facts.class_names))}."
    if positive := positive_class_name(dataset.facts.class_names):
        yield f"Positive class: {escape_markdown(positive)}; the true positive rate is of it."
    if dataset.facts.bias_names:
        yield f"Bias (sensitive, spurious) classes: {', '.join(map(escape_markdown, dataset.facts.bias_names))}."


def _metric_rows(spec: StudySpec, trials: Sequence[TrialRecord], model: DescribedModel) -> Iterator[list[str]]:
    values, spreads = model.metrics, ranking.statistics_by_metric(spec.objective, trials)
    undefined = [name for name in values if name.startswith(("val/", "test/")) and name not in spreads]
    for name in [*spreads, *undefined]:
        if not name.split("/")[1].startswith("group_") and not is_standard_error(name):
            ends = spreads[name].confidence_interval() if name in spreads else None
            interval = "-" if ends is None else format_metric_range(name, *ends)
            # seeds that differ in their inferred groups leave an ensemble without metrics of these
            own = _value_text(name, values[name]) if name in values else "-"
            yield [name, _mean_and_deviation_text(name, spreads.get(name)), interval, own]


def _worst_group_sentences(model: DescribedModel, dataset: Dataset) -> Iterator[str]:
    found, facts = group_counts_of_split(model, dataset), dataset.facts
    if found and (worst := find_worst_group(found, facts.class_names, facts.bias_names)):
        yield escape_markdown(" ".join(worst.sentences()))


def _group_sections(
    spec: StudySpec, trials: Sequence[TrialRecord], model: DescribedModel, dataset: Dataset
) -> Iterator[str]:
    """Yield accuracy of each (class, bias class) group, with intervals; and the gaps between groups."""
    split = model.described_split
    facts = dataset.facts.facts_of_split(split)
    if not facts.bias_classes:
        yield "The data have no bias labels on this split, so how the model treats groups is not known."
        return
    found = group_counts_of_split(model, dataset)
    rows = list(_group_rows(spec, trials, found, facts)) if found else []
    is_once, of_model = is_fitted_once(spec, trials), "the " * (not model.is_ensemble) + model.metrics_column_title
    if rows:
        yield (
            f"Accuracy on the {split} split by class and bias class. The interval is Wilson's 95% interval for the "
            f"samples of the group{'' if is_once else f'; it is for {of_model}'}."
        )
        columns = ["value"] if is_once else [_over_seeds_text(trials), model.metrics_column_title]
        rows = [[*row[:3], *row[-1 - len(columns) :]] for row in rows]
        yield rows_as_markdown(["class", "bias class", "samples", *columns, "95%"], rows)
    else:
        yield f"There are {facts.classes} x {facts.bias_classes} groups, too many to list. The gaps are between these."
    values = model.metrics
    known = {name: values[f"{split}/{name}"] for name in CARD_FAIRNESS_METRICS if f"{split}/{name}" in values}
    if known:
        gaps = (f"- {name} {_value_text(name, value)}: {METRICS[name].description}" for name, value in known.items())
        yield "Gaps, 0 is fair:\n\n" + "\n".join(gaps)
        cells = count_cells_of_split(dataset.splits[split], facts).cells or ()
        yield escape_markdown(f"On {split} {group_names.groups_compared_by_gaps_sentence(cells, facts.class_names)}")


def _group_rows(
    spec: StudySpec, trials: Sequence[TrialRecord], found: GroupCounts, facts: Facts
) -> Iterator[list[str]]:
    spreads = ranking.statistics_by_metric(spec.objective, trials)
    for (y, s), (right, samples) in found.by_cell.items():
        low, high = wilson_interval(right / samples, samples)
        metric = f"{found.split}/group_{y}_{s}_accuracy"
        names = group_names.class_name(facts.class_names, y), group_names.class_name(facts.bias_names, s)
        own, interval = format_metric(metric, right / samples), format_metric_range(metric, low, high)
        yield [*names, str(samples), _mean_and_deviation_text(metric, spreads.get(metric)), own, interval]


def _configuration_sentence(spec: StudySpec) -> str:
    """Return what of network, method and training differs from the defaults."""
    sections = {
        part: {key: knob.default for key, knob in section_knobs(part, spec.base[part]).items()}
        for part in ("model", "method", "train")
    }
    told = [
        f"{part}.{key} {(key == 'name' and spec.exported_label(part)) or format_parameter(value)}"
        for part, defaults in sections.items()
        for key, value in spec.base[part].items()
        if key == "name" or (key in defaults and value not in ([], defaults[key]))
    ]
    return f"{escape_markdown(', '.join(told))}; other keys have their defaults."


def _configuration_choice_sentences(results: Results) -> Iterator[str]:
    origin: ExportOrigin = results.spec.origin or {}
    if origin.get("baseline"):
        yield f"Configuration: the baseline of the study `{origin['study']}`, as its file gives it: no search chose it."
    elif "reference" in origin:
        yield (
            f"Configuration: the reference {origin['reference']} of the study `{origin['study']}`, which needs no "
            f"search: of {origin['trials']} configurations that were tried none was chosen over it, on the validation "
            f"split alone ({escape_markdown(str(origin['chosen_by']))})."
        )
    elif "study" in origin:
        yield (
            f"Configuration: trial {origin['trial']} of the study `{origin['study']}`, which tried {origin['trials']} "
            f"configurations; chosen by {escape_markdown(str(origin['chosen_by']))}, on the validation split alone."
        )
        if not origin.get("changed") and not origin.get("told"):  # of an earlier version, or not the study's result
            yield from _gain_sentences(origin.get("gain") or {}, origin.get("confirmed") or {})
    else:
        yield "Configuration: given in a study file, not chosen by a search of this home."
    if origin.get("told") and not origin.get("changed"):
        yield f"The report of that study says of it: {escape_markdown(' '.join(origin['told']))}"
    if changed := origin.get("changed"):
        yield f"Changed since: {', '.join(map(escape_markdown, changed))}."
    readings, earlier_readings = results.record.n_test_readings, origin.get("test_readings")
    by_study = f"{earlier_readings} by that study and " if earlier_readings is not None else ""
    yield (
        f"Readings of the test split: {by_study}{readings} by this training, each of one "
        "model. Nothing was chosen by them. Choosing by them from now on would make the test split useless."
    )


def _gain_sentences(gains: Mapping[str, Any], confirmed: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the search gained over its baseline, as the export wrote it down.

    Args:
        confirmed: each metric on fresh seeds; of the samples of all folds together it has no deviation.
    """
    for name, gain in gains.items():
        sentence = f"In that study it differed from the baseline by {_change_text(name, gain['difference'])} in {name}"
        fresh = confirmed.get(name)
        is_over_samples = fresh and fresh["n"] > 1 and fresh["sd"] is None
        if not gain["interval"]:
            of_samples, of_seed = "whose error on other samples is not known", "which one seed cannot tell from luck"
            yield f"{sentence}, {of_samples if is_over_samples else of_seed}."
            continue
        low, high = gain["interval"]
        if high - low <= RELATIVE_TOLERANCE * max(abs(low), abs(high)):
            yield f"{sentence}, on every {'draw of the samples' if is_over_samples else 'seed'} alike."
            continue
        how = "Student's t of the differences by seed" if gain["paired"] else "Welch's t"
        how = "by the samples of all folds drawn anew, the same for both" if is_over_samples else how
        chosen = f"; the choice among {gain['among']} configurations is allowed for" if gain["among"] > 1 else ""
        between = f"{_change_text(name, low, unit=False)} to {_change_text(name, high, unit=False)}"
        yield f"{sentence} (95% interval {between}, {how}{chosen})."


def _limit_sentences(spec: StudySpec, dataset: Dataset) -> Iterator[str]:
    others = "places or people" if dataset.facts.is_table else "cameras, places or people"
    limits = [
        f"It was measured on the splits named above only: other {others} are not covered.",
        "Probabilities are the softmax of the scores and are not calibrated.",
    ]
    if dataset.facts.bias_classes:
        limits.append("Groups are those of the data's labels; for other groups the model may do better or worse.")
    if shortcut := dataset.facts.shortcut:
        limits.append(escape_markdown(shortcut_sentences(*shortcut)))
    if (share := spec.train.data_share) < 1:
        limits.append(f"Trained on {share:g} of the training samples.")
    yield "\n".join(f"- {limit}" for limit in limits)


def _mean_and_deviation_text(name: str, spread: SeedStatistics | None) -> str:
    return _value_text(name, spread.mean, spread.standard_deviation) if spread else UNDEFINED_NUMBER_TEXT


def _value_text(name: str, value: float | None, deviation: float | None = None) -> str:
    return UNDEFINED_NUMBER_TEXT if value is None else format_metric(name, value, deviation)


def _change_text(name: str, change: float, unit: bool = True) -> str:
    """Return a difference as `+16.0 points`, or `+0.012` for what is not in percent."""
    return f"{100 * change:+.1f}{' points' * unit}" if is_percent_metric(name) else f"{change:+.3f}"
