"""What is shown while a study runs."""

import io
import re
import time
from types import SimpleNamespace

import pytest
from folded import folded
from helpers import Told, quickstart, record
from rich.console import Console

from study.commands.final_training import final_training_spec
from study.commands.progress import StudyPace, StudyProgress
from study.commands.progress_view import ProgressView
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep import LOADING_DATA_STEP, STOPPING_MESSAGE

SPEC = quickstart("search.trials=4", "search.confirm={top: 1, seeds: 2}", "train.epochs=4")
LINE = re.compile(r"\d+:\d\d  .+(; best so far: .+)?(; about \d+:\d\d(:\d\d)? to go)?")


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines begin with the time, and a test on a busy machine takes seconds."""
    monkeypatch.setattr("study.commands.progress.time", SimpleNamespace(monotonic=lambda: 0.0, time=lambda: 0.0))


RULES = quickstart("search.trials=4", "search.confirm={top: 1, seeds: 2, rules: true}", "search.early_stopping={}")


def test_the_picks_of_other_rules_are_at_most_so_many_until_the_search_is_over() -> None:
    """Two metrics: two of four configurations can be picked besides the baseline and the best; then they are known."""
    values = [(0.1, 0.1), (0.9, 0.2), (0.2, 0.9), (0.3, 0.3)]
    trials = [
        Told("search" if place else "baseline", [value], further={"val/balanced_accuracy": other})
        for place, (value, other) in enumerate(values)
    ]
    begun = StudyProgress(RULES, record(trials[0]))
    assert sum(begun.trial_counts().values()) == 4 + 4 + 1 * 2
    over = record(*trials, *(Told("confirm", [0.5], repeats=of, seed=seed) for of in (0, 1) for seed in (1, 2)))
    assert StudyProgress(RULES, over).trial_counts()["waiting"] == 2
    done = record(*trials, *(Told("rule", [0.5], repeats=of, seed=seed) for of in (0, 1, 2) for seed in (1, 2)))
    assert StudyProgress(RULES, done).trial_counts()["waiting"] == 0, "whatever they ran for"
    alike = record(*(Told("search" if place else "baseline", [0.1 * place]) for place in range(4)))
    assert StudyProgress(RULES, alike).trial_counts()["waiting"] == 4
    without = quickstart("search.trials=4", "search.confirm={top: 1, seeds: 2}", "search.early_stopping={}")
    assert StudyProgress(without, over).trial_counts()["waiting"] == 0, "no rule was asked for"


def test_what_was_pruned_is_not_waited_for_once_the_search_is_over() -> None:
    """Of four configurations one is complete besides the baseline, and two were to run again."""
    spec = quickstart("search.trials=4", "search.confirm={top: 2, seeds: 2}", "search.early_stopping={}")
    trials = [Told("baseline", [0.1]), Told("search", [0.3]), *(Told("search", [0.2], "pruned") for _ in range(2))]
    again = [Told("confirm", [0.5], repeats=of, seed=seed) for of in (0, 1) for seed in (1, 2)]
    assert StudyProgress(spec, record(*trials)).trial_counts()["waiting"] == 4
    assert StudyProgress(spec, record(*trials, *again)).trial_counts()["waiting"] == 0


def test_a_number_that_may_become_smaller_is_said_to_be_the_most() -> None:
    other = {"val/balanced_accuracy": 0.1}
    trials = [Told("baseline", [0.1], further=other), *(Told("search", [0.2], "pruned") for _ in range(2))]
    begun, over = (StudyProgress(RULES, record(*trials, *more)) for more in ([], [Told("search", [0.3])]))
    assert ": 1 waiting (then at most 6 more), " in begun.progress_line()
    few = "of four configurations two will be complete, so that rules have no choice"
    assert begun.expected_epochs() == 4 * 1 + 4 * RULES.epochs, few
    assert "at most" not in over.progress_line()
    assert ": 4 waiting, " in over.progress_line()


SEVERAL = quickstart(
    "search.metric=[val/accuracy, val/balanced_accuracy]",
    "search.trials=4",
    "search.confirm={top: 1, seeds: 2}",
    "search.early_stopping={name: none}",
)


def test_of_several_metrics_the_trials_on_fresh_seeds_are_those_of_the_front_once_the_search_is_over() -> None:
    values = [(0.1, 0.1), (0.9, 0.2), (0.8, 0.3), (0.2, 0.9)]
    trials = [
        Told("search" if place else "baseline", [value], further={"val/balanced_accuracy": other})
        for place, (value, other) in enumerate(values)
    ]
    progress = StudyProgress(SEVERAL, record())
    assert progress.trial_counts()["waiting"] == 4 + (1 + 1) * 2, "the best and the baseline, as far as is known"
    assert ": 4 waiting (then about 4 more)" in progress.progress_line()
    progress._record = record(*trials[:2])
    assert progress.trial_counts()["waiting"] == 2 + (1 + 1) * 2
    progress._record = record(*trials)
    assert progress.trial_counts()["waiting"] == (3 + 1) * 2, "the whole front and the baseline"
    assert ": 8 waiting" in progress.progress_line()


ONCE = [Told("baseline", [0.4]), Told("search", [0.9]), Told("search", [0.3]), Told("search", [0.3])]


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([], ""),
        ([Told("search", [0.9], "pruned")], ""),
        ([Told("baseline", [0.25])], "baseline val/accuracy 25.0%"),
        ([Told("search", [0.5]), Told("search", [0.75])], "val/accuracy 75.0% (highest in the search, trial 1)"),
        (
            [Told("baseline", [0.25]), Told("search", [0.5])],
            "val/accuracy 50.0% (highest in the search, trial 1), baseline 25.0%",
        ),
        (
            [Told("baseline", [0.9]), Told("search", [0.5])],
            "val/accuracy 50.0% (highest in the search, trial 1), baseline 90.0%",
        ),
        (
            [*ONCE, *(Told("confirm", [0.5 + of / 10], repeats=of, seed=seed) for of in (0, 1) for seed in (1, 2))],
            "val/accuracy 60.0% (mean of 2 fresh seeds, trial 1), baseline 50.0%",
        ),
        (
            [*ONCE, Told("confirm", [0.1], repeats=1, seed=1)],
            "val/accuracy 90.0% (highest in the search, trial 1), baseline 40.0%",
        ),
    ],
)
def test_the_best_so_far(trials: list[Told], words: str) -> None:
    assert StudyProgress(SPEC, record(*trials)).best_text() == words


def test_values_on_one_fold_are_not_compared_with_those_on_all() -> None:
    """A reference is judged on all folds alone, and the baseline may have another fold than what leads."""

    def best_text(*trials: Told, spec: StudySpec | None = None) -> str:
        found, name = record(*trials), "logistic_regression"
        found.apply_entry({"event": "reference", "name": name, "metrics": {"val/accuracy": 0.7}, "time": 9.0})
        return StudyProgress(spec or folded(f"search.references=[{name}]"), found).best_text()

    searched = [Told("baseline", [0.5], fold=0), Told("search", [0.9], fold=1)]
    told = "val/accuracy 90.0% (highest in the search, on one fold, trial 1), baseline 50.0% on another"
    assert best_text(*searched) == told
    assert best_text(*searched[:1], Told("search", [0.9], fold=0)).endswith("baseline 50.0% on the same")
    of_one_split = quickstart("search.references=[logistic_regression]")
    assert best_text(*searched, spec=of_one_split).endswith(", baseline 50.0%, without a search 70.0%")


LIMIT = "val/equalized_odds <= 0.1"


@pytest.mark.parametrize("metric", ["val/accuracy", "[val/accuracy, val/balanced_accuracy]"])
def test_what_leads_by_breaking_a_limit_is_said_to_and_falls_behind_what_keeps_it(metric: str) -> None:
    """Otherwise a best so far would get worse without a reason."""
    spec = quickstart(f"search.metric={metric}", f"search.constraints=['{LIMIT}']", "search.trials=4")

    def trial(stage: str, value: float, gap: float) -> Told:
        return Told(stage, [value], further={"val/balanced_accuracy": value, "val/equalized_odds": gap})

    breaks, keeps = trial("search", 0.9, 0.3), trial("search", 0.6, 0.05)
    first, then = (StudyProgress(spec, record(*trials)).best_text() for trials in ([breaks], [breaks, keeps]))
    assert "90.0%" in first
    assert f"breaks {LIMIT}" in first
    assert "highest" not in first
    assert "60.0%" in then
    assert "breaks" not in then
    baselines = (StudyProgress(spec, record(trial("baseline", 0.9, gap))).best_text() for gap in (0.3, 0.05))
    assert [f"breaks {LIMIT}" in told for told in baselines] == [True, False]


def test_what_keeps_a_limit_in_the_search_may_break_it_on_fresh_seeds() -> None:
    spec = quickstart(f"search.constraints=['{LIMIT}']", "search.trials=4", "search.confirm={top: 1, seeds: 2}")
    searched = Told("search", [0.9], further={"val/equalized_odds": 0.1})
    fresh = [Told("confirm", [0.8], seed=seed, repeats=0, further={"val/equalized_odds": 0.2}) for seed in (1, 2)]
    found = StudyProgress(spec, record(searched, *fresh)).best_text()
    assert "80.0%" in found
    assert f"breaks {LIMIT}" in found


def test_a_final_training_shows_its_seeds_and_their_mean() -> None:
    spec = final_training_spec(SPEC, [0, 1, 2])
    found = record(Told("final", [0.5]), Told("final", [0.7], seed=1), Told("final", [0.1], "running", seed=2))
    progress = StudyProgress(spec, found)
    assert progress.best_text() == "val/accuracy 60.0% (mean of 2)"
    assert "; so far: val/accuracy 60.0% (mean of 2)" in progress.progress_line()
    assert sum(progress.trial_counts().values()) == 3


PARTIAL = [
    [],
    [Told("baseline", [], "waiting")],
    [Told("baseline", [], "running")],
    [Told("baseline", [None], "failed")],
    [Told("baseline", [0.1] * 4), Told("search", [0.2], "running")],
    [Told("search", [0.1] * 4)] * 4 + [Told("confirm", [0.1] * 4, repeats=0)] * 4,
    [Told("search", [0.1] * 4)] * 9,
]


@pytest.mark.parametrize("spec", [SPEC, final_training_spec(SPEC, [0]), quickstart("search.confirm={top: 0}")])
@pytest.mark.parametrize("trials", PARTIAL)
def test_every_partial_record_can_be_shown(spec: StudySpec, trials: list[Told]) -> None:
    progress = StudyProgress(spec, record(*trials))
    for _ in range(2):
        assert LINE.fullmatch(progress.progress_line())
        time.sleep(0.001)


def test_the_phase_is_what_trials_run_for() -> None:
    found = record(Told("baseline", [0.1] * 4), Told("search", [0.1], "running"))
    progress = StudyProgress(SPEC, found)
    assert progress.phase() == "searching"
    told = [Told("search", [0.1] * 4)] * 4
    confirming = StudyProgress(SPEC, record(*told, Told("confirm", [0.1], "running", repeats=0)))
    assert confirming.phase() == "confirming"
    assert StudyProgress(SPEC, record(Told("ablation", [0.1], "running"), Told("search", [], "running"))).phase() == (
        "searching and ablating"
    )


def test_what_was_asked_for_is_counted_until_it_is_done() -> None:
    found = record(Told("baseline", [0.25] * 4), Told("search", [0.1], "running"))
    progress = StudyProgress(SPEC, found)
    found.apply_entry({"event": "enqueued", "request": "a", "params": {"method.alpha": 0.5}, "time": 9.0})
    found.apply_entry({"event": "stopping", "request": "b", "trial": 1, "time": 9.0})
    assert ", 1 enqueued, 1 stopping; best" in progress.progress_line()
    decided = {"trial": 2, "stage": "search", "params": {}, "seed": 0, "enqueued": True}
    found.apply_entry({"event": "trial", **decided, "time": 9.0})
    found.apply_entry({"event": "ended", "trial": 1, "state": "pruned", "time": 9.0})
    assert not re.search("enqueued|stopping", progress.progress_line())


def test_a_search_that_a_user_ended_has_nothing_more_to_try() -> None:
    found = record(Told("baseline", [0.25] * 4), Told("search", [0.1], "running"))
    progress = StudyProgress(SPEC, found)
    assert (progress.phase(), progress.trial_counts()["waiting"]) == ("searching", 2 + 4)
    found.apply_entry({"event": "ending", "request": "a", "time": 9.0})
    assert (progress.phase(), progress.trial_counts()["waiting"]) == ("ending the search", 4)


def test_steps_of_the_driver_are_phases_until_a_trial_runs() -> None:
    found = record(Told("baseline", [0.1] * 4))
    progress = StudyProgress(SPEC, found)
    assert progress.phase() == "starting Ray"
    progress.enter_driver_step("starting the first trials")
    assert progress.phase() == "starting the first trials"
    progress.enter_driver_step("starting Ray takes long")
    assert progress.phase() == "starting the first trials", "anything else is a line of its own"
    found.apply_entry({"event": "trial", "trial": 1, "stage": "search", "params": {}, "seed": 0, "time": 1.0})
    found.apply_entry({"event": "started", "trial": 1, "time": 1.0})
    assert progress.phase() == "searching"
    progress.enter_driver_step("writing the report")
    found.apply_entry({"event": "ended", "trial": 1, "state": "complete", "time": 2.0})
    assert progress.phase() == "writing the report"
    assert re.match(r"\d:\d\d  writing the report: ", progress.progress_line())


def test_trials_that_have_all_run_are_tested() -> None:
    spec = final_training_spec(SPEC, [0])
    found = record(Told("final", [0.5], "running"))
    progress = StudyProgress(spec, found)
    assert progress.phase() == "training"
    found.apply_entry({"event": "ended", "trial": 0, "state": "complete", "time": 2.0})
    assert progress.phase() == "testing"


@pytest.mark.parametrize("is_dumb", [False, True])
def test_where_no_cursor_can_be_moved_there_are_plain_lines(monkeypatch: pytest.MonkeyPatch, is_dumb: bool) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    out = io.StringIO()
    with ProgressView(Console(file=out, width=120, force_terminal=is_dumb))(SPEC, record(Told("baseline", [0.25] * 4))):
        pass
    lines = out.getvalue().splitlines()
    assert lines
    assert all(LINE.fullmatch(line) for line in lines)


def test_the_time_to_go_is_told_from_the_first_epoch_on_and_is_that_of_status() -> None:
    """A second per event: the trial began in the fourth, so that the four before it are not its pace."""
    begun = record(Told("baseline", [], "running"))
    first_epoch = record(Told("baseline", [0.25], "running"))
    assert StudyProgress(SPEC, begun).pace() is None
    assert StudyProgress(SPEC, begun).progress_line().endswith("1 running; no epoch has ended yet")
    assert "no epoch" not in StudyProgress(SPEC, record()).progress_line(), "nothing runs"
    assert (
        StudyProgress(SPEC, begun).numbers_that_print_line()
        != StudyProgress(SPEC, first_epoch).numbers_that_print_line()
    )
    assert StudyProgress(SPEC, first_epoch).pace() == StudyPace(60.0, 8 * 4 - 1)
    assert StudyProgress(SPEC, first_epoch).progress_line().endswith("about 0:31 to go")


def test_the_start_of_each_session_is_no_part_of_the_pace() -> None:
    """A session of a second per event, which ended with trial 0; the next one began its trials 60 seconds later."""
    found = record(Told("baseline", [0.25] * 4))
    at = found.last_event_time
    pace = StudyProgress(SPEC, found).pace()
    found.apply_entry({"event": "closed", "state": "interrupted", "time": at})
    found.apply_entry({"event": "opened", "owner": "somebody", "time": at})
    decided = {"trial": 1, "stage": "search", "params": {}, "seed": 0}
    found.apply_entry({"event": "trial", "time": at + 60, **decided})
    found.apply_entry({"event": "started", "trial": 1, "node": "here", "time": at + 60})
    assert StudyProgress(SPEC, found).pace().epochs_per_minute == pytest.approx(pace.epochs_per_minute)
    found.apply_entry({"event": "closed", "state": "interrupted", "time": at + 60})
    found.apply_entry({"event": "opened", "owner": "somebody", "time": at + 60})
    found.apply_entry({"event": "started", "trial": 1, "node": "here", "time": at + 90})
    assert StudyProgress(SPEC, found).pace().epochs_per_minute == pytest.approx(pace.epochs_per_minute)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_why_the_first_trial_failed_is_told_once_and_with_where_its_traceback_is(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    for period in ("PLAIN_LINE_INTERVAL_S", "LIVE_LINE_INTERVAL_S"):
        monkeypatch.setattr(f"study.commands.progress_view.{period}", 0.01)
    out, found = io.StringIO(), record(Told("search", [], "failed"), Told("search", [], "failed"))
    with ProgressView(Console(file=out, width=200, force_terminal=is_terminal))(SPEC, found):
        time.sleep(0.05)
    why = f"trial 0 failed: {found.trials[0].end_reason}. study logs {SPEC.name} --trial 0"
    assert re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue()).count(why) == 1
    assert "trial 1 failed" not in out.getvalue()


def test_a_terminal_keeps_one_line_and_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each update goes back to the line's begin; lines that were told stand above it."""
    monkeypatch.setattr("study.commands.progress_view.LIVE_LINE_INTERVAL_S", 0.01)
    out = io.StringIO()
    with ProgressView(Console(file=out, width=120, force_terminal=True))(
        SPEC, record(Told("baseline", [0.25] * 4))
    ) as tell:
        tell("starting the first trials")
        tell(STOPPING_MESSAGE)
        time.sleep(0.05)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())
    lines = [line.split("\r")[-1] for line in text.rstrip("\n").split("\n")]
    best = "best so far: baseline val/accuracy 25.0%"
    last = f"0:00  stopping: 3 waiting (then 4 more), 1 complete; {best}; about 0:35 left to do"
    assert lines == [f"0:00  {STOPPING_MESSAGE}", last]


def test_before_a_study_is_there_its_step_alone_is_shown() -> None:
    plain, drawn = io.StringIO(), io.StringIO()
    for console in (Console(file=plain), Console(file=drawn, force_terminal=True)):
        with ProgressView(console)(SPEC, StudyRecord()) as tell:
            tell(LOADING_DATA_STEP)
    assert plain.getvalue() == "0:00  loading data\n"
    assert "loading data" in drawn.getvalue()
    assert "waiting" not in drawn.getvalue()


def test_what_is_told_has_no_pictures_in_place_of_words() -> None:
    out = io.StringIO()
    with ProgressView(Console(file=out, width=200))(SPEC, StudyRecord()) as tell:
        tell("trial 0 failed: own:train: did not yield val/loss")
    assert "own:train: did" in out.getvalue()


def test_quiet_shows_nothing() -> None:
    out = io.StringIO()
    with ProgressView(Console(file=out), quiet=True)(SPEC, StudyRecord()):
        pass
    assert out.getvalue() == ""


def test_trials_that_were_over_before_anybody_looked_end_a_step_too() -> None:
    found = record(Told("baseline", [0.1] * 4))
    progress = StudyProgress(SPEC, found)
    progress.enter_driver_step("starting the first trials")
    found.trials.update(record(Told("baseline", [0.1] * 4), Told("search", [0.2] * 4)).trials)
    assert progress.phase() == "searching"
    progress.enter_driver_step("writing the report")
    assert progress.phase() == "writing the report"
