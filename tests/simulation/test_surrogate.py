"""Curves of a study's own trials stand for its space, and say how well."""

import numpy as np
import pytest
from recorded_curves import EPOCHS, METRICS, SEEDS, rows, space, value

from study.errors import UserError
from study.home.line import Event
from study.home.record import StudyRecord
from study.simulation import Cluster, Table, simulate
from study.simulation import surrogate as surrogate_module
from study.simulation.nearest import Coordinates
from study.simulation.smooth import Smooth
from study.simulation.surrogate import Surrogate, surrogate

COUNT = 40


def table() -> Table:
    """As `recorded_curves.write` has it, in memory."""
    configurations = rows(COUNT)
    values = np.array(
        [
            [[[value(row, seed, epoch)] * 2 + [1.0] for epoch in range(1, EPOCHS + 1)] for row in configurations]
            for seed in range(SEEDS)
        ]
    )
    return Table(configurations, METRICS, values, range(SEEDS), np.full(COUNT, 2.0), space().to_yaml())


def record(*assignments: str) -> StudyRecord:
    """Of a study that ran over the table."""
    events: list[Event] = []
    simulate(space(f"search.trials={COUNT}", *assignments), table().course(), Cluster.of(2), hears=events.append)
    return StudyRecord.fold(events)


@pytest.fixture(scope="module")
def model() -> Surrogate:
    return surrogate(space(), record("search.early_stopping={name: none}", "search.confirm={top: 2, seeds: 2}"))


def test_its_error_is_that_of_trials_that_were_left_out(model: Surrogate) -> None:
    """What luck adds is uniform within 0.03, so that nothing can be closer than 0.017."""
    assert (model.error.trials, model.error.complete) == (COUNT, COUNT)
    assert 0.015 < model.error.root_mean_square < 0.05 < model.error.deviation
    assert model.error.agreement > 0.8


def test_a_trial_that_ran_is_what_it_was_and_courses_differ_elsewhere(model: Surrogate) -> None:
    known, other = rows(COUNT)[3], {"method.alpha": 0.1, "method.lambda": 0.9, "method.epsilon": 0.1}
    expected = [value(known, 0, epoch) for epoch in range(1, EPOCHS + 1)]
    assert model.course(4).curve(known, 0).values[:, 0] == pytest.approx(expected)
    first, again, *others = (model.course(number).curve(other, 0).values for number in (1, 1, 2, 3, 4, 5, 6))
    assert (first == again).all()
    assert any((first != one).any() for one in others)
    assert first[-1, 0] == pytest.approx(0.9, abs=0.12)


def test_a_residual_is_of_a_trial_that_was_foretold_to_end_alike(model: Surrogate) -> None:
    """What is uncertain of bad configurations makes good ones no better."""
    values, _ = model.foretold({"method.alpha": 0.1, "method.lambda": 0.9, "method.epsilon": 0.1})
    ends = np.abs(model._left_out[:, -1, 0] - values[-1, 0])
    near = model.like(values)
    assert len(near) == max(surrogate_module.NEAR, COUNT // surrogate_module.SHARE) < COUNT
    assert ends[near].max() <= np.delete(ends, near).min()


def test_fresh_seeds_differ_as_the_confirmed_configurations_did(model: Surrogate) -> None:
    known = rows(COUNT)[3]
    own, fresh = (model.course().curve(known, seed).values[-1, 0] for seed in (0, 1))
    assert 0 < abs(fresh - own) < 0.07
    assert model.course().fresh(known, "val/accuracy") == pytest.approx(own, abs=0.07)


def test_pruned_trials_are_used() -> None:
    found = record()
    pruned = [trial for trial in found.trials.values() if trial.state == "pruned"]
    model = surrogate(space(), found)
    assert len(pruned) > 10
    assert (model.error.trials, model.error.complete) == (COUNT, COUNT - len(pruned))
    ended = [abs(model.foretold(trial.params)[0][-1, 0] - value(trial.params, 0, EPOCHS)) for trial in pruned]
    assert sum(ended) / len(ended) < 0.06


def test_pauses_are_no_part_of_what_an_epoch_takes() -> None:
    """An epoch takes two seconds of each; most trials paused for longer than they ran."""
    found = record("search.early_stopping.name=promotion")
    assert any(trial.paused for trial in found.trials.values())
    model = surrogate(space(), found)
    assert {round(model.foretold(trial.params)[1], 6) for trial in found.by_stage("search")} == {2.0}


def test_what_trials_did_once_they_were_extended_is_left_out() -> None:
    """Neither longer curves nor the shift of a seed that was confirmed at their length."""
    found = record("search.early_stopping={name: none}")
    before = surrogate(space(), found)
    found.apply({"event": "lengthened", "time": 1e6, "epochs": EPOCHS + 1, "trials": [0, 3]})
    confirmed: Event = {"event": "trial", "time": 1e6, "trial": COUNT, "stage": "confirm", "seed": 7, "repeats": 3}
    found.apply({**confirmed, "params": found.trials[3].params})
    for number, begun in ((0, EPOCHS), (3, EPOCHS), (COUNT, 0)):
        found.apply({"event": "started", "time": 1e6, "trial": number, "epoch": begun})
        for epoch in range(begun + 1, EPOCHS + 2):
            metrics = {"val/accuracy": 0.1}
            found.apply({"event": "report", "time": 1e6, "trial": number, "epoch": epoch, "metrics": metrics})
        found.apply({"event": "ended", "time": 1e6, "trial": number, "state": "complete"})
    after, known = surrogate(space(), found), rows(COUNT)[3]
    assert after.error == before.error
    assert (after.course().curve(known, 1).values == before.course().curve(known, 1).values).all()


def test_too_few_trials_are_told() -> None:
    with pytest.raises(UserError, match="2 of its trials ran to their end, 5 are needed to simulate it"):
        surrogate(space(), StudyRecord.fold(_events("search.trials=2", "search.early_stopping={name: none}")))


def _events(*assignments: str) -> list[Event]:
    events: list[Event] = []
    simulate(space(*assignments), table().course(), Cluster.of(2), hears=events.append)
    return events


def test_a_baseline_outside_a_logarithmic_range_stands_at_its_end() -> None:
    key = "search.space={method.lambda: {low: 0.01, high: 2.0, log: true}}"
    below, lowest, other = Coordinates(space(key))([{"method.lambda": value} for value in (0.0, 0.01, None)]).tolist()
    assert below == lowest != other
    assert other == Coordinates(space(key))([{}])[0].tolist()


def test_a_key_that_does_not_matter_gets_no_scale_and_left_out_points_have_a_closed_form() -> None:
    drawn = np.random.default_rng(0)
    points, keys = drawn.uniform(size=(30, 2)), [slice(0, 1), slice(1, 2)]
    targets = np.sin(3 * points[:, :1])
    model = Smooth(points, keys, targets)
    assert model.scales[0] > 0 == model.scales[1]
    assert np.abs(model.left_out() - targets).max() < 0.1
    assert np.abs(model(points) - targets).max() < 0.05
