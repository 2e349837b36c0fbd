"""The end of a run: what is typed next can be typed, and the exit status tells whether the work was done."""

import shlex
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer
from answers import answer
from final_training import TABLE, people
from helpers import Told, append_event, quickstart, write_ledger

from study.analysis.report.report_lead import report_lead_statements
from study.analysis.statistics.next_step import predict_command
from study.cli.options import show_run_end
from study.commands.export_configurations import export_best
from study.commands.final_training import final_training_spec
from study.driver import resume
from study.driver.session import RunEnd, run_end_lines
from study.errors import StudyStoppedError, UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.candidate_selection import CandidateSelection
from study.spec import load_study

SPEC = quickstart("search.confirm={top: 0, seeds: 2}")
PARAMS = {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}


def complete(home: Path, untracked: str | None = None, *, ran: bool = True) -> RunEnd:
    """A study of one trial that is over."""
    folder = Home(home).create_study(SPEC)
    write_ledger(folder.ledger_file, Told("baseline", [0.5], params=PARAMS))
    append_event(folder.ledger_file, "closed", state="complete")
    record = StudyRecord.load(folder.ledger_file)
    export_best(folder, Results(SPEC, record), folder.best_file)
    return RunEnd(folder, SPEC, record, untracked, has_run_trials=ran)


@pytest.mark.parametrize("name", ["plain", "with space", "what?", "a&b;c", "it's", "$HOME", "*"])
@pytest.mark.parametrize("inside", [True, False], ids=["relative", "absolute"])
def test_the_next_command_names_the_file_for_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, inside: bool
) -> None:
    if inside:
        monkeypatch.chdir(tmp_path)
    (line,) = (line for line in run_end_lines(complete(tmp_path / name)) if line.startswith("next: "))
    study, train, path, *_ = shlex.split(line.removeprefix("next: "))
    assert (study, train) == ("study", "train")
    assert Path(path).is_absolute() != inside
    assert Path(path).is_file()


def test_the_next_command_names_a_study_of_the_home_that_commands_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    assert "next: study train quickstart" in run_end_lines(complete(tmp_path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([], "study predict people-final TABLE.csv [--id COLUMN] -o classes.csv"),
        (["data.group=ward of"], "study predict people-final TABLE.csv --id 'ward of' -o classes.csv"),
    ],
)
def test_the_command_that_predicts_names_the_rows_as_the_table_does(
    tmp_path: Path, changes: list[str], said: str
) -> None:
    header, *rows = people(tmp_path / "people.csv").read_text().splitlines()
    wards = [f"{row},ward {number % 40}" for number, row in enumerate(rows)]
    (tmp_path / "people.csv").write_text("\n".join([f"{header},ward of", *wards]))
    (tmp_path / "people.yaml").write_text(TABLE.replace("PATH", str(tmp_path / "people.csv")))
    final = final_training_spec(load_study(str(tmp_path / "people.yaml"), changes), [3])
    assert predict_command(final) == said
    assert predict_command(final_training_spec(SPEC, [3])) == "study predict quickstart-final INPUTS -o classes.csv"


@pytest.mark.parametrize("refused", ["thresholds of each group", "rows of a table that comes with its encoding"])
def test_where_predict_is_refused_what_works_is_proposed(tmp_path: Path, refused: str) -> None:
    """Hardt's postprocessing needs the group of whom it judges; of COMPAS a model's files keep no encoding."""
    people(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(TABLE.replace("PATH", str(tmp_path / "people.csv")))
    postprocessed = str(tmp_path / "people.yaml"), ["method.name=equalized_odds_postprocessing"]
    file, changes = postprocessed if refused.startswith("thresholds") else ("compas_wcl", [])
    final = final_training_spec(load_study(file, changes, one_trial=True), [3], "mine")
    folder = Home(tmp_path / "home").create_study(final)
    write_ledger(folder.ledger_file, Told("final", [0.5], seed=3))
    append_event(folder.ledger_file, "closed", state="complete")
    lines = run_end_lines(RunEnd(folder, final, StudyRecord.load(folder.ledger_file), None))
    assert "next: study evaluate mine --split test" in lines
    assert not [line for line in lines if "study predict" in line]
    *_, last = report_lead_statements(Results(final, StudyRecord.load(folder.ledger_file)))["Next"]
    assert str(last) == "To measure it, with --data FILE on other data: study evaluate mine --split test"


@pytest.mark.parametrize(
    ("untracked", "ran", "status"),
    [(None, True, 0), (None, False, 0), ("it is slow", True, 1), ("it is slow", False, 1)],
)
def test_a_run_and_a_resume_end_with_one_status_where_mlflow_lacks_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], untracked: str | None, ran: bool, status: int
) -> None:
    end = complete(tmp_path, untracked, ran=ran)
    if status:
        with pytest.raises(typer.Exit) as stopped:
            show_run_end(end)
        assert stopped.value.exit_code == status
    else:
        show_run_end(end)
    assert ("not everything is in MLflow: it is slow" in capsys.readouterr().out) == bool(untracked)


@pytest.mark.parametrize("uri", [None, "http://somebody:secret@127.0.0.1:5000"])
def test_a_job_names_no_path_of_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str | None) -> None:
    """Its log is read elsewhere; of MLflow it names a server's page, and no `study ui` of another machine."""
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    if uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    lines = run_end_lines(complete(tmp_path))
    assert not any(str(tmp_path) in line or "study ui" in line or "secret" in line for line in lines)
    assert any(line.startswith("MLflow UI  http://127.0.0.1:5000/#/") for line in lines) is bool(uri)
    assert "next: study train quickstart" in lines


@pytest.mark.parametrize(
    ("baseline", "best", "said"),
    [
        (
            (0.8, 0.81, 0.82),
            (0.6, 0.62, 0.61),
            ["next: keep the baseline, which best.yaml holds", "or:   study train "],
        ),
        (
            (0.8, 0.81, 0.82),
            (0.8, 0.81, 0.82),
            ["next: keep the baseline, which best.yaml holds", "or:   study train "],
        ),
        ((0.6, 0.7, 0.8), (0.8, 0.7, 0.65), ["next: study train ", "or:   keep the baseline, as the best may be no"]),
        ((0.6, 0.61, 0.62), (0.8, 0.82, 0.81), ["next: study train "]),
    ],
    ids=["worse", "equal", "not told apart", "better"],
)
def test_a_study_that_gained_nothing_says_to_keep_the_baseline(
    tmp_path: Path, baseline: tuple[float, ...], best: tuple[float, ...], said: list[str]
) -> None:
    spec = quickstart("search.confirm={top: 1, seeds: 3}")
    folder = Home(tmp_path).create_study(spec)
    other = {"method.alpha": 0.5, "method.lambda": 0.5, "method.epsilon": 0.1}
    fresh = [
        Told("confirm", [value], params=params, seed=seed, repeats=of)
        for of, (params, values) in enumerate([(PARAMS, baseline), (other, best)])
        for seed, value in enumerate(values, 1)
    ]
    told = [Told("baseline", [0.5], params=PARAMS), Told("search", [0.5], params=other), *fresh]
    write_ledger(folder.ledger_file, *told)
    append_event(folder.ledger_file, "closed", state="complete")
    record = StudyRecord.load(folder.ledger_file)
    export_best(folder, Results(spec, record), folder.best_file)
    export_best(folder, Results(spec, record), tmp_path / "baseline.yaml", CandidateSelection(trial=0))
    is_said = "the search found nothing better" in (tmp_path / "baseline.yaml").read_text()
    assert is_said == ("which best" in said[0]), "of the baseline in a file of its own, too"
    lines = run_end_lines(RunEnd(folder, spec, record, None))
    found = [line for line in lines if line.startswith(("next: ", "or:   "))]
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True)), found
    assert ("Keep the baseline: the search found nothing better." in " ".join(lines)) == ("which best" in said[0])


def failed(home: Path, state: str, *trials: Told, limit: int = 1) -> RunEnd:
    """A study that ended with trials that failed; `limit`: configurations that its search tries."""
    spec = quickstart("search.confirm={top: 0, seeds: 2}", f"search.trials={limit}")
    folder = Home(home).create_study(spec)
    write_ledger(folder.ledger_file, *trials)
    append_event(folder.ledger_file, "closed", state=state)
    record = StudyRecord.load(folder.ledger_file)
    return RunEnd(folder, spec, record, None)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (1, ["once its cause is mended: study resume quickstart --failed"]),
        (
            2,
            [
                "once its cause is mended: study resume quickstart --failed",
                "without what failed: study resume quickstart",
            ],
        ),
    ],
)
def test_a_study_that_failed_says_how_what_failed_runs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: int, said: list[str]
) -> None:
    end = failed(tmp_path, "failed", Told("baseline", [], "failed", params=PARAMS), limit=limit)
    with pytest.raises(typer.Exit) as stopped:
        show_run_end(end)
    assert stopped.value.exit_code == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[-len(said) :] == said
    assert not any(line.startswith("go on with it") for line in shown)
    if limit == 1:
        with pytest.raises(UserError, match=r"has failed, and all that is left is what failed. .* --failed"):
            resume.resume_study(Home(tmp_path), "quickstart", lambda *_: nullcontext(str))


def test_what_failed_waits_for_the_driver_where_it_is_to_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, states = failed(tmp_path, "failed", Told("baseline", [], "failed", params=PARAMS)).folder, []

    def session(*_: object) -> None:
        states.append(StudyRecord.load(folder.ledger_file).trials[0].state)
        raise StudyStoppedError("far enough")

    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    monkeypatch.setattr(resume, "run_session", session)
    assert answer("resume", "quickstart", "--failed").err == "error: far enough\n"
    assert states == ["waiting"]


def test_a_complete_study_says_what_of_it_failed(tmp_path: Path) -> None:
    fine, lost = Told("search", [0.5], params=PARAMS), Told("baseline", [], "failed", params=PARAMS)
    end = failed(tmp_path, "complete", lost, fine, limit=2)
    export_best(end.folder, Results(end.spec, end.record), end.folder.best_file)
    lines = run_end_lines(end)
    (told,) = (place for place, line in enumerate(lines) if line.startswith("failed     the baseline, "))
    assert lines[told + 1] == "           once its cause is mended: study resume quickstart --failed"
