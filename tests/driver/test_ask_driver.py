"""What a user asks of a study that runs: checked before it is asked, answered by the driver."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from answers import answer
from helpers import Told, append_event, quickstart, write_ledger

from study.driver import ask_driver
from study.errors import UserError
from study.home.driver_requests import pending_requests
from study.home.events import SessionClosed, TrialEnded
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord
from study.sweep.agenda import Agenda, TrialJob
from study.sweep.early_stopping import EarlyStopping
from study.sweep.tune_adapters import RequestInbox

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}
TYPED = ["method.alpha=0.25", "method.lambda=1.5", "method.epsilon=0.1"]


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """A study with a baseline, a trial that is complete and one that runs."""
    folder = Home(tmp_path / "home").create_study(quickstart("name=mine", "train.epochs=2", "search.early_stopping={}"))
    write_ledger(
        folder.ledger_file,
        Told("baseline", [0.2, 0.3], params={**PARAMS, "method.lambda": 0.0}),
        Told("search", [0.4, 0.5], params=PARAMS),
        Told("search", [0.1], "running", params={**PARAMS, "method.alpha": 0.1}),
    )
    return folder


@contextmanager
def driven(folder: StudyFolder) -> Iterator[None]:
    """A driver that does nothing but listen."""
    ledger, over = Ledger(folder.ledger_file), threading.Event()
    spec, record = folder.load_spec(), StudyRecord.load_without_closing(folder.ledger_file)
    inbox = RequestInbox(Agenda(spec, ledger, record, EarlyStopping(spec)), folder.requests_folder)

    def listen() -> None:
        while not over.wait(0.02):
            inbox.obey_pending_requests()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        ledger.close()


def told(folder: StudyFolder) -> list[str]:
    return [event["event"] for event in read_entries(folder.ledger_file) if "request" in event]


def test_a_running_study_answers(folder: StudyFolder) -> None:
    with driven(folder):
        done = ask_driver.request_configuration(folder, TYPED)
        assert done.is_met
        assert done.message == "mine: the search tries this configuration next"
        assert [one.message for one in ask_driver.request_trials_end(folder, [2, 2])] == [
            "mine: trial 2 ends at its next report"
        ]
        assert ask_driver.request_search_end(folder).is_met
    assert told(folder) == ["enqueued", "stopping", "ending"]
    assert not pending_requests(folder.requests_folder)


def test_what_the_driver_refuses_is_an_error(folder: StudyFolder) -> None:
    with driven(folder):
        ask_driver.request_configuration(folder, TYPED)
        with pytest.raises(UserError, match="mine: it is enqueued already"):
            ask_driver.request_configuration(folder, TYPED)


def test_enqueued_on_a_study_that_does_not_run_it_waits(folder: StudyFolder) -> None:
    done = ask_driver.request_configuration(folder, ["method.alpha=0.25"], like=1)
    assert not done.is_met
    assert done.message == (
        "mine: is not running. Once it is resumed, the search tries this configuration next: study resume mine"
    )
    assert [request.params for _, request in pending_requests(folder.requests_folder) if request] == [
        {**PARAMS, "method.alpha": 0.25}
    ]
    with driven(folder):
        while pending_requests(folder.requests_folder):
            pass
    assert told(folder) == ["enqueued"]


@pytest.mark.parametrize(
    ("assignments", "why"),
    [
        (
            ["method.alhpa=1", "method.alpha=7", "method.lambda=x", "method.epsilon=0.3"],
            "enqueue method.alhpa=1: method.alhpa: is not searched. Did you mean 'method.alpha'? "
            "Allowed: method.alpha, method.lambda, method.epsilon\n"
            "enqueue method.alpha=7: method.alpha: 7 given, allowed is from 0.001 to 1.0\n"
            "enqueue method.lambda=x: method.lambda: 'x' given, allowed is from 0.0 to 2.0\n"
            "enqueue method.epsilon=0.3: method.epsilon: 0.3 given, allowed: 0.0, 0.1, 0.25, 0.5",
        ),
        (["method.alpha=true", *TYPED[1:]], "enqueue method.alpha=true: method.alpha: True given, allowed is from"),
        (TYPED[:2], "enqueue: method.epsilon: is missing: allowed: 0.0, 0.1, 0.25, 0.5"),
        (["method.alpha"], "enqueue method.alpha: not of the form key=value, as in enqueue train.epochs=10"),
        (["method.alpha=[1"], "enqueue method.alpha=[1: the value is not valid YAML"),
        (["method.alpha=0.5", "method.lambda=1.0", "method.epsilon=0.25"], "mine: trial 1 has this configuration"),
    ],
)
def test_a_configuration_is_checked_before_it_is_asked_for(
    folder: StudyFolder, assignments: list[str], why: str
) -> None:
    with pytest.raises(UserError) as error:
        ask_driver.request_configuration(folder, assignments)
    assert why in str(error.value)
    assert not pending_requests(folder.requests_folder)


def test_keys_that_a_trial_does_not_have_are_told(tmp_path: Path) -> None:
    when = "search.space.method.lambda={low: 0.0, high: 2.0, when: {method.epsilon: [0.25]}}"
    spec = quickstart("name=two", "search.baseline=null", "search.confirm={top: 0}", when)
    folder = Home(tmp_path / "home").create_study(spec)
    write_ledger(folder.ledger_file)
    given = ["method.lambda=0.1", "method.alpha=0.5"]
    with pytest.raises(UserError, match=r"method\.lambda: a trial with method\.epsilon 0\.1 does not have it"):
        ask_driver.request_configuration(folder, [*given, "method.epsilon=0.1"])
    with pytest.raises(UserError) as error:
        ask_driver.request_configuration(folder, given)
    key, needed = "method.lambda", "method.epsilon"
    assert str(error.value) == (f"enqueue {key}=0.1: {key}: only a trial with {needed} 0.25 has it: give {needed}, too")
    done = ask_driver.request_configuration(folder, [*given, "method.epsilon=0.25"])
    assert done.request.params == {"method.alpha": 0.5, "method.epsilon": 0.25, "method.lambda": 0.1}


def test_what_cannot_be_asked_is_told(folder: StudyFolder) -> None:
    for ask in (lambda: ask_driver.request_trials_end(folder, [2]), lambda: ask_driver.request_search_end(folder)):
        with pytest.raises(UserError, match=r"mine: is not running\. Its state: study status mine"):
            ask()
    with driven(folder):
        for number, why in ((0, "has ended, it is complete"), (7, "mine has 3 trials")):
            with pytest.raises(UserError, match=f"--trial {number}: {why}"):
                ask_driver.request_trials_end(folder, [2, number])
        with pytest.raises(UserError, match="--like 9: mine has 3 trials, 0 to 2"):
            ask_driver.request_configuration(folder, TYPED, like=9)
    append_event(folder.ledger_file, "ended", trial=2, state="complete")
    append_event(folder.ledger_file, "closed", state="complete", enough="trials")
    over = r"its search is over. To search on, once .*: study resume mine --trials \+10"
    with driven(folder), pytest.raises(UserError, match=over):
        ask_driver.request_search_end(folder)
    assert told(folder) == []


def test_after_the_last_configuration_was_given_out_what_runs_is_told(tmp_path: Path) -> None:
    spec = quickstart("name=mine", "train.epochs=2", "search.trials=2", "search.early_stopping={}")
    folder = Home(tmp_path / "home").create_study(spec)
    searched = Told("search", [0.1], "running", params=PARAMS)
    write_ledger(folder.ledger_file, Told("baseline", [0.2, 0.3], params={**PARAMS, "method.lambda": 0.0}), searched)
    with driven(folder), pytest.raises(UserError, match="tries nothing further, 1 of its trials have not ended"):
        ask_driver.request_configuration(folder, TYPED)


def test_a_search_that_is_over_goes_on_with_what_is_enqueued(folder: StudyFolder) -> None:
    ledger = Ledger(folder.ledger_file)
    ledger.append(TrialEnded(trial=2, state="complete"))
    ledger.append(SessionClosed(state="complete", enough="time"))
    ledger.close()
    done = ask_driver.request_configuration(folder, TYPED)
    assert done.message.startswith("mine: is not running. Once it is resumed, the search tries this configuration next")
    with pytest.raises(UserError, match="mine: it is enqueued already"):
        ask_driver.request_configuration(folder, TYPED)
    with pytest.raises(UserError, match="mine: trial 1 has this configuration"):
        ask_driver.request_configuration(folder, [], like=1)
    ask_driver.request_configuration(folder, ["method.alpha=0.75"], like=1)
    record = StudyRecord.load_without_closing(folder.ledger_file)
    assert (record.state, record.extended_n_configurations) == ("interrupted", 5)
    assert not record.trials_by_state()["waiting"]
    ledger, spec = Ledger(folder.ledger_file), folder.load_spec()
    agenda = Agenda(spec, ledger, record, EarlyStopping(spec))
    RequestInbox(agenda, folder.requests_folder).obey_pending_requests()
    tried = [job.trial for job in (agenda.next_job(), agenda.next_job()) if isinstance(job, TrialJob)]
    ledger.close()
    assert [trial.params["method.alpha"] for trial in tried] == [0.25, 0.75]
    assert [event["event"] for event in read_entries(folder.ledger_file)].count("extended") == 2


def test_a_search_that_its_time_had_ended_goes_on_with_what_is_enqueued(tmp_path: Path) -> None:
    """Its driver died in the stage after it, before it could write what ended the search."""
    folder = Home(tmp_path / "home").create_study(quickstart("name=mine", "search.time=0.0001", "search.trials=50"))
    write_ledger(folder.ledger_file, Told("search", [0.4], params=PARAMS), Told("confirm", [], "running", repeats=0))
    ask_driver.request_configuration(folder, TYPED)
    assert StudyRecord.load(folder.ledger_file).extended_n_configurations == 1 + 1


def test_the_commands_tell_what_was_asked_and_refuse_what_makes_no_sense(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(folder.path.parent))
    with driven(folder):
        done = answer("stop", "mine", "--search", "--json")
        assert (done.status, json.loads(done.out)["asked"][0]["done"]) == (0, True)
    assert answer("stop", "mine", "--search", "--trial", "2").err.startswith("error: --trial stops")
    assert "KEY=VALUE: is missing" in answer("enqueue", "mine").err
    assert "without --pdf" in answer("report", "mine", "--watch", "--json").err
