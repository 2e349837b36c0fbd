"""A ledger folded into a record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, quickstart, record, write_ledger

from study.analysis.report.caveats import CouldNotReadTestSplit, caveat_statements
from study.errors import UserError
from study.home.ledger import Ledger
from study.home.ledger_line import Entry, LineChainState, encode_entry
from study.home.record import StudyRecord, finite_metrics
from study.ranking import Results
from study.ranking.study_summary import summarise_study, summary_lines


def test_trials_are_folded_from_their_events() -> None:
    found = record(
        Told("baseline", [0.1, 0.2], params={"method.alpha": 1.0}),
        Told("search", [0.3], "pruned", params={"method.alpha": 0.5}),
        Told("confirm", [0.3, 0.4], seed=2, repeats=0, tested={"test/accuracy": 0.9}),
        Told("search", [], "failed"),
        Told("search", [0.5], "running"),
        Told("search", [], "waiting"),
    )
    baseline, pruned, confirm, failed, running, waiting = found.trials.values()
    assert (found.id, found.state, len(found.sessions)) == ("study", "running", 1)
    assert [trial.number for trial in found.trials.values()] == list(range(6))
    assert (baseline.stage, baseline.params, baseline.state) == ("baseline", {"method.alpha": 1.0}, "complete")
    assert baseline.reports == [
        {"epoch": 1, "val/accuracy": 0.1, "train/loss": 1.0},
        {"epoch": 2, "val/accuracy": 0.2, "train/loss": 1.0},
    ]
    assert (pruned.n_epochs, pruned.last_metric("val/accuracy"), pruned.state) == (1, 0.3, "pruned")
    assert (confirm.repeated_trial, confirm.seed, confirm.test_metrics) == (0, 2, {"test/accuracy": 0.9})
    assert (failed.state, failed.last_metric("val/accuracy"), failed.n_epochs) == ("failed", None, 0)
    assert (running.state, running.ended_at, running.node) == ("running", None, "here")
    assert (waiting.state, waiting.started_at) == ("waiting", None)
    assert found.trials_by_state() == {
        "waiting": 1,
        "running": 1,
        "complete": 2,
        "pruned": 1,
        "failed": 1,
        "interrupted": 0,
    }


def test_stages_are_asked_for_by_name_and_come_by_number() -> None:
    found = record(Told("baseline", []), Told("search", []), Told("confirm", [], repeats=0), Told("search", []))
    assert [trial.number for trial in found.trials_of_stages("search", "baseline")] == [0, 1, 3]
    assert [trial.number for trial in found.trials_of_stages("confirm")] == [2]
    others = replace(found, trials={number: found.trials[number] for number in (1, 2)})
    assert [trial.number for trial in others.trials_of_stages("search", "confirm", "final")] == [1, 2]


def test_a_trial_that_runs_again_runs_from_its_first_epoch() -> None:
    found = record(Told("search", [0.1, 0.2, 0.3], "running"))
    found.apply_entry({"event": "closed", "state": "interrupted", "time": 9.0})
    assert (found.trials[0].state, found.trials[0].n_epochs) == ("interrupted", 3)
    found.apply_entry({"event": "started", "trial": 0, "node": "there", "time": 10.0})
    assert (found.trials[0].state, found.trials[0].n_epochs, found.trials[0].node) == ("running", 0, "there")
    assert found.trials[0].started_at == 10.0


def test_a_trial_that_goes_on_from_a_checkpoint_keeps_the_epochs_before_it() -> None:
    found = record(Told("search", [0.1, 0.2, 0.3], "running"))
    found.apply_entry({"event": "lost", "trial": 0, "kind": "PREEMPTED", "reason": "died", "attempt": 1, "time": 9.0})
    assert (found.trials[0].state, found.trials[0].attempt, found.trials[0].n_epochs) == ("waiting", 1, 3)
    found.apply_entry({"event": "started", "trial": 0, "node": "there", "epoch": 2, "time": 10.0})
    assert [one["val/accuracy"] for one in found.trials[0].reports] == [0.1, 0.2]


def test_a_trial_that_was_lost_counts_as_busy_while_it_ran() -> None:
    """Started at 3 and lost at 9, again from 20 to 25."""
    found = record(Told("search", [], "running"))
    found.apply_entry(
        {"event": "lost", "trial": 0, "kind": "OOM", "reason": "", "attempt": 1, "alone": True, "time": 9.0}
    )
    found.apply_entry({"event": "lost", "trial": 0, "kind": "PREEMPTED", "reason": "", "attempt": 2, "time": 11.0})
    assert found.trials[0].needs_gpu_alone
    found.apply_entry({"event": "started", "trial": 0, "node": "there", "epoch": 0, "time": 20.0})
    found.apply_entry({"event": "ended", "trial": 0, "state": "failed", "kind": "BUG", "reason": "x", "time": 25.0})
    assert found.total_trial_seconds == 11.0
    assert (found.trials[0].failure_kind, found.trials[0].attempt) == ("BUG", 2)


def test_a_trial_whose_end_the_next_session_wrote_did_not_run_meanwhile() -> None:
    """Its driver was killed between its last report and its end."""
    told: list[Entry] = [
        {"event": "created", "id": "x", "time": 0.0},
        {"event": "opened", "owner": "ada", "time": 0.0},
        {"event": "trial", "trial": 0, "stage": "search", "params": {}, "seed": 0, "time": 10.0},
        {"event": "started", "trial": 0, "node": "a:1", "time": 10.0},
        {"event": "report", "trial": 0, "epoch": 1, "metrics": {"val/accuracy": 0.5}, "time": 14.0},
        {"event": "closed", "state": "interrupted", "time": 100.0},
        {"event": "opened", "owner": "ada", "time": 100.0},
        {"event": "ended", "trial": 0, "time": 100.5, "state": "complete"},
    ]
    trial = StudyRecord.from_entries(told).trials[0]
    assert (trial.total_run_seconds, trial.ended_at) == (4.0, 14.0)


@pytest.mark.parametrize("held", [True, False])
def test_a_study_whose_driver_died_reads_as_interrupted(tmp_path: Path, held: bool) -> None:
    path = tmp_path / "ledger.jsonl"
    write_ledger(path, Told("search", [0.5]), Told("search", [0.1], "running"))
    driver = Ledger(path) if held else None
    before = path.read_bytes()
    found = StudyRecord.load(path)
    assert found.state == ("running" if held else "interrupted")
    assert found.trials[1].state == ("running" if held else "interrupted")
    assert path.read_bytes() == before
    if driver:
        driver.close()


def test_a_test_split_that_could_not_be_read_is_told() -> None:
    """In the record, in the summary for people and in the report's caveats."""
    told = record(Told("baseline", [0.4, 0.5]), Told("confirm", [0.4, 0.5], seed=1, repeats=0))
    told.apply_entry({"event": "untested", "trial": 1, "reason": "weights are gone", "time": 9.0})
    assert told.trials[1].test_failure == "weights are gone"
    assert "test split not read for trial 1: weights are gone" in summary_lines(
        summarise_study(Results(quickstart(), told))
    )
    assert CouldNotReadTestSplit([1], "weights are gone") in caveat_statements(Results(quickstart(), told))
    told.apply_entry({"event": "untested", "trial": 0, "reason": "weights are gone", "time": 9.5})
    assert "test split not read for trials 0, 1: weights are gone" in summary_lines(
        summarise_study(Results(quickstart(), told))
    )


def test_a_test_split_that_was_read_later_is_no_longer_told_as_unread() -> None:
    told = record(Told("baseline", [0.4, 0.5]), Told("confirm", [0.4, 0.5], seed=1, repeats=0))
    told.apply_entry({"event": "untested", "trial": 1, "reason": "weights are gone", "time": 9.0})
    told.apply_entry({"event": "tested", "trial": 1, "metrics": {"test/accuracy": 0.5}, "time": 9.5})
    assert told.trials[1].test_failure is None
    assert summarise_study(Results(quickstart(), told)).untested == {}
    assert not [
        said for said in caveat_statements(Results(quickstart(), told)) if isinstance(said, CouldNotReadTestSplit)
    ]


BEFORE: list[Entry] = [
    {"event": "created", "time": 1.0, "id": "study"},
    {"event": "opened", "time": 1.0, "owner": "ada", "version": "7.8"},
    {"event": "trial", "time": 1.0, "trial": 0, "stage": "search", "params": {}, "seed": 0},
    {"event": "started", "time": 1.0, "trial": 0, "node": "here"},
]


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("report", {"trial": 0, "epoch": 1, "metrics": {"val/accuracy": "high"}}, "its metrics are not all numbers"),
        ("report", {"trial": 0, "epoch": 2, "metrics": {}}, "epoch 2 follows epoch 0"),
        ("report", {"trial": 1, "epoch": 1, "metrics": {}}, "there is no trial 1 yet"),
        ("report", {"trial": [0], "epoch": 1, "metrics": {}}, r"its trial is \[0\]"),
        ("trial", {"trial": 0, "stage": "search", "params": {}, "seed": 0}, "trial 0 was decided on before"),
        ("trial", {"trial": 1, "stage": "party", "params": {}, "seed": 0}, "its stage is 'party'"),
        ("trial", {"trial": 1, "stage": "confirm", "params": {}, "seed": 0, "repeats": 3}, "no trial 3 to repeat"),
        ("trial", {"trial": 1, "stage": "search", "params": {}, "seed": 2**63}, "its seed is 9223"),
        ("ended", {"trial": 0, "state": "running"}, "its state is 'running'"),
        ("ended", {"trial": 0, "state": "failed", "kind": "BAD LUCK"}, "its kind is 'BAD LUCK'"),
        ("closed", {"time": "noon", "state": "complete"}, "its time is 'noon'"),
        ("created", {"id": "other"}, "a study is created once"),
        ("opened", {"version": "7.8"}, "it has no owner"),
    ],
)
def test_an_event_that_cannot_be_is_told(tmp_path: Path, name: str, fields: dict[str, Any], told: str) -> None:
    """Also where its check value is right; with its byte."""
    path, chain = tmp_path / "ledger.jsonl", LineChainState()
    lines = []
    for event in (*BEFORE, {"event": name, "time": 2.0, **fields}):
        lines.append(chain.complete_line(encode_entry(event)))
        assert chain.advance_if_next(lines[-1])
    path.write_bytes(b"".join(lines))
    place = sum(map(len, lines[:-1]))
    message = (
        rf"ledger\.jsonl: has an event '{name}' that study \S+ cannot read: .*{told}.*\. "
        rf"Use what wrote it: study 7\.8\. It stands at byte {place}$"
    )
    with pytest.raises(UserError, match=message):
        StudyRecord.load(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.7e308, -1.7e308, 1.01e100])
def test_a_number_whose_squares_no_sum_can_hold_is_none(value: float) -> None:
    assert finite_metrics({"val/score": value, "val/other": 1e100}) == {"val/score": None, "val/other": 1e100}
