"""What a search may do with keys that others depend on, and with values that only together make sense."""

import pytest
from helpers import quickstart

from study.errors import UserError


def refused(*assignments: str) -> str:
    with pytest.raises(UserError) as problem:
        quickstart(*assignments)
    return str(problem.value)


PLAIN = ("method.regulariser=none", "search.baseline={}", "search.trials=4")


def space(text: str, *others: str) -> tuple[str, ...]:
    return (*PLAIN, f"search.space={text}", *others)


@pytest.mark.parametrize(
    "key", ["method.cross_entropy: {choices: [none, plain]}", "method.adversary: {choices: [none, classifier]}"]
)
def test_a_key_that_others_depend_on_is_not_searched(key: str) -> None:
    assert "cannot differ between trials: other keys depend on it" in refused(*space(f"{{{key}}}"))


def test_nor_enqueued() -> None:
    given = space("{method.alpha: {low: 0.1, high: 1.0}}", "search.enqueue=[{method.regulariser: fair_kl}]")
    assert "search.enqueue.0.method.regulariser: cannot differ between trials" in refused(*given)


def test_a_choice_that_changes_no_key_is_searched() -> None:
    quickstart(*space("{method.form: {choices: [a, c]}}"))


def test_searched_values_must_go_together_with_the_rest() -> None:
    one_view = "{train.augmentation: {choices: [none, crop_flip]}}"
    given = space(one_view, "method.name=info_nce", "train.augmentation=crop_flip")
    assert "needs views that differ" in refused(*given)
    assert "allowed is at most train.epochs" in refused(*space("{train.warmup_epochs: {low: 0, high: 500}}"))


def test_a_range_over_a_few_allowed_numbers_is_refused() -> None:
    given = space("{model.receptive_field: {low: 9, high: 17}}", "model={name: bagnet}", "data.name=biased_mnist")
    assert "Allowed: 9, 17 or 33" in refused(*given)


def test_a_range_of_whole_numbers_that_may_be_none_is_given_as_choices() -> None:
    crop = ("method.name=info_nce", "train.augmentation=crop_flip")
    assert "search.space.train.crop_size" in refused(*space("{train.crop_size: {low: 6, high: 12}}", *crop))
    quickstart(*space("{train.crop_size: {choices: [6, 8]}}", *crop))


def test_a_classifier_stage_leaves_epochs_for_the_method() -> None:
    stage = (*PLAIN, "search.space={}", "search.trials=1", "method.adversary=classifier", "train.epochs=10")
    stage = (*stage, "search.early_stopping={}")
    assert "needs train.epochs of at least 11, not 10" in refused(*stage)
    quickstart(*stage, "method.classifier_epochs=3")


def test_the_network_is_asked_for_what_it_will_see() -> None:
    seen = ("data.name=biased_mnist", "model={name: lenet}", "train.augmentation=crop_flip", "train.crop_size=64")
    assert "model.name: lenet takes images of 28 x 28" in refused(*seen)
    evaluated = ("data.name=biased_mnist", "model={name: lenet}", "train.evaluation_size=64")
    assert "train.evaluation_size: 64 given" in refused(*evaluated)
