"""Importance over every kind of range and choices that a study can search."""

import numpy as np
import pytest

from study.analysis.figures.result_figures import importance_title
from study.analysis.report.page_formats import page_to_markdown
from study.analysis.report.report_page import build_report_page
from study.analysis.statistics.importance import MIN_IMPORTANCE_TRIALS, compute_importances, importance_frame
from study.ranking import Results
from study.spec import StudySpec, load_study
from study.spec.optuna_distributions import distributions_of_space, value_at_unit_coordinate

DOMAINS = {
    "a float key between whole numbers": ("method.lambda", "{low: 0, high: 2}"),
    "a float key with one whole end": ("method.lambda", "{low: 0, high: 2.5}"),
    "a float key in whole steps": ("method.lambda", "{low: 0, high: 4, step: 1}"),
    "a float key in steps that miss its end": ("method.lambda", "{low: 0, high: 1, step: 0.3}"),
    "a float key between whole numbers, log": ("method.lambda", "{low: 1, high: 100, log: true}"),
    "a whole-number key": ("train.batch_size", "{low: 16, high: 64}"),
    "a whole-number key in steps": ("train.batch_size", "{low: 16, high: 60, step: 16}"),
    "a whole-number key, log": ("train.batch_size", "{low: 16, high: 64, log: true}"),
    "whole and broken numbers": ("method.lambda", "{choices: [0, 0.5, 2]}"),
    "numbers and nothing": ("train.clip_norm", "{choices: [null, 1, 2.5]}"),
    "yes and no": ("train.drop_last", "{choices: [true, false]}"),
    "words": ("train.schedule", "{choices: [constant, cosine]}"),
}


def searched(key: str, domain: str) -> StudySpec:
    """The quickstart, which searches this key beside alpha."""
    space = f"search.space={{method.alpha: {{low: 0.01, high: 1, log: true}}, {key}: {domain}}}"
    settings = ["train.epochs=4", "search.early_stopping.grace=1", "search.trials=12", "search.baseline=null"]
    return load_study("fairkl_digits", [space, *settings])


def draws(spec: StudySpec, count: int) -> list[dict[str, object]]:
    """Parameters that the study's own samplers could give, spread over the space."""
    by_key = distributions_of_space(spec.space)
    shifts = {key: place * 0.382 for place, key in enumerate(by_key)}
    return [
        {key: value_at_unit_coordinate(one, (number * 0.618 + shifts[key]) % 1.0) for key, one in by_key.items()}
        for number in range(count)
    ]


@pytest.mark.parametrize(("key", "domain"), DOMAINS.values(), ids=DOMAINS)
def test_a_parameter_is_weighed_whatever_its_values_are(key, domain, writer):
    spec, study = searched(key, domain), writer()
    for number, params in enumerate(draws(spec, MIN_IMPORTANCE_TRIALS)):
        study.trial("search", [0.3, 0.4, 0.5, 0.5 + number % 5 / 10], params=params)
    found = compute_importances(Results(spec, study.record()))
    assert found.n_trials_by_key == {"method.alpha": MIN_IMPORTANCE_TRIALS, key: MIN_IMPORTANCE_TRIALS}
    parts = [*found.share_by_key.values(), found.interactions_share, found.remainder_share]
    assert sum(part.value for part in parts) == pytest.approx(1.0)
    assert all(0.0 <= part.low <= part.high <= 1.0 for part in parts)


def test_the_report_says_why_importance_is_missing(writer):
    spec, record = study_of(writer, lambda alpha, _: alpha, count=MIN_IMPORTANCE_TRIALS - 1)
    said = (
        "Not shown: how important each parameter is. The reason: 29 trials of the search have a value, 30 are needed."
    )
    assert said in page_to_markdown(build_report_page(Results(spec, record), {"learning_curves"}))
    assert said not in page_to_markdown(
        build_report_page(Results(spec, record), {"parameters": "each", "importance": "shown"})
    )


def study_of(writer, response, count=60, stop=()):
    """A search over alpha and lambda at coordinates that fill the space; `stop` are pruned after one epoch."""
    spec, study = searched("method.lambda", "{low: 0, high: 2}"), writer()
    for number, params in enumerate(draws(spec, count)):
        value = response((number * 0.618) % 1.0, (number * 0.618 + 0.382) % 1.0)
        noise = 0.01 * ((number * 0.754) % 1.0)
        ran = [value - 0.2, value - 0.1, value, value + noise]
        pruned = number in stop
        study.trial("search", ran[:1] if pruned else ran, "pruned" if pruned else "complete", params=params)
    return spec, study.record()


def test_what_only_two_explain_together_is_no_parameters_own(writer):
    spec, study = searched("method.lambda", "{low: 0, high: 2}"), writer()
    by_key, generator = distributions_of_space(spec.space), np.random.default_rng(0)
    for units in generator.random((80, 2)):
        params = {
            key: value_at_unit_coordinate(one, unit) for (key, one), unit in zip(by_key.items(), units, strict=True)
        }
        value = 0.5 + 0.3 * (2 * units[0] - 1) * (2 * units[1] - 1) + generator.normal(0, 0.02)
        study.trial("search", [0.3, 0.4, 0.5, value], params=params)
    found = compute_importances(Results(spec, study.record()))
    assert all(share.value < 0.05 for share in found.share_by_key.values())
    assert found.interactions_share.value > 0.9
    assert importance_title(spec, found).startswith(
        "No parameter alone surely explains 10% of the variance of val/accuracy"
    )
    assert "; interactions explain " in importance_title(spec, found)


@pytest.mark.slow
def test_pruned_trials_have_no_value_and_the_title_says_what_that_leaves(writer):
    def response(alpha, _):
        return 0.3 + 0.4 * alpha

    spec, record = study_of(writer, response, stop=[number for number in range(60) if (number * 0.618) % 1.0 < 0.5])
    found = compute_importances(Results(spec, record))
    assert found.n_trials_by_key["method.alpha"] == 30
    frame = importance_frame(Results(spec, record))
    assert next(iter(frame.index)) == "method.alpha"
    assert frame.loc["method.alpha", ["low", "trials"]].to_list() == [found.share_by_key["method.alpha"].low, 30]
    assert importance_title(spec, found).startswith("method.alpha alone explains ")
    assert importance_title(spec, found).endswith(" among the trials that early stopping let through")
    few, record = study_of(writer, response, count=40, stop=range(36))
    with pytest.warns(UserWarning, match="importance: .*needed"):
        assert importance_frame(Results(few, record)).empty
    assert compute_importances(Results(few, record)).why_missing == "4 trials of the search have a value, 30 are needed"
