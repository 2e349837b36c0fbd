"""Small inputs that misled, with what is right of each: `more_cases.py` of the cases beside the project, or of the
folder that `STUDY_CASES` names."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command
from typer.testing import CliRunner, Result

from study.cli import app

SCRIPT = Path(os.environ.get("STUDY_CASES", Path(__file__).parents[3] / "shared" / "cases")) / "more_cases.py"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="the cases are not beside the project")

REFUSED = {
    "gaps_tell.csv": ("status", "salary"),
    "nearly_the_class.csv": ("status", "copy"),
    "threshold.csv": ("status", "score"),
    "number_as_target.csv": ("rate", "data.target_bins"),
}
"""By file, the target that is named and what `init` has to name when nobody can be asked."""

DRAFTED = {
    "number_with_gaps.csv": ("id", "counts the rows"),
    "copies.csv": ("no", "have the inputs of another one"),
    "blanks.csv": ("missing", "numbers (2): x, z"),
}
"""By file, what `init` and `plan` have to name of a table that is drafted."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([sys.executable, SCRIPT, folder], check=True, timeout=120)
    return folder


def studied(*words: str) -> Result:
    return CliRunner().invoke(app, [*words], catch_exceptions=True)


def drafted(name: str, target: str) -> tuple[str, ...]:
    return ("init", Path(name).stem, "--data", name, "--target", target, "--bias", "sex", "--cpu")


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_misleads_is_refused_with_what_does_so(
    name: str, cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cases)
    target, named = REFUSED[name]
    done = studied(*drafted(name, target))
    assert done.exit_code != 0
    assert named in f"{done.output}{done.exception}"
    assert "slip" not in f"{done.output}{done.exception}"
    assert not Path(name).with_suffix(".yaml").exists()


@pytest.mark.parametrize("name", DRAFTED)
def test_what_was_made_of_a_table_is_said(name: str, cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cases)
    written = studied(*drafted(name, "status"))
    assert written.exit_code == 0, written.output
    planned = studied("plan", str(Path(name).with_suffix(".yaml")), "--fast")
    assert planned.exit_code == 0, planned.output
    said = " ".join(f"{written.output} {planned.output}".split())
    assert all(word in said for word in DRAFTED[name])


def test_pictures_whose_names_are_no_utf8_are_planned(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cases)
    written = studied("init", "names", "--data", "names", "--bias", "none", "--cpu")
    assert written.exit_code == 0, written.output
    assert studied("plan", "names.yaml", "--fast").exit_code == 0


def prepared(make_command: Callable[[], Command], cases: Path) -> Command:
    command = make_command()
    for path in cases.iterdir():
        if path.is_file():
            (command.work / path.name).write_bytes(path.read_bytes())
    return command


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_functions_leave_nothing_behind_and_fail_with_their_own_error(
    make_command: Callable[[], Command], cases: Path
) -> None:
    command = prepared(make_command, cases)
    for name in ("bits", "tidy"):
        command.done("run", f"{name}.yaml", "-q")
        _, record = command.load(name)
        assert record.trials_by_state()["complete"] == 2
    _, record = command.load("bits")
    bits = {trial.params["method.double"]: trial.reports[-1]["val/bits"] for trial in record.trials.values()}
    assert bits == {True: 64.0, False: 32.0}
    command("run", "surrogate.yaml", "-q")
    _, record = command.load("surrogate")
    assert {(trial.state, trial.attempt) for trial in record.trials.values()} == {("failed", 0)}
    assert all("ValueError: cannot read f" in (trial.reason or "") for trial in record.trials.values())


WORST = """\
name: worst_group
data: {name: table, path: worst_group.csv, target: state, bias: sex, split: split}
model: {name: mlp}
method: {name: cross_entropy}
train: {epochs: 8, batch_size: 32}
search: {space: {train.learning_rate: {choices: [0.001]}}, trials: 1, early_stopping: {name: none}}
"""
"""A plain loss, which no draft of a table is."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_group_that_nobody_gets_right_is_named_and_a_gap_that_is_not_defined_ends_nothing(
    make_command: Callable[[], Command], cases: Path
) -> None:
    command, short = prepared(make_command, cases), ("--set", "search.trials=3", "--set", "search.confirm.top=0")
    (command.work / "worst_group.yaml").write_text(WORST, encoding="utf-8")
    command.done("run", "worst_group.yaml", "-q")
    command.done("train", "home/worst_group/best.yaml", "--seeds", "3", "-q")
    evaluated = json.loads(command.done("evaluate", "worst_group-final", "--json"))
    assert "0 of 8 right" in command.done("evaluate", "worst_group-final")
    assert "0 of 8 right" in (command.folder("worst_group-final").model_card_file).read_text(encoding="utf-8")
    assert evaluated["worst_group"]
    command.done(*drafted("stages.csv", "stage"), "--method", "cross_entropy", "--set", "train.epochs=2")
    command.done("run", "stages.yaml", "-q", *short)
    command.done("train", "home/stages/best.yaml", "--seeds", "3", "-q")
    assert "not defined" in (command.folder("stages-final").model_card_file).read_text(encoding="utf-8")
