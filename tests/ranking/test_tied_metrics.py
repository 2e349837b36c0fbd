"""A metric that most configurations tie in is warned of, with those that tell them apart."""

import io
from pathlib import Path

import pytest
from helpers import Told, quickstart, record, write_ledger
from rich.console import Console

from study.analysis.report.caveats import caveat_statements
from study.commands import status
from study.commands.final_training import final_training_spec
from study.commands.progress import StudyProgress
from study.commands.progress_view import ProgressView
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results

METRIC = "val/worst_group_accuracy"
SPEC = quickstart(f"search.metric={METRIC}", "search.trials=6", "search.confirm={top: 0}")


def told(*values: float, state: str = "complete") -> list[Told]:
    """A baseline and search trials of these values, with an accuracy of their own each."""
    return [
        Told(
            "search" if place else "baseline",
            [value],
            state,
            {"method.alpha": place / 10},
            metric=METRIC,
            further={"val/accuracy": 0.5 + place / 100, "val/worst_class_accuracy": 0.25},
        )
        for place, value in enumerate(values)
    ]


def test_a_value_that_more_than_half_share_is_a_tie() -> None:
    (tie,) = Results(SPEC, record(*told(0.0, 0.0, 0.0, 0.1, 0.2))).tied_metrics
    assert (tie.metric, tie.value, tie.sharing, tie.complete) == (METRIC, 0.0, 3, 5)
    assert tie.instead == ("val/accuracy",)


@pytest.mark.parametrize("values", [(0.0, 0.0, 0.1, 0.2), (0.0, 0.1, 0.2, 0.3, 0.4), (0.0, 0.0, 0.0), ()])
def test_half_or_too_few_are_none(values: tuple[float, ...]) -> None:
    assert Results(SPEC, record(*told(*values))).tied_metrics == []


def test_only_complete_configurations_count() -> None:
    apart, cut = told(0.1, 0.2, 0.3, 0.4), told(0.0, 0.0, 0.0, 0.0, 0.0, state="pruned")[1:]
    assert Results(SPEC, record(*apart, *cut)).tied_metrics == []


def test_of_several_metrics_each_is_looked_at() -> None:
    both = quickstart(f"search.metric=[val/accuracy, {METRIC}]", "search.trials=6", "search.confirm={top: 0}")
    assert [tie.metric for tie in Results(both, record(*told(0.0, 0.0, 0.0, 0.0))).tied_metrics] == [METRIC]


def test_seeds_of_a_final_training_do_not_choose() -> None:
    finals = [Told("final", [0.0], seed=seed, metric=METRIC) for seed in range(5)]
    assert Results(final_training_spec(SPEC, list(range(5))), record(*finals)).tied_metrics == []


TIED = told(0.0, 0.0, 0.0, 0.0)


def test_progress_says_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.commands.progress_view.PLAIN_LINE_INTERVAL_S", 0.01)
    out = io.StringIO()
    with ProgressView(Console(file=out, width=200))(SPEC, record(*TIED)):
        pass
    assert out.getvalue().count(f"warning: {METRIC} is 0 in 4 of 4") == 1
    drawn = io.StringIO()
    with ProgressView(Console(file=drawn, width=200, force_terminal=True))(SPEC, record(*TIED)):
        pass
    assert drawn.getvalue().count(f"warning: {METRIC} is 0 in 4 of 4") == 1
    assert StudyProgress(SPEC, StudyRecord()).metric_warnings() == []


def test_status_and_report_say_it(tmp_path: Path) -> None:
    folder = Home(tmp_path).create_study(SPEC)
    write_ledger(folder.ledger_file, *TIED)
    document = status.study_status(folder)
    assert document.ties[0].tie.instead == ("val/accuracy",)
    assert any(line.startswith(f"warning   {METRIC} is 0") for line in status.study_status_lines(document))
    assert next(caveat_statements(Results(SPEC, record(*TIED)))) == document.ties[0].tie
