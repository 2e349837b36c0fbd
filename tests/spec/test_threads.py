"""How many threads a trial computes in: as many as it takes CPUs, unless the file says otherwise."""

import pytest
from helpers import quickstart, reread


@pytest.mark.parametrize(("cpu", "threads"), [(0.25, 1), (1, 1), (2.5, 2), (4, 4), (5000, 1024)])
def test_a_trial_computes_in_as_many_threads_as_it_takes_cpus(cpu: float, threads: int) -> None:
    spec = quickstart(f"resources.cpu={cpu}")
    assert spec.base["train"]["threads"] == threads
    assert spec.trial_config({}).train.threads == threads
    assert reread(spec).to_document()["train"]["threads"] == threads


def test_threads_that_are_given_stay() -> None:
    assert quickstart("resources.cpu=4", "train.threads=1").base["train"]["threads"] == 1
    assert quickstart("resources.cpu=1", "train.threads=3").base["train"]["threads"] == 3
    searched = quickstart("resources.cpu=4", "search.space.train.threads={choices: [1, 2]}", "search.baseline=null")
    assert searched.trial_config({"train.threads": 2}).train.threads == 2
