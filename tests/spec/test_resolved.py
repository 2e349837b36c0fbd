"""A resolved file leaves nothing to a default and stands for the same trials."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from helpers import quickstart, reread
from hypothesis import given, settings
from hypothesis import strategies as st

from study.errors import UserError
from study.spec import load_resolved, load_resolved_and_check

SPEC = quickstart()


RESOLVED = [
    [],
    ["search.enqueue=[{method.alpha: 0.5}]", "search.concurrency=1"],
    ["search.space={}", "search.trials=1", "search.early_stopping={}"],
    ["search.space.train.batch_size={low: 32, high: 128, step: 32}", "train.lr_milestones=[0.3, 0.6]"],
    ["search.space.train.optimizer={choices: [adam, sgd]}", "search.metric=val/equalized_odds"],
    ["method.base_temperature=0.07", "origin={study: old, metrics: {val/accuracy: 0.125}}"],
    [
        "method.regulariser=none",
        "search.space={method.alpha: {low: 1.0e-4, high: 1.0, log: true}}",
        "search.baseline={}",
    ],
]


SWITCHES = {
    "regulariser": ["none", "fair_kl"],
    "cross_entropy": ["none", "plain"],
    "adversary": ["none", "representation"],
}
KNOBS = ["kld: 0.5", "epsilon: {range: paper, low: 0.1}", "ce_weight: {choices: [0.5, 1.0]}", "temperature: paper"]
OTHERS = ["data.rho: {choices: [0.8, 0.9]}", "model.head: {choices: [none, mlp]}", "train.momentum: 0.5"]
LABELLED = "search.alternatives={method: {with_ce: {name: bias_con, cross_entropy: plain}}}"


@st.composite
def spaces(draw: st.DrawFn) -> list[str]:
    """Overrides of the quickstart: a space of several methods, switches, conditions and knobs."""
    more = draw(st.lists(st.sampled_from(["sup_con", "cross_entropy", "group_dro"]), unique=True))
    keys = [f"method.name: {{choices: {['eps_sup_info_nce', 'with_ce', *more]}}}", "method.alpha: paper"]
    for key in draw(st.lists(st.sampled_from(list(SWITCHES)), unique=True)):
        when = draw(st.sampled_from(["", ", when: {method.name: [eps_sup_info_nce]}"]))
        keys.append(f"method.{key}: {{choices: {SWITCHES[key]}{when}}}")
    keys += [f"method.{knob}" for knob in draw(st.lists(st.sampled_from(KNOBS), unique=True))]
    text = ", ".join(draw(st.permutations(keys + draw(st.lists(st.sampled_from(OTHERS), unique=True)))))
    enqueue = draw(st.sampled_from(["[]", "papers", "[{method.regulariser: end, method.entangling: 0.5}]"]))
    return [LABELLED, f"search.space={{{text}}}", f"search.enqueue={enqueue}", "search.baseline=null"]


@pytest.mark.slow
@given(spaces(), st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_a_resolved_space_gives_the_same_trials(assignments: list[str], draw: Random) -> None:
    spec = quickstart(*assignments)
    again = reread(spec)
    assert again == spec
    assert again.to_yaml() == spec.to_yaml()
    assert list(again.space.domains) == list(spec.space.domains)
    for _ in range(5):
        params = spec.space.suggest_params(lambda _, domain: draw.choice(domain.boundary_values()))
        assert spec.space.contains(params)
        assert again.trial_document(params) == spec.trial_document(params)


def test_nothing_is_left_to_a_default() -> None:
    """Every trial's section has only values that stand in the resolved file."""
    searched = "{method.name: {choices: [sup_con, with_ce]}, method.regulariser: {choices: [none, fair_kl]}}"
    spec = quickstart("search.baseline=null", LABELLED, f"search.space={searched}")
    written = spec.to_document()["search"]["alternatives"]["method"]
    assert written.keys() == {"sup_con", "with_ce"}
    for case in spec.space.combinations_of_deciding_keys():
        own = written[case["method.name"]]
        given = {key.split(".")[1]: value for key, value in case.items() if key != "method.name"}
        section = spec.trial_document(case)["method"]
        assert {**{key: own[key] for key in section}, **given} == section


@pytest.mark.parametrize("assignments", RESOLVED)
def test_a_resolved_file_gives_the_same_study(tmp_path: Path, assignments: list[str]) -> None:
    spec = quickstart(*assignments)
    (tmp_path / "study.yaml").write_text(spec.to_yaml())
    again = load_resolved(tmp_path / "study.yaml")
    assert again == spec
    assert again.hash == spec.hash
    assert again.to_yaml() == spec.to_yaml()


def test_a_study_that_took_several_gpus_can_be_read(tmp_path: Path) -> None:
    """None is begun, since a trial trains on one card; its report can still be made."""
    spec = quickstart()
    several = replace(spec, resources=spec.resources.model_copy(update={"gpu": 2.0}))
    (tmp_path / "study.yaml").write_text(several.to_yaml())
    assert load_resolved(tmp_path / "study.yaml").resources.gpu == 2
    with pytest.raises(UserError, match="at most 1"):
        load_resolved_and_check(tmp_path / "study.yaml")


@pytest.mark.parametrize(("section", "key"), [("search", "plateau"), ("train", "keep_epochs"), ("data", "row_numbers")])
def test_a_study_whose_file_has_a_key_that_is_not_known_is_refused(tmp_path: Path, section: str, key: str) -> None:
    (tmp_path / "study.yaml").write_text(SPEC.to_yaml().replace(f"{section}:\n", f"{section}:\n  {key}: null\n"))
    for load in (load_resolved, load_resolved_and_check) if section != "data" else (load_resolved_and_check,):
        with pytest.raises(UserError, match=rf"yaml:\d+: {section}\.{key}: unknown key"):
            load(tmp_path / "study.yaml")


@pytest.mark.parametrize("name", ["1", "1.5", "1e5", "0x1F", "0o7", "true", "null", "2001-01-01", "1_000", "on", "yes"])
def test_a_name_that_looks_like_another_type_stays_a_name(name: str) -> None:
    spec = replace(SPEC, name=name)
    assert reread(spec) == spec


def test_the_hash_tells_studies_apart_but_not_their_names() -> None:
    spec = quickstart()
    assert replace(spec, name="other").hash == spec.hash
    assert quickstart("resources.gpu=0.5").hash == spec.hash
    assert quickstart("resources.cpu=2", "train.threads=1").hash == spec.hash
    assert quickstart("resources.cpu=2").hash != spec.hash  # its trials compute in two threads
    assert quickstart("train.seed=1").hash != spec.hash
    assert quickstart("search.trials=25").hash != spec.hash
