"""Importance over every kind of range and choices that a study can search."""

import pytest

from study.analysis.statistics.importance import importances
from study.commands.report import report
from study.home.folder import Home
from study.home.ledger import Ledger
from study.spec import StudySpec, load_study
from study.spec.distributions import at, distributions

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
    return load_study("quickstart", [space, *settings])


def draws(spec: StudySpec, count: int) -> list[dict[str, object]]:
    """Parameters that the study's own samplers could give, spread over the space."""
    by_key = distributions(spec.space)
    shifts = {key: place * 0.382 for place, key in enumerate(by_key)}
    return [
        {key: at(one, (number * 0.618 + shifts[key]) % 1.0) for key, one in by_key.items()} for number in range(count)
    ]


@pytest.mark.parametrize(("key", "domain"), DOMAINS.values(), ids=DOMAINS)
def test_a_parameter_is_weighed_whatever_its_values_are(key, domain, writer):
    spec, study = searched(key, domain), writer()
    for number, params in enumerate(draws(spec, 12)):
        study.trial("search", [0.3, 0.4, 0.5, 0.5 + number % 5 / 10], params=params)
    frame = importances(spec, study.record())
    assert set(frame.index) == {"method.alpha", key}
    assert set(frame["trials"]) == {12}
    assert frame["fanova"].sum() == pytest.approx(1.0)


def test_a_float_key_between_whole_numbers_is_reported(tmp_path):
    """Ten complete trials are enough for importances, which used to end the command."""
    home, spec = Home(tmp_path), searched("method.lambda", "{low: 0, high: 2}")
    folder = home.create(spec)
    ledger = Ledger(folder.ledger_file)
    for number, params in enumerate(draws(spec, 10)):
        ledger.append("trial", trial=number, stage="search", params=params, seed=0)
        ledger.append("started", trial=number, node="here")
        for epoch in (1, 2, 3, 4):
            ledger.append("report", trial=number, epoch=epoch, metrics={"val/accuracy": 0.1 * (number % 5 + epoch)})
        ledger.append("ended", trial=number, state="complete")
    ledger.append("closed", state="complete")
    ledger.close()
    page, _ = report(home, spec.name, tmp_path / "out")
    assert (page.parent / "figures" / "importance.png").exists()
