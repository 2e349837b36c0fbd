"""A study of several data sets and methods, run for real: each trial gets its own, and the best comes out whole."""

from collections.abc import Callable

import pytest
from command import Command
from helpers import timeless

from study import data
from study.commands.export_configurations import exported_spec
from study.commands.single_trial import SingleTrial
from study.data import joint_fingerprint
from study.ranking import Results
from study.ranking.candidate_selection import CandidateSelection
from study.training.trial import Trial

MIXED = [
    "search.alternatives={method: {with_ce: {name: bias_con, cross_entropy: plain}}}",
    "search.space={data.rho: {choices: [0.5, 0.9]}, method.name: {choices: [sup_con, with_ce]}, method.alpha: paper,"
    " method.ce_weight: {choices: [0.5, 1.0]}}",
    "search.baseline=null",
    "search.enqueue=[{data.rho: 0.5, method.name: sup_con, method.alpha: 0.5},"
    " {data.rho: 0.9, method.name: with_ce, method.alpha: 0.1, method.ce_weight: 0.5}]",
    "search.trials=3",
    "search.confirm.top=0",
    "search.early_stopping={}",
    "train.epochs=2",
]


@pytest.mark.slow
def test_each_trial_has_its_own_data_and_method(make_command: Callable[[], Command]) -> None:
    command = make_command()
    command.done("run", "tiny.yaml", *(part for one in MIXED for part in ("--set", one)))
    spec, record = command.load("tiny")
    loaded = data.load_datasets(spec.trial_data_sections)
    assert record.sessions[0].data == joint_fingerprint(loaded)
    trials = list(record.trials.values())
    assert len(trials) == 3
    for trial in trials:
        config = spec.trial_config(trial.params, trial.seed)
        again = timeless(Trial(config, loaded[data.section_key(config.data)], "cpu").train_epochs())
        assert [one["val/accuracy"] for one in again] == [one["val/accuracy"] for one in trial.reports]
    best = Results(spec, record).ranked_all[0]
    written = exported_spec(command.folder("tiny"), Results(spec, record), best, CandidateSelection())
    assert written.base == spec.trial_document({**best.trial.params, "train.seed": best.trial.seed})
    assert timeless(SingleTrial(written).epochs())[-1]["val/accuracy"] == best.search_value
