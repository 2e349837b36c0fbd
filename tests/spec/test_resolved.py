"""A resolved file leaves nothing to a default and stands for the same trials."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers import quickstart, reread
from hypothesis import given
from hypothesis import strategies as st

from study.spec import load_resolved

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


@pytest.mark.parametrize("assignments", RESOLVED)
def test_a_resolved_file_gives_the_same_study(tmp_path: Path, assignments: list[str]) -> None:
    spec = quickstart(*assignments)
    (tmp_path / "study.yaml").write_text(spec.to_yaml())
    again = load_resolved(tmp_path / "study.yaml")
    assert again == spec
    assert again.hash == spec.hash
    assert again.to_yaml() == spec.to_yaml()


def test_a_final_training_is_read_back_with_its_seeds(tmp_path: Path) -> None:
    spec = replace(quickstart(), final_seeds=(3, 1))
    (tmp_path / "study.yaml").write_text(spec.to_yaml())
    assert load_resolved(tmp_path / "study.yaml") == spec


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True))
def test_any_allowed_name_is_read_back(name: str) -> None:
    spec = replace(SPEC, name=name)
    assert reread(spec) == spec


@pytest.mark.parametrize("name", ["1", "1.5", "1e5", "0x1F", "0o7", "true", "null", "2001-01-01", "1_000", "on", "yes"])
def test_a_name_that_looks_like_another_type_stays_a_name(name: str) -> None:
    spec = replace(SPEC, name=name)
    assert reread(spec) == spec


def test_the_hash_tells_studies_apart_but_not_their_names() -> None:
    spec = quickstart()
    assert replace(spec, name="other").hash == spec.hash
    assert quickstart("resources.cpu=2").hash == spec.hash
    assert quickstart("train.seed=1").hash != spec.hash
    assert quickstart("search.trials=25").hash != spec.hash
