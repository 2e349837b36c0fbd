"""A simulated study does what the agenda does with the same reports, on a clock of its own."""

from pathlib import Path

import pytest
from recorded_curves import EPOCHS, rows, space, value, write

from study.errors import UserError
from study.home.line import Event
from study.home.log import MemoryLog
from study.home.record import StudyRecord
from study.simulation import Cluster, Nodes, Table, simulate
from study.simulation.nearest import NearestSampler
from study.sweep.agenda import Agenda, Job
from study.sweep.early_stopping import early_stopping


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table.load(write(tmp_path_factory.mktemp("curves") / "table.npz"))


def told(events: list[Event]) -> list[dict[str, object]]:
    """Events without their times."""
    return [{name: value for name, value in event.items() if name != "time"} for event in events]


def test_one_slot_is_the_agenda_with_the_same_reports(table: Table) -> None:
    spec, simulated, played = space("search.trials=12", "search.seed=5"), [], []
    simulate(spec, table.course(), seed=5, hears=simulated.append)

    log, record, curves = MemoryLog(lambda: 0.0, played.append), StudyRecord(), table.course()
    record.apply(log.append("created", id="simulated"))
    record.apply(log.append("opened", owner="simulated"))
    agenda = Agenda(spec, log, record, early_stopping(spec), NearestSampler(spec, table.rows))
    while isinstance(job := agenda.next(), Job):
        trial = job.trial
        goes_on = agenda.started(trial.number, "0")
        while goes_on:
            values = curves.curve(trial.params, 0).values[trial.epochs].tolist()
            metrics = {name: values[place] for place, name in enumerate(table.metrics) if name != "test/accuracy"}
            goes_on = agenda.reported(trial.number, trial.epochs + 1, metrics)
    assert told(simulated) == told(played)


def test_the_same_seed_gives_the_same_course_and_another_one_another(table: Table) -> None:
    spec = space("search.trials=12")
    cluster = Cluster((Nodes(2, 2, start=30, process=3, preempted=60, straggling=0.5),))
    first, again, other = (simulate(spec, table.course(), cluster, seed) for seed in (1, 1, 2))
    assert first.to_document() == again.to_document() != other.to_document()


def test_without_early_stopping_every_epoch_runs_and_the_clock_is_that_of_the_slots(table: Table) -> None:
    spec = space("search.trials=12", "search.early_stopping={name: none}")
    course = simulate(spec, table.course(), Cluster.of(4))
    assert (course.epochs, course.seconds, course.state) == (12 * EPOCHS, 3 * EPOCHS * 2.0, "complete")
    found = course.found()
    assert found is not None
    best = max(course.record.trials.values(), key=lambda trial: trial.reports[-1]["val/accuracy"])
    assert (found.trial, found.epochs <= course.epochs) == (best.number, True)
    fresh = [value(best.params, seed, EPOCHS) for seed in (1, 2)]
    assert found.fresh == pytest.approx(sum(fresh) / 2, abs=1e-3)


def test_rows_run_out_as_the_cells_of_a_grid_do(table: Table) -> None:
    course = simulate(space("search.trials=100"), table.course(), Cluster.of(8))
    params = [tuple(trial.params.items()) for trial in course.record.trials.values()]
    assert sorted(params) == sorted(tuple(row.items()) for row in rows())
    assert course.state == "complete"


def test_preempted_trials_run_again_and_go_on_behind_their_checkpoints(table: Table) -> None:
    spec = space("search.trials=12", "search.early_stopping={name: none}")
    events: list[Event] = []
    nodes = Nodes(2, 2, start=10, preempted=200, price=3.0)
    course = simulate(spec, table.course(), Cluster((nodes,), checkpoint=5.0), seed=1, hears=events.append)
    lost = [event["trial"] for event in events if event["event"] == "lost"]
    behind = [event["epoch"] for event in events if event["event"] == "started"]
    assert lost
    assert course.preempted
    assert course.lost
    assert max(behind) > 0
    assert course.epochs == 12 * EPOCHS + course.lost
    assert {trial.state for trial in course.record.trials.values()} == {"complete"}
    assert course.money / 3.0 == pytest.approx(4 * course.seconds / 3600)


def test_confirmed_configurations_run_on_fresh_seeds_and_test_is_read(table: Table) -> None:
    spec = space("search.trials=12", "search.confirm={top: 2, seeds: 2}")
    record = simulate(spec, table.course(), Cluster.of(3)).record
    confirm = list(record.by_stage("confirm"))
    assert len(confirm) == 6
    for trial in confirm:
        assert trial.reports[-1]["val/accuracy"] == pytest.approx(value(trial.params, trial.seed, EPOCHS), abs=1e-3)
    assert any("test/accuracy" in trial.tested for trial in confirm)


def test_concurrency_leaves_slots_empty(table: Table) -> None:
    spec = space("search.trials=12", "search.early_stopping={name: none}", "search.concurrency=2")
    assert simulate(spec, table.course(), Cluster.of(4)).seconds == 6 * EPOCHS * 2.0


def test_a_table_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    path = tmp_path / "curves.npz"
    path.write_text("no curves")
    with pytest.raises(UserError, match="is no table of curves"):
        Table.load(path)
    with pytest.raises(UserError, match="seconds missing"):
        Table.load(write(path, seconds=None))
    with pytest.raises(UserError, match="do not fit: values"):
        Table.load(write(path, seeds=[0, 1]))


def test_a_study_that_was_not_recorded_is_told(table: Table) -> None:
    with pytest.raises(UserError, match="10 given, 9 were recorded"):
        table.within(space("train.epochs=10"))
    with pytest.raises(UserError, match="val/worst_group_accuracy was not recorded"):
        table.within(space("search.metric=val/worst_group_accuracy"))
    narrow = table.within(space("search.space.method.lambda={low: 0.0, high: 1.0}"))
    assert 0 < len(narrow.rows) < len(table.rows)
