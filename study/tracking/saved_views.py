"""Views of an experiment, in the form in which MLflow's UI itself saves them, and its description, which links to them.

MLflow's filters know no "or", so that a view names the stages that it leaves out.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from study.spec import StudySpec
from study.tracking.mlflow_urls import FINAL_VIEW_KEY, RESULTS_VIEW_KEY, SEARCH_VIEW_KEY, view_url

BROKEN_CONSTRAINTS_TAG = "study.broken_limits"
"""Tag of a complete trial that breaks constraints of the study."""

RESULT_TAG = "study.result"
"""Tag of what is compared when a study is over: best, baseline, what needs no search, final trainings, ensembles."""

ALL_FOLDS_PREFIX = "all_folds/"
"""Prefix of metrics of a configuration on the samples of all folds together."""

SAVED_VIEW_TAG_PREFIX = "mlflow.sharedViewState."
"""Prefix of the tags of an experiment that are views, which the UI's menu *Views* offers; what follows is a view's key.
"""

SEARCH_STAGES, RERUN_STAGES = ("baseline", "search", "replicate"), ("confirm", "rule", "ablation")
"""Stages of the search, and of what runs again after it."""

SEARCH_EXPERIMENT_DESCRIPTION = """\
Search for {aims}. *Views*, above the list of runs, has {views}: a row each for the best, the baseline, what
needs no search and final trainings; the trials of the search, by {searched}; what ran again after it, by {decides},
which decides; the seeds of final trainings; and every trial.

Each run in the list is a study, whose description says what came of it; *+* beside it shows its trials. A ★ marks the
result, on each of its seeds: it is chosen on fresh seeds and with a margin, so that it need not be first; of several
metrics it is the best of the front in the first one. A red cross is a trial that was pruned, stopped or failed: its
tags say which.
"""

FINAL_EXPERIMENT_DESCRIPTION = """\
Final training, for {aims}. *Views* has {views}: a row per seed.

Each run in the list is a final training, whose description says what came of it; *+* beside it shows its seeds.
"""
"""Descriptions of an experiment, by what its studies are."""

BASE_COLUMNS = ("attributes.`Run Name`", "attributes.`Created`", "attributes.`Duration`")
"""Columns that each view begins with."""

PIXELS_PER_CHARACTER, NAME_PIXELS_PER_CHARACTER, HEAD_PIXELS = 7.5, 6.7, 30
"""Width of a column's head, in bold, and of a run's name: the UI cuts what is wider than its column."""

MIN_NAME_PIXELS, MAX_NAME_PIXELS = 250, 420
"""Width of the column of runs' names: as `★ trial 13, seed 0, fold 3` needs; the most that a study's name gets."""


@dataclass(frozen=True)
class _View:
    """A view of an experiment's runs.

    Attributes:
        run_filter: which runs it shows, in MLflow's words.
        columns: the first is what it sorts by.
        groups_by_configuration: whether runs of one configuration are one row, with the mean of each metric.
    """

    name: str
    run_filter: str
    columns: Sequence[str]
    groups_by_configuration: bool = False


def saved_view_tags(spec: StudySpec) -> dict[str, str]:
    """Return the views of a study's runs: results, the search alone, fresh seeds, final training, and all trials."""
    now = int(time.time() * 1000)
    tags = {}
    for place, (key, view) in enumerate(_views(spec).items()):
        state = {
            "searchFilter": view.run_filter,
            "orderByKey": view.columns[0],
            "orderByAsc": spec.objective.directions[0] == "min",
            "groupBy": GROUP_BY_CONFIGURATION if view.groups_by_configuration else None,
            "selectedColumns": view.columns,
            "columnOrder": [*BASE_COLUMNS, *view.columns],
            "columnWidths": {
                BASE_COLUMNS[0]: _name_pixels(spec) if key in (RESULTS_VIEW_KEY, FINAL_VIEW_KEY) else MIN_NAME_PIXELS,
                **{column: _column_pixels(column) for column in view.columns},
            },
        }
        saved = {"name": view.name, "createdAt": now + place, "updatedAt": now + place, "state": json.dumps(state)}
        tags[f"{SAVED_VIEW_TAG_PREFIX}{key}"] = json.dumps(saved)
    return tags


GROUP_BY_CONFIGURATION = {
    "aggregateFunction": "average",
    "groupByKeys": [{"mode": "tag", "groupByData": "study.configuration"}],
}


def experiment_description(spec: StudySpec, experiment: str) -> str:
    """Return what an experiment is, with links to its views."""
    links = [f"[*{view.name}*]({view_url(experiment, key)})" for key, view in _views(spec).items()]
    decides = "the samples of all folds together" if judges_folds_together(spec) else "the mean of a configuration"
    description = SEARCH_EXPERIMENT_DESCRIPTION if spec.final_seeds is None else FINAL_EXPERIMENT_DESCRIPTION
    return description.format(
        aims=spec.objective.metrics_and_directions_text,
        views=", ".join(links),
        searched="the value of each on its own fold" if spec.folds else "the value of each",
        decides=decides,
    )


def judges_folds_together(spec: StudySpec) -> bool:
    """Return whether what a configuration is worth on all folds is the value of their samples together, not a mean."""
    return spec.folds is not None and spec.training_function is None and len(spec.trial_data_sections) == 1


def view_metrics(spec: StudySpec) -> list[str]:
    """Return the study's validation metrics that views show, and the accuracy beside a log loss."""
    needed = spec.objective.needed_metrics
    accuracies = [] if spec.training_function else [name.replace("log_loss", "accuracy") for name in needed]
    return list(dict.fromkeys([*needed, *accuracies]))


def _views(spec: StudySpec) -> dict[str, _View]:
    """Return the views by key.

    Parameters of one method among several come last: they would push the others, which decide, out of sight.
    """
    names = view_metrics(spec)
    chosen = "chosen/" if spec.objective.epoch_window is not None else ""
    val = _metric_columns(f"{chosen}{name}" for name in names)
    fresh = _metric_columns(f"{ALL_FOLDS_PREFIX}{name}" for name in names) if judges_folds_together(spec) else val
    on_test = [f"test/{name.split('/')[1]}" for name in names]
    test = _metric_columns(on_test[: len(spec.objective.metrics)])
    final_test = _metric_columns(dict.fromkeys([*on_test, *([] if spec.training_function else ["test/accuracy"])]))
    partial = {key for key in spec.space.conditional_keys() if key.startswith("method.")}
    keys, of_one_method = (
        [f"params.`{key}`" for key in spec.search.space if (key in partial) == is_partial]
        for is_partial in (False, True)
    )
    seed, stage = "params.`train.seed`", "tags.`study.stage`"
    broken = [f"tags.`{BROKEN_CONSTRAINTS_TAG}`"] * bool(spec.objective.constraints)
    of_seeds = [*([] if spec.folds else val), *final_test, seed]  # with folds nothing validates a final training
    final = _View("Final training", _trials_filter(*SEARCH_STAGES, *RERUN_STAGES), of_seeds)
    if spec.final_seeds is not None:
        return {FINAL_VIEW_KEY: final}
    return {
        RESULTS_VIEW_KEY: _View(
            "Results", f"tags.`{RESULT_TAG}` = 'true'", [*_metric_columns(_result_columns(spec)), *keys, *of_one_method]
        ),
        SEARCH_VIEW_KEY: _View(
            "Search", _trials_filter(*RERUN_STAGES, "final"), [*val, *broken, *keys, stage, *of_one_method]
        ),
        "seeds": _View(
            "Fresh seeds",
            _trials_filter(*SEARCH_STAGES, "final"),
            [*fresh, *test, *broken, *keys, stage, seed, *of_one_method],
            True,
        ),
        FINAL_VIEW_KEY: final,
        "trials": _View("All trials", _trials_filter(), [*val, *test, *broken, *keys, stage, seed, *of_one_method]),
    }


def _result_columns(spec: StudySpec) -> list[str]:
    """Return the study's metrics and the accuracy beside a log loss on both splits, then accuracy on test.

    More would push these out of sight. Validation comes first, as nothing may be chosen by test; what nothing
    validates, as a final training of a study with folds, is below all that has a value there.
    """
    names = [name.split("/")[1] for name in view_metrics(spec)]
    n_needed = len(spec.objective.needed_metrics)
    own, beside = names[:n_needed], names[n_needed:]
    columns = [f"{split}/{name}" for name in own for split in ("val", "test")]
    columns += [f"{split}/{name}" for name in beside for split in ("test", "val")]
    return list(dict.fromkeys([*columns, *([] if spec.training_function else ["test/accuracy"])]))


def _metric_columns(names: Iterable[str]) -> list[str]:
    return [f"metrics.`{name}`" for name in names]


def _trials_filter(*left_out: str) -> str:
    """Return MLflow's filter for the trials of all but some stages."""
    return " and ".join(["tags.`study.kind` = 'trial'", *(f"tags.`study.stage` != '{stage}'" for stage in left_out)])


def _name_pixels(spec: StudySpec) -> int:
    """Return the width of names with the study's own in them, whose ends tell two final trainings apart."""
    longest = f"{spec.name}-baseline-final, seed 10"
    return max(MIN_NAME_PIXELS, min(MAX_NAME_PIXELS, int(2 * HEAD_PIXELS + NAME_PIXELS_PER_CHARACTER * len(longest))))


def _column_pixels(column: str) -> int:
    name = column.partition("`")[2].rstrip("`")
    return max(100, int(HEAD_PIXELS + PIXELS_PER_CHARACTER * len(name)))
