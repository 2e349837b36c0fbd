"""What a search asks for is checked before anything starts, and told at its place."""

from pathlib import Path
from typing import Any

import pytest
from helpers import quickstart, refused

from study.errors import UserError
from study.home.folder import Home
from study.spec import load_study
from study.spec.domain import Domain


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("search.metric=accuracy", "search.metric: 'accuracy' given. Did you mean 'val/accuracy'?"),
        ("search.metric=test/accuracy", "'test/accuracy' given. test metrics cannot be used to choose. Did you mean"),
        (
            "search.metric=val/inferred_unbiased_accuracy",
            "search.metric: 'val/inferred_unbiased_accuracy' given. It needs train.inferred_groups: early, gce or, of",
        ),
        ("search.space.train.inferred_groups={choices: [early, gce]}", "train.inferred_groups: cannot be searched"),
        (
            "search.sampler=mfgp",
            "search.sampler: 'mfgp' given. Did you mean 'gp'? Allowed: gp, grid, qmc, random, tpe",
        ),
        ("search.early_stopping.name=hyperband", "name: 'hyperband' given. Allowed: asha, none"),
        ("search.plateau=8", "search.plateau: unknown key. Allowed here: space, alternatives, baseline"),
        ("search.space.data.rho={low: 0.1, high: 0.3}", "search.space.data.rho: a range given, allowed are choices"),
        ("search.space.train.seed={choices: [0, 1]}", "search.space.train.seed: cannot be searched: every trial of a"),
        ("search.baseline={model.name: lennet}", "search.baseline.model.name: 'lennet' given. Did you mean 'lenet'"),
        ("search.enqueue=paper", "search.enqueue: 'paper' given, allowed is a list of configurations, as [{"),
        ("search.constraints={val/accuracy: 0.5}", "given, allowed is a list, as ['val/equalized_odds <= 0.05']"),
        ("search.constraints=val/accuracy >= 0.5", "given, allowed is a list, as ['val/equalized_odds <= 0.05']"),
        ("search.confirm=3", "search.confirm: 3 given, allowed is a mapping of keys to values, as {top: 3, seeds: 5}"),
        ("search.references=tree", "allowed is true or false or auto or a list, as [logistic_regression]"),
        (
            "method.ce_weight=0.5",
            "method.ce_weight: unknown key: it comes with method.cross_entropy: plain",
        ),
        ("model.head_hidden=3", "model.head_hidden: unknown key: it comes with model.head: mlp"),
        ("method.cel_weights=0.5", "method.cel_weights: unknown key. Did you mean 'method.cell_weights'"),
        (
            "search.alternatives={train: {a: {}}}",
            "search.alternatives.train: 'train' given. Allowed: data, mod",
        ),
        ("search.alternatives={method: {a: {name: b}}}", "search.alternatives.method.a.name: 'b' given. Allowed: "),
        ("search.space.method.lambda.step=0", "search.space.method.lambda.step: 0 given, allowed is greater than 0"),
        (
            "search.space.train.batch_size={low: 32, high: 64, step: 0.5}",
            "search.space.train.batch_size.step: 0.5 given, allowed is a whole",
        ),
        (
            "search.space.train.optimizer={low: 0, high: 1}",
            "search.space.train.optimizer: 0 given. Allowed: adam, sgd, l",
        ),
        (
            "search.enqueue=[{method.alpa: 1.0}]",
            "search.enqueue.0.method.alpa: unknown key. Did you mean 'method.alpha'",
        ),
        ("search.confirm.seeds=1", "search.confirm.seeds: 1 given, allowed is greater than or equal to 2"),
        ("search.replicates=[0, 4, 4]", "search.replicates: [0, 4, 4] given, allowed are different seeds"),
        (
            "search.replicates=[4, 0]",
            "search.replicates: [4, 0] given, allowed are different seeds, the first of them ",
        ),
        ("resources.cpu=0.00009", "resources.cpu: 9e-05 given, allowed is at least 0.0001"),
        ("resources.gpu=1e-9", "resources.gpu: 1e-09 given, allowed is at least 0.0001"),
        ("train.seed=4294967290", "train.seed: the study takes seeds up to 4294967293, allowed is at most 4294967292"),
        ("search.replicates=[0, 4294967295]", "search.replicates: the study takes seeds up to 4294967298, allowed"),
    ],
)
def test_a_search_that_cannot_be_is_told_at_the_override(assignment: str, words: str) -> None:
    found = refused(assignment)
    assert words in found
    assert "--set" in found or "quickstart.yaml" in found
    assert "instance of" not in found
    assert len(found.splitlines()) <= 2


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (Domain(low=0.5, high=2.0), [0.5, 1, 1.7, 2.0], [0.49, 2.01, "1", None]),
        (Domain(low=0.0, high=1.0, step=0.1), [0.0, 0.1, 0.3, 0.7, 1.0], [0.05, 0.15, 1.1]),
        (Domain(low=2, high=10, step=4), [2, 6, 10], [3, 4, 8]),
        (Domain(choices=[0.5, "a", None, True]), [0.5, "a", None, True], [1, "b", 0.6, False]),
        (Domain(choices=[1]), [1, 1.0], [True, 2]),
    ],
)
def test_a_domain_contains_what_the_search_could_give(domain: Domain, inside: list[Any], outside: list[Any]) -> None:
    assert [value for value in inside if not domain.contains(value)] == []
    assert [value for value in outside if domain.contains(value)] == []


def test_epsilon_and_temperature_are_valid_together_at_their_largest() -> None:
    """Each alone would pass: epsilon 8 at the file's temperature 0.1, temperature 0.5 at the file's epsilon 0."""
    space = "search.space={method.epsilon: {low: 0, high: 8}, method.temperature: {low: 0.1, high: 0.5}}"
    with pytest.raises(UserError, match=r"search.space.method.epsilon: .*at most 2/temperature = 4 "):
        load_study("fairkl_digits", [space])


def test_more_given_configurations_than_trials_are_refused() -> None:
    enqueue = "search.enqueue=[{method.lambda: 1.0}, {method.lambda: 2.0}]"
    with pytest.raises(UserError, match=r"search.trials: 2 given, allowed is at least 3"):
        load_study("fairkl_digits", [enqueue, "search.trials=2"])


def test_groups_that_are_inferred_can_be_searched_by() -> None:
    groups = "train.inferred_groups=early"
    spec = quickstart(groups, "search.metric=[val/inferred_unbiased_accuracy, val/inferred_worst_group_accuracy]")
    assert spec.mode == "max"
    limited = quickstart(groups, "search.constraints=[val/inferred_conflicting_accuracy >= 0.5]")
    assert limited.objective.constraints[0].metric == "val/inferred_conflicting_accuracy"


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("val/accuracy >= 80", "no value keeps it: val/accuracy is between 0 and 1; 80% is 0.8"),
        ("val/accuracy >= 2", "no value keeps it: val/accuracy is between 0 and 1; 2% is 0.02"),
        ("val/accuracy >= -0.5", "every value keeps it: val/accuracy is between 0 and 1$"),
        ("val/accuracy <= 1.5", "every value keeps it: val/accuracy is between 0 and 1; 1.5% is 0.015"),
        ("val/equalized_odds <= -0.1", "no value keeps it: val/equalized_odds is between 0 and 1$"),
        ("val/log_loss <= -1", "no value keeps it: val/log_loss is 0 or more$"),
        ("val/log_loss >= -1", "every value keeps it: val/log_loss is 0 or more$"),
    ],
)
def test_a_limit_outside_of_its_metrics_range_is_refused(limit: str, why: str) -> None:
    with pytest.raises(UserError, match=rf"search\.constraints\.0: '{limit}' given: {why}"):
        quickstart(f"search.constraints=[{limit}]")


@pytest.mark.parametrize(
    "limit", ["val/accuracy >= 1", "val/equalized_odds <= 1", "val/equalized_odds <= 0", "val/log_loss <= 3"]
)
def test_a_limit_within_the_range_is_taken(limit: str) -> None:
    assert str(quickstart(f"search.constraints=[{limit}]").objective.constraints[0]) == limit


def test_a_study_that_began_with_such_a_limit_goes_on(tmp_path: Path) -> None:
    """Earlier versions took it."""
    folder = Home(tmp_path).create_study(quickstart("search.constraints=[val/accuracy >= 0.8]"))
    folder.spec_file.write_text(folder.spec_file.read_text().replace(">= 0.8", ">= 80"))
    assert folder.load_checked_spec().search.constraints == ["val/accuracy >= 80"]


def test_groups_are_not_inferred_where_their_network_cannot_be_trained() -> None:
    with pytest.raises(UserError, match=r"train\.inferred_groups: 'gce' given, it needs the class of every training"):
        load_study("dcl-fig4", ["data={name: stl10, unlabelled: true}", "train.inferred_groups=gce"])


def test_a_metric_of_groups_of_data_without_a_bias_says_what_it_needs() -> None:
    with pytest.raises(
        UserError, match=r"search\.metric: 'val/unbiased_accuracy' given\. It needs the bias class of each"
    ):
        load_study("quickstart", ["data={name: cifar10}", "search.metric=val/unbiased_accuracy"])
