"""Several methods, networks and data sets in one study, each with its own keys."""

import re
from functools import partial
from typing import Any

import helpers
import pytest
from helpers import quickstart, searching

from study import methods
from study.errors import UserError
from study.spec import StudySpec, load_study
from study.spec.domain import Domain
from study.spec.trial_sections import TrialSections, find_section_forms

VAL = {"val": "unbiased", "val_share": 0.2, "folds": None}


@pytest.mark.parametrize("space", ["{}", "{method.name: {choices: [sup_con, other]}}"])
def test_an_alternative_that_no_trial_has_is_checked_too(space: str) -> None:
    """A profile may leave some out; a slip in one must not wait until it is used."""
    alternatives = "search.alternatives={method: {other: {name: sup_con}, mine: {name: wcl, betta: 1}}}"
    with pytest.raises(UserError, match=r"search\.alternatives\.method\.mine\.betta: unknown key\. "):
        quickstart("search.baseline=null", "search.trials=1", alternatives, f"search.space={space}")
    right = alternatives.replace("betta", "tau_plus").replace(": 1}", ": 0.2}")
    spec = quickstart("search.baseline=null", "search.trials=1", right, f"search.space={space}")
    assert "mine" not in spec.search.alternatives.get("method", {})


refused = partial(helpers.refused, of=searching)


def first(spec: StudySpec, **given: Any) -> dict[str, Any]:
    """The parameters of a trial with these names, the first end elsewhere."""
    names = {key.replace("_", ".", 1): value for key, value in given.items()}
    return spec.space.suggest_params(lambda key, domain: names.get(key, domain.boundary_values()[0]))


LOSSES = """{
    method.name: {choices: [eps_sup_info_nce, sup_con, cross_entropy, with_ce]},
    method.epsilon: {low: 0.0, high: 0.5},
    method.alpha: {low: 0.1, high: 1.0},
    method.ce_weight: {low: 0.1, high: 2.0}}"""
LABELLED = "search.alternatives={method: {with_ce: {name: bias_con, cross_entropy: plain, temperature: 0.2}}}"


def test_a_key_is_searched_where_the_trials_method_has_it() -> None:
    spec = searching(LOSSES, LABELLED)
    found = {name: set(first(spec, method_name=name)) for name in spec.search.space["method.name"].boundary_values()}
    assert found == {
        "eps_sup_info_nce": {"method.name", "method.epsilon", "method.alpha"},
        "sup_con": {"method.name", "method.alpha"},
        "cross_entropy": {"method.name", "method.alpha"},
        "with_ce": {"method.name", "method.alpha", "method.ce_weight"},
    }


def test_a_plain_name_has_what_the_file_gives_and_else_its_own_defaults() -> None:
    spec = searching(LOSSES, LABELLED, "method.reduction=sum")
    own, plain, classifier = (
        spec.trial_document(first(spec, method_name=name))["method"]
        for name in ("eps_sup_info_nce", "sup_con", "cross_entropy")
    )
    assert (own["name"], own["temperature"], own["reduction"]) == ("eps_sup_info_nce", 0.1, "sum")
    assert (plain["name"], plain["temperature"], plain["regulariser"]) == ("sup_con", 0.1, "fair_kl")
    assert (classifier["name"], classifier["regulariser"]) == ("cross_entropy", "fair_kl")
    assert not {"temperature", "reduction"} & classifier.keys()


def test_a_label_has_what_it_gives_and_nothing_of_the_files_section() -> None:
    labelled = searching(LOSSES, LABELLED).trial_document({"method.name": "with_ce"})["method"]
    complete = {key: knob.default for key, knob in methods.method_knobs(labelled).items()}
    assert labelled == {**complete, "name": "bias_con", "cross_entropy": "plain", "temperature": 0.2}


def test_one_trial_takes_a_label_as_the_name_of_the_files_own_section() -> None:
    """The section is as that of a searched trial, with what else is set, in whatever order."""
    given = ["method.class_weights=0.5", "method.name=bias_balanced", "model.width=8"]
    one = load_study("quickstart", given, one_trial=True)
    searched = load_study("quickstart").trial_document({"method.name": "bias_balanced"})
    assert one.trial_document({})["method"] == {**searched["method"], "class_weights": 0.5}
    assert one.trial_document({})["model"] == {**searched["model"], "width": 8}


def test_a_wrong_key_of_such_a_section_is_told_with_what_set_it() -> None:
    for given, told in (("method.betta=1", "--set method.betta=1"), ("method.alpha=1", "method.name: 'nobody' given")):
        name = "nobody" if "nobody" in told else "bias_balanced"
        with pytest.raises(UserError, match=re.escape(told)):
            load_study("quickstart", [f"method.name={name}", given], one_trial=True)


def test_each_trial_is_checked_with_its_own_method() -> None:
    pairs = "{method.name: {choices: [sup_con, info_nce]}, method.alpha: {low: 0.1, high: 1.0}}"
    assert "method.name: with method.name 'info_nce': 'none' given, method.name 'info_nce' needs views" in refused(
        pairs
    )
    only = "train.augmentation: {choices: [crop_flip], when: {method.name: [info_nce]}}"
    searching(f"{{method.name: {{choices: [sup_con, info_nce]}}, {only}}}")


def test_epsilon_is_bounded_by_the_temperature_of_its_own_method() -> None:
    names = "{method.name: {choices: [eps_sup_info_nce, warm]}, method.epsilon: {low: 0.0, high: 8.0}}"
    warm = "search.alternatives={method: {warm: {name: eps_sup_con, temperature: 0.5}}}"
    found = refused(names, warm)
    assert (
        "search.space.method.epsilon: with method.name 'warm': 8.0 given, allowed is at most 2/temperature = 4" in found
    )
    searching(names.replace("high: 8.0", "high: 8.0, when: {method.name: [eps_sup_info_nce]}"), warm)


def test_a_value_that_one_of_the_methods_cannot_have_is_told_with_its_name() -> None:
    names = "{method.name: {choices: [eps_sup_info_nce, fair_cclk]}, method.form: {choices: [a, c]}}"
    found = refused(names, "train.augmentation=crop_flip")
    assert "search.space.method.form: with method.name 'fair_cclk': 'a' given. Allowed: released, paper" in found
    given = refused(
        "{method.name: {choices: [eps_sup_info_nce, fair_cclk]}}", "train.augmentation=crop_flip", "method.form=d"
    )
    assert "method.form: with method.name 'fair_cclk': 'd' given. Allowed: released, paper" in given


def test_a_wrong_alternative_is_told_at_its_line() -> None:
    wrong = "search.alternatives={method: {with_ce: {name: bias_con, epsilon: 0.1, temperature: -1}}}"
    found = refused("{method.name: {choices: [with_ce]}}", wrong).splitlines()
    assert [line.split(": ", 2)[-1].split(":")[0] for line in found] != []
    assert any("search.alternatives.method.with_ce.epsilon: unknown key" in line for line in found)
    assert any("search.alternatives.method.with_ce.temperature: -1 given" in line for line in found)


def test_networks_are_searched_with_their_own_keys() -> None:
    space = """{model.name: {choices: [small_conv_net, simple_conv_net]}, model.width: {choices: [8, 16]},
        model.head: {choices: [none, mlp]}, model.head_hidden: {low: 16, high: 64}}"""
    spec = searching(space)
    assert first(spec) == {"model.name": "small_conv_net", "model.head": "none", "model.width": 8}
    with_head = first(spec, model_name="simple_conv_net", model_head="mlp")
    assert with_head["model.head_hidden"] == 16
    assert ("model.width" in with_head) == ("width" in spec.trial_document(with_head)["model"])
    assert spec.space.integer_keys >= {"model.head_hidden"}


SETS = """{data.name: {choices: [strong, weak]}, data.seed: {choices: [0, 1], when: {data.name: [weak]}},
    method.alpha: {low: 0.1, high: 1.0}}"""
RHOS = "search.alternatives={data: {strong: {name: biased_digits, rho: 0.99}, weak: {name: biased_digits, rho: 0.8}}}"


def test_every_data_section_of_a_trial_is_known_beforehand() -> None:
    spec = searching(SETS, RHOS)
    assert spec.trial_data_sections == [
        {"name": "biased_digits", "rho": 0.99, "seed": 0, **VAL},
        {"name": "biased_digits", "rho": 0.8, "seed": 0, **VAL},
        {"name": "biased_digits", "rho": 0.8, "seed": 1, **VAL},
    ]
    assert quickstart().trial_data_sections == [quickstart().base["data"]]
    with_baseline = quickstart("search.space.data.rho={choices: [0.5, 0.9]}")
    assert [one["rho"] for one in with_baseline.trial_data_sections] == [0.5, 0.9, 0.95]


def test_a_metric_must_exist_for_all_data() -> None:
    sets = "{data.name: {choices: [biased_digits, stl10]}, method.alpha: {low: 0.1, high: 1.0}}"
    found = refused(sets, "search.metric=val/worst_group_accuracy", "method.regulariser=none")
    assert "search.metric: 'val/worst_group_accuracy' given" in found


def test_a_method_must_suit_all_data_that_it_meets() -> None:
    sets = "{data.name: {choices: [biased_digits, compas]}, method.alpha: {low: 0.1, high: 1.0}}"
    assert "search.space.data.name: with data.name 'compas': small_conv_net takes images" in refused(sets)
    both = "model.name: {choices: [mlp], when: {data.name: [compas]}}"
    spec = searching(f"{{data.name: {{choices: [biased_digits, compas]}}, {both}}}")
    assert [spec.trial_document(case)["model"]["name"] for case in spec.space.combinations_of_deciding_keys()] == [
        "small_conv_net",
        "mlp",
    ]


SWITCHES = {
    "method.regulariser": ["none", "fair_kl", "end"],
    "method.cross_entropy": ["none", "plain"],
    "method.adversary": ["none", "classifier"],
    "method.bias_source": ["labels", "some_labels", "model"],
    "method.unknown_bias": ["pseudo_labels", "sup_con"],
}


@pytest.mark.parametrize("name", methods.method_names())
def test_a_key_has_one_default_whatever_the_others_are(name: str) -> None:
    """Else a resolved file, in which a section has the keys of all its forms, could not say which."""
    sections = TrialSections({"method": {"name": name}}, {})
    found = find_section_forms(sections, {key: Domain(choices=names) for key, names in SWITCHES.items()})
    defaults: dict[str, Any] = {}
    for form in found.all_forms:
        for key, knob in form.knobs.items():
            assert defaults.setdefault(key, knob.default) == knob.default


@pytest.mark.parametrize("name", methods.method_names())
def test_only_the_switches_above_decide_which_keys_there_are(name: str) -> None:
    """And they take names: a trial's section is completed anew for these alone."""
    start = methods.method_knobs({"name": name})
    for key, knob in start.items():
        for value in [True, False] if bool in knob.plain_types else knob.choices:
            there = methods.method_knobs({"name": name, key: value})
            assert there.keys() == start.keys() or (f"method.{key}" in SWITCHES and isinstance(value, str))
