"""The studies of a home at a glance."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import Told, append_event, quickstart, write_ledger
from ruamel.yaml import YAML

from study.analysis.statistics.next_step import PositionInSearch
from study.commands import logs, status
from study.commands.final_training import final_training_spec
from study.errors import UserError
from study.home import driver_requests
from study.home.events import (
    ConfigurationEnqueued,
    EnsembleMeasured,
    EpochReported,
    NodeExcluded,
    ReferenceFitted,
    RequestRefused,
    SearchEndRequested,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialStarted,
    TrialStopRequested,
)
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking.json_documents import to_plain_value
from study.spec import StudySpec


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a study that no driver took up, one that is over, and one of ada's that grace went on with."""
    home = Home(tmp_path / "home")
    home.create_study(quickstart("name=new"))
    write_ledger(home.create_study(quickstart("name=old")).ledger_file, Told("baseline", [0.5]))
    ledger = Ledger(home.create_study(quickstart("name=hers")).ledger_file)
    for owner in ("ada", "grace"):
        ledger.append(SessionOpened(version="1", owner=owner))
    ledger.append(SessionClosed(state="interrupted"))
    ledger.close()
    return home


def test_whose_study_it_is_is_shown(home: Home) -> None:
    assert {row["name"]: row["owner"] for row in status.list_study_rows(home)} == {
        "new": None,
        "old": "ada",
        "hers": "ada",
    }
    table = status.studies_table(home, status.list_study_rows(home)).splitlines()
    assert table[0].split()[:3] == ["study", "state", "owner"]
    assert {line.split()[0]: line.split()[2] for line in table[1:]} == {"new": "-", "old": "ada", "hers": "ada"}
    hers = home.find_study("hers")
    assert status.study_status(hers).summary.owner == "ada"
    told = status.study_status_lines(status.study_status(hers))
    assert told[0] == "study hers, of ada: interrupted (no trial yet)"


def test_the_best_of_the_list_is_that_of_the_result(home: Home) -> None:
    """On fresh seeds once it ran on them: the value of the search is too good."""
    spec = quickstart("name=sure", "train.epochs=1", "search.early_stopping=none", "search.confirm={top: 1, seeds: 2}")
    fresh = [Told("confirm", [value], seed=seed, repeats=0) for seed, value in ((1, 0.6), (2, 0.7))]
    write_ledger(home.create_study(spec).ledger_file, Told("search", [0.9]), *fresh)
    (row,) = (row for row in status.list_study_rows(home) if row["name"] == "sure")
    assert row["best"] == pytest.approx(0.65)
    assert "val/accuracy 65.0% (2 seeds)" in status.studies_table(home, [row])


def test_a_final_training_is_listed_with_its_figure_on_the_test_split(home: Home) -> None:
    spec = final_training_spec(quickstart("train.epochs=1", "search.early_stopping=none"), [1, 2], "sure-final")
    seeds = [Told("final", [0.9], seed=seed, tested={"test/accuracy": value}) for seed, value in ((1, 0.6), (2, 0.7))]
    write_ledger(home.create_study(spec).ledger_file, *seeds)
    (row,) = (row for row in status.list_study_rows(home) if row["name"] == "sure-final")
    assert (row["metric"], row["best"], row["seeds"]) == ("test/accuracy", pytest.approx(0.65), 2)


def test_rows_are_kept_until_a_ledger_or_a_study_file_changes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, load = status.list_study_rows(home), StudyRecord.load
    monkeypatch.setattr(StudyRecord, "load", lambda path: pytest.fail(f"{path} is read again"))
    assert status.list_study_rows(home) == rows
    monkeypatch.setattr(StudyRecord, "load", load)
    ledger = Ledger(home.find_study("hers").ledger_file)
    ledger.append(SessionOpened(version="1", owner="ada"))
    assert {row["name"]: row["state"] for row in status.list_study_rows(home)}["hers"] == "running"
    ledger.close()
    assert {row["name"]: row["state"] for row in status.list_study_rows(home)}["hers"] == "interrupted"


def test_a_study_of_a_newer_version_is_told_of_and_the_others_are_listed(home: Home) -> None:
    append_event(home.find_study("hers").ledger_file, "weather", sky="blue")
    rows = {row["name"]: row for row in status.list_study_rows(home)}
    assert {name: row["state"] for name, row in rows.items()} == {
        "new": "new",
        "old": "interrupted",
        "hers": "unreadable",
    }
    told = r"ledger\.jsonl: has an event 'weather', which study .* does not know\. Use what wrote it: study 1"
    assert re.search(told, rows["hers"]["reason"])
    with pytest.raises(UserError, match=told):
        status.study_status(home.find_study("hers"))


def lines(home: Home, spec: StudySpec, *trials: Told) -> list[str]:
    """What is shown of a study with these trials that somebody runs at this moment."""
    folder = home.create_study(spec)
    write_ledger(folder.ledger_file, *trials)
    ledger = Ledger(folder.ledger_file)
    found = status.study_status_lines(status.study_status(folder))
    ledger.close()
    return found


def test_a_running_study_shows_its_best_its_pace_and_the_time_to_go(home: Home) -> None:
    trials = (
        Told("baseline", [0.5]),
        Told("search", [0.75], params={"method.alpha": 0.1}),
        Told("search", [], "running"),
    )
    found = lines(home, quickstart("name=mine"), *trials)
    assert found[0] == "study mine, of ada: running (1 running, 2 complete)"
    assert "best      val/accuracy               75.0% (1 seed)" in found
    assert "best: trial 1, method.alpha = 0.1" in found
    assert re.fullmatch(r"pace      \d+\.\d epochs per minute, about [\d:]+ to go", found[-1])


def test_the_studys_metric_comes_first_then_groups_and_gaps_and_the_lead_is_told(home: Home) -> None:
    groups = {"val/worst_group_accuracy": 0.2, "val/equalized_odds": 0.3, "val/accuracy_parity": 0.1}
    trials = [
        Told("baseline", [0.5], further=groups),
        *(Told("search", [0.6 + place / 10], params={"method.alpha": 0.1}, further=groups) for place in range(2)),
    ]
    found = lines(home, quickstart("name=mine"), *trials)
    assert [line.split()[:2] for line in found[1:7]] == [
        [who, f"val/{name}"]
        for who in ("baseline", "best")
        for name in ("accuracy", "worst_group_accuracy", "equalized_odds")
    ]
    assert "how sure  On seed 0 alone nothing tells trial 2 from the other complete configuration." in found
    started = (
        "search    3 of the 24 planned trials of the search were started. The leading configuration came as the 2nd of"
    )
    assert started in found
    assert status.study_status(home.find_study("mine")).lead.best_came == PositionInSearch(2, 2)


def test_what_is_left_to_do_of_a_range_of_real_numbers_is_told_without_pytorch(home: Home) -> None:
    """Whose import takes more than a second."""
    write_ledger(
        home.create_study(quickstart("name=whole")).ledger_file, Told("baseline", [0.5]), Told("search", [0.6])
    )
    code = (
        "import sys; from pathlib import Path; from study.home.folder import Home; from study.commands import status; "
        f"shown = status.study_status(Home(Path({str(home.path)!r})).find_study('whole')); "
        "print('torch' in sys.modules, bool(shown))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]


def test_a_study_without_an_epoch_has_no_pace_yet(home: Home) -> None:
    found = lines(home, quickstart("name=mine"), Told("baseline", [], "running"))
    assert found == ["study mine, of ada: running (1 running)", "pace      not known before the first epoch"]


def test_a_study_that_ended_before_a_result_says_how_it_goes_on(home: Home) -> None:
    told = status.study_status_lines(status.study_status(home.find_study("hers")))
    assert told[0] == "study hers, of ada: interrupted (no trial yet)"
    assert "study resume hers" in "\n".join(told)


def test_a_stopped_study_has_something_left_to_do_and_a_complete_one_has_not(home: Home) -> None:
    for state, told in (("interrupted", r", about [\d:]+ left to do"), ("complete", "")):
        folder = home.create_study(quickstart(f"name={state}"))
        write_ledger(folder.ledger_file, Told("baseline", [0.5]))
        append_event(folder.ledger_file, "closed", state=state)
        shown = status.study_status_lines(status.study_status(folder))
        assert re.fullmatch(rf"pace      \d+\.\d epochs per minute{told}", shown[-1])


@pytest.mark.parametrize("state", ["interrupted", "complete", "failed"])
def test_results_of_a_study_that_is_not_over_are_said_to_be_those_so_far(home: Home, state: str) -> None:
    folder = home.create_study(quickstart("name=mine"))
    write_ledger(folder.ledger_file, Told("baseline", [0.5]), Told("search", [], "failed"))
    append_event(folder.ledger_file, "closed", state=state)
    shown = status.study_status_lines(status.study_status(folder))
    is_said = "so far    the study is not over, and what follows may change" in shown
    assert is_said is (state == "interrupted")


def test_runs_that_were_lost_are_told(home: Home) -> None:
    folder = home.create_study(quickstart("name=mine"))
    write_ledger(folder.ledger_file, Told("baseline", [0.5]), Told("search", [], "running"))
    append_event(folder.ledger_file, "lost", trial=1, kind="PREEMPTED", reason="it died", attempt=1, node_died=True)
    assert (
        status.study_status_lines(status.study_status(folder))[-1]
        == "lost      1 run of trials, which had to run again"
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("constraints", ["rubbish"], "search.constraints.0: 'rubbish' given, allowed is METRIC <= NUMBER"),
        ("metric", "x", "search.metric: 'x' given, allowed is val/NAME"),
        ("trials", None, "search.trials: is missing"),
        ("method", {}, "method.name: is missing"),
        ("data", {}, "data.name: is missing"),
    ],
)
def test_a_study_whose_own_file_was_damaged_is_named_and_the_others_are_listed(
    home: Home, key: str, value: object, message: str
) -> None:
    folder = home.find_study("old")
    document = YAML(typ="safe", pure=True).load(folder.spec_file)
    (document if key in document else document["search"])[key] = value
    with folder.spec_file.open("w") as file:
        YAML().dump(document, file)
    rows = {row["name"]: row for row in status.list_study_rows(home)}
    assert rows["old"]["state"] == "unreadable"
    assert message in rows["old"]["reason"]
    assert [row["state"] for name, row in rows.items() if name != "old"] == ["new", "interrupted"]


def test_the_devices_of_trials_and_the_nodes_that_are_not_used_are_shown(home: Home) -> None:
    """Of the last driver: what was mended before it is not told."""
    folder = home.find_study("hers")
    ledger = Ledger(folder.ledger_file)
    ledger.append(NodeExcluded(node="mended", reason="no longer so"))
    ledger.append(SessionOpened(version="1", owner="grace"))
    ledger.append(NodeExcluded(node="far", reason="its driver is too old. Remedy: another"))
    card = {"name": "NVIDIA L4", "driver": "580.65.06", "cuda": "13.2", "capability": "8.9"}
    for trial, device in enumerate([card, {"name": "cpu"}, card]):
        ledger.append(TrialDecided(trial=trial, stage="search", params={}, seed=0))
        ledger.append(TrialStarted(trial=trial, node="here:1", device=device))
    ledger.append(SessionClosed(state="interrupted"))
    ledger.close()
    document = status.study_status(folder)
    assert to_plain_value(document)["devices"] == [{**card, "trials": 2}, {"name": "cpu", "trials": 1}]
    lines = status.study_status_lines(document)
    assert "device    NVIDIA L4 (driver 580.65.06, CUDA 13.2, compute capability 8.9): 2 trials" in lines
    assert "device    CPU: 1 trial" in lines
    assert [line for line in lines if "not used" in line] == [
        "warning   far is not used: its driver is too old. Remedy: another"
    ]


def test_what_users_asked_for_is_said_until_it_is_done(tmp_path: Path) -> None:
    folder = Home(tmp_path).create_study(quickstart())
    write_ledger(folder.ledger_file, Told("baseline", [0.5], "running"), Told("search", [0.5], "running"))
    assert status.study_status(folder).asked is None
    driver_requests.submit_request(folder.requests_folder, driver_requests.DriverRequest("end"))
    ledger = Ledger(folder.ledger_file)
    for request in "ab":
        ledger.append(ConfigurationEnqueued(request=request, params={"method.alpha": len(request)}))
    ledger.append(TrialStopRequested(request="c", trial=1))
    ledger.append(SearchEndRequested(request="d"))
    record = StudyRecord.load_without_closing(folder.ledger_file)
    asked = status.pending_user_requests(folder, record)
    assert asked == status.PendingRequests(ending=True, stopping=[1], enqueued=0, unanswered=1)
    assert list(status.pending_request_lines(asked)) == [
        "ending    a user ended the search; what runs of it goes on, then the study does",
        "stopping  trial 1 ends at its next report, as a user asked",
        "asked     1 request that no driver has answered yet",
    ]
    for trial in (0, 1):
        ledger.append(TrialEnded(trial=trial, state="complete"))
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    assert status.study_status(folder).asked is None


def test_a_line_of_the_log_holds_no_tables(home: Home) -> None:
    folder = home.create_study(quickstart())
    append_event(folder.ledger_file, "opened", owner="ann", spec="1f", groups={"val": [[3, 4], [4, 3]]})
    (line,) = logs.event_history_text(logs.read_history(folder, None)).splitlines()
    assert line.endswith("opened     owner ann, spec 1f")


def test_a_trial_that_is_not_there_is_told_with_those_that_are(home: Home) -> None:
    folder = home.create_study(quickstart())
    write_ledger(folder.ledger_file, Told("search", [0.75]), Told("search", [0.5]))
    with pytest.raises(UserError, match=r"^--trial 99: quickstart has 2 trials, 0 to 1$"):
        logs.read_history(folder, 99)


def test_a_report_in_the_log_is_one_line_with_what_the_study_looks_at(home: Home) -> None:
    folder = home.create_study(quickstart())
    write_ledger(folder.ledger_file, Told("search", [0.75]))
    few = logs.event_history_text(logs.read_history(folder, 0))
    ledger = Ledger(folder.ledger_file)
    metrics = {"train/loss": 1.0, "val/accuracy": 0.25, **{f"val/other_{number}": 0.5 for number in range(40)}}
    ledger.append(EpochReported(trial=0, epoch=2, metrics=metrics))
    ledger.close()
    *others, line = logs.event_history_text(logs.read_history(folder, 0)).splitlines()
    assert others == few.splitlines()
    assert line.endswith("trial 0, epoch 2: train/loss 1.000, val/accuracy 25.0% and 40 more (--json)")
    assert logs.read_history(folder, 0).events[-1]["metrics"] == metrics


def test_of_a_reading_of_the_test_split_the_log_shows_the_studys_metrics_on_it(home: Home) -> None:
    folder = home.create_study(quickstart())
    metrics = {"test/accuracy": 0.25, **{f"test/other_{number}": 0.5 for number in range(40)}}
    write_ledger(folder.ledger_file, Told("confirm", [0.5], tested=metrics))
    (line,) = [
        line for line in logs.event_history_text(logs.read_history(folder, None)).splitlines() if "tested" in line
    ]
    assert line.endswith("trial 0: test/accuracy 25.0% and 40 more (--json)")


def test_the_log_of_a_study_lists_every_kind_of_event_but_what_a_trials_own_has(home: Home) -> None:
    """What a final training's ensemble reaches, what a user asked for and what was fitted beside the search, too."""
    folder = home.create_study(quickstart())
    write_ledger(folder.ledger_file, Told("search", [0.75]))
    ledger = Ledger(folder.ledger_file)
    ledger.append(EnsembleMeasured((0, 1), {"val/accuracy": 0.5}))
    ledger.append(SearchEndRequested("a"))
    ledger.append(ReferenceFitted("logistic_regression", {"val/accuracy": 0.25}))
    ledger.append(RequestRefused("b", "no such trial"))
    ledger.close()
    *_, ensemble, ending, reference, refused = logs.event_history_text(logs.read_history(folder, None)).splitlines()
    assert ensemble.endswith("ensemble   trials [0, 1]: val/accuracy 50.0%")
    assert ending.endswith("ending     request a")
    assert reference.endswith("reference  name logistic_regression: val/accuracy 25.0%")
    assert refused.endswith("refused    request b, reason no such trial")


def test_a_metric_that_was_no_number_is_named_in_the_log(home: Home) -> None:
    """The line says why the trial has no value; the ledger keeps null."""
    folder = home.create_study(quickstart())
    write_ledger(folder.ledger_file, Told("search", [None]))
    assert "val/accuracy not defined" in logs.event_history_text(logs.read_history(folder, 0))


def test_a_study_and_its_copy_are_one_row_while_they_are_alike(home: Home) -> None:
    original = home.find_study("old")
    copy = home.create_study(quickstart("name=copy"))
    copy.ledger_file.write_bytes(original.ledger_file.read_bytes())
    shown = status.studies_table(home, status.list_study_rows(home)).splitlines()
    assert [line for line in shown if line.startswith(("old", "copy"))] == [
        line for line in shown if line.startswith(("old, copy ", "copy, old "))
    ]
    assert len(shown) == 4
    write_ledger(copy.ledger_file, Told("baseline", [0.5]), Told("search", [0.6]))
    assert len(status.studies_table(home, status.list_study_rows(home)).splitlines()) == 5
