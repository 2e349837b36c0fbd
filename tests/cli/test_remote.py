"""What is computed on a cluster elsewhere: the job that a command makes of its arguments, how a followed one ends."""

import json
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from answers import answer
from elsewhere import SPEC, THERE, URL, Jobs, as_it_is_there, replaced
from helpers import quickstart

from study.commands import remote_studies
from study.commands.export_configurations import export_best
from study.commands.final_training import final_training_spec
from study.errors import StudyNotFoundError, StudyStoppedError, UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Jobs]:
    return replaced(monkeypatch, tmp_path)


def typed(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    return astuple(answer(*arguments))


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["resume", "mine"], ["resume", "mine"]),
        (["resume", "mine", "--trials", "+50", "-q"], ["resume", "mine", "--trials", "+50", "--quiet"]),
        (["confirm", "mine", "--top", "2", "--seeds", "3"], ["confirm", "mine", "--top", "2", "--seeds", "3"]),
        (["confirm", "mine", "--rules"], ["confirm", "mine", "--rules"]),
        (
            ["ablate", "mine", "--seeds", "2", "--knobs", "method.alpha", "--order", "method.lambda"],
            ["ablate", "mine", "--seeds", "2", "--knobs", "method.alpha", "--order", "method.lambda"],
        ),
    ],
)
def test_a_study_goes_on_by_another_driver(cluster: type[Jobs], arguments: list[str], command: list[str]) -> None:
    status, out, err = typed(*arguments, *THERE)
    assert (status, err) == (0, "")
    ((job, words, metadata, environment, spec),) = cluster.started
    assert (job, spec, environment) == ("study-mine-4", None, {"KEY": "value"})
    assert words == [*command[:2], "--address", "auto", *command[2:]]
    told = {"study": "mine", "spec": "hash", "number": "4", "python": "python3", "kind": "study"}
    assert metadata == told
    assert f"study logs mine -f --address {URL}" in out


@pytest.mark.parametrize("command", [["resume"], ["confirm"], ["ablate"], ["delete", "--yes"]])
def test_nothing_is_begun_beside_a_driver_that_runs(
    cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr(cluster, "state", "running")
    status, out, err = typed(command[0], "mine", *command[1:], *THERE)
    assert (status, out, cluster.started) == (2, "", [])
    assert err == f"error: mine: runs (study-mine-3). Stop it first: study stop mine --address {URL}\n"


@pytest.mark.parametrize("command", ["resume", "confirm", "ablate"])
def test_a_name_that_is_not_there_is_told_with_those_that_are(cluster: type[Jobs], command: str) -> None:
    status, _, err = typed(command, "other", *THERE)
    assert (status, cluster.started) == (2, [])
    assert err.startswith(f"error: other: no such study at {URL}. There: mine.")


@pytest.mark.parametrize(
    ("state", "code", "status", "told"),
    [
        ("succeeded", 0, 0, f"study report mine --address {URL}"),
        ("failed", 1, 1, f"study resume mine --address {URL}"),
        ("failed", 2, 2, "mine: job study-mine-4 failed"),
        ("failed", 130, 130, f"study resume mine --address {URL}"),
        ("failed", -9, 1, f"study resume mine --address {URL}"),
        ("stopped", None, 130, f"study resume mine --address {URL}"),
    ],
)
def test_a_followed_driver_ends_with_its_own_exit_status_and_what_to_type(
    cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch, state: str, code: int | None, status: int, told: str
) -> None:
    def follow(self: Jobs, job: str) -> Iterator[str]:
        yield "a line\n"
        monkeypatch.setattr(cluster, "state", state)
        monkeypatch.setattr(cluster, "exit_code", code)

    monkeypatch.setattr(cluster, "follow_log", follow)
    found, out, err = typed("confirm", "mine", "--top", "1", "-f", *THERE)
    assert (found, err) == (status, "")
    assert "a line\n" in out
    assert told in out.splitlines()[-1] or told in out
    assert "study ui" not in out


def test_ctrl_c_detaches_and_says_how_to_follow_and_stop(cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(self: Jobs, job: str) -> Iterator[str]:
        yield "a line\n"
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, "follow_log", follow)
    status, out, _ = typed("resume", "mine", "--follow", *THERE)
    assert status == 130
    assert out.splitlines()[-2:] == [
        f"detached; mine goes on. Again: study logs mine -f --address {URL}",
        f"To stop it: study stop mine --address {URL}",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["resume", "mine", "-f"], "--follow: shows the log of a job"),
        (["confirm", "mine", "-f", "--address", "auto"], "--follow: shows the log of a job"),
        (["train", "quickstart", "-f", "--address", "local"], "--follow: shows the log of a job"),
        (["ablate", "mine", "-f", "--json", *THERE], "--json prints one document"),
        (["train", "none.yaml", *THERE], "none.yaml"),
        (["train", "quickstart", "--seeds", "1,1", *THERE], "--seeds 1,1"),
    ],
)
def test_what_makes_no_sense_there_is_one_message(cluster: type[Jobs], arguments: list[str], told: str) -> None:
    status, out, err = typed(*arguments)
    assert (status, out, cluster.started) == (2, "", [])
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert told in err


def test_a_configuration_travels_to_its_training(cluster: type[Jobs], tmp_path: Path) -> None:
    """With overrides applied; with interpreter and variables of the study that it comes from, and a name of its own."""
    given = ["train", "quickstart", "--name", "mine-final", "--seeds", "6,7", "--epochs", "40"]
    status, out, err = typed(*given, "--set", "method.alpha=0.5", "--data", "train+val", *THERE)
    assert (status, err) == (0, "")
    ((job, words, metadata, environment, spec),) = cluster.started
    assert (job, environment) == ("study-mine-final", {"STUDY_OWNER": "somebody"})
    assert words[:4] == ["train", "job-study.yaml", "--name", "mine-final"]
    assert words[4:] == ["--seeds", "6,7", "--data", "train+val", "--address", "auto"]
    assert (metadata["study"], metadata["number"], metadata["kind"]) == ("mine-final", "1", "final")
    assert spec is not None
    assert (spec.base["train"]["epochs"], spec.base["method"]["alpha"]) == (40, 0.5)
    assert "study-mine-final" in out
    assert not (tmp_path / "home").exists()


def test_an_exported_configuration_needs_no_data_here(
    cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are there. What is changed by hand is refused all the same."""
    folder, best = as_it_is_there(tmp_path / "there"), tmp_path / "best.yaml"
    export_best(folder, Results(SPEC, StudyRecord.load(folder.ledger_file)), best)

    def describe(self: StudySpec, section: Any) -> Any:
        raise UserError("/data/photos: not found")

    monkeypatch.setattr(StudySpec, "facts_of_data", describe)
    status, _, err = typed("train", str(best), "--seeds", "6", "--epochs", "3", *THERE)
    assert (status, err) == (0, "")
    ((job, _, metadata, environment, spec),) = cluster.started
    assert (job, environment["KEY"], metadata["python"]) == ("study-mine-final", "value", "python3")
    assert isinstance(spec, StudySpec)
    assert (spec.base["train"]["epochs"], spec.origin and spec.origin["changed"]) == (3, ["train.epochs=3"])
    (tmp_path / "mine.yaml").write_text(SPEC.to_yaml(), encoding="utf-8")
    best.write_text(best.read_text(encoding="utf-8").replace("learning_rate: 0.001", "learning_rate: 0.1"))
    for file, told in (("mine.yaml", "/data/photos: not found"), ("best.yaml", "it was changed by hand")):
        status, _, err = typed("train", str(tmp_path / file), *THERE)
        assert (status, len(cluster.started)) == (2, 1)
        assert told in err


def test_a_studys_name_means_what_it_chose(cluster: type[Jobs], tmp_path: Path) -> None:
    """Also where a shipped file has the study's name."""
    folder = as_it_is_there(tmp_path / "home", "quickstart")
    export_best(folder, Results(folder.load_spec(), StudyRecord.load(folder.ledger_file)), folder.best_file)
    for given in ("quickstart", str(folder.best_file)):
        assert typed("train", given, "--seeds", "6", *THERE)[0] == 0
    by_name, by_file = (spec for *_, spec in cluster.started)
    assert isinstance(by_name, StudySpec)
    assert by_name.origin
    assert by_name.origin["study"] == "quickstart"
    assert by_name == by_file


def test_a_plan_of_an_ablation_starts_nothing(cluster: type[Jobs]) -> None:
    status, out, err = typed("ablate", "mine", "--dry-run", "--json", *THERE)
    assert (status, err, cluster.started) == (0, "", [])
    assert json.loads(out)["best"] == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["confirm", "--top", "9"], "--top 9: mine has 2 complete configurations"),
        (["ablate", "--knobs", "method.beta"], "--knobs method.beta"),
        (["resume", "--trials", "50"], "--trials 50: a number of additional trials is needed"),
    ],
)
def test_what_the_driver_would_refuse_is_refused_before_there_is_one(
    cluster: type[Jobs], arguments: list[str], told: str
) -> None:
    status, out, err = typed(arguments[0], "mine", *arguments[1:], *THERE)
    assert (status, out, cluster.started) == (2, "", [])
    assert err.startswith("error: ")
    assert told in err


def test_a_training_of_another_configuration_is_refused(
    cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    status, _, err = typed("train", "quickstart", "--name", "mine", *THERE)
    assert (status, cluster.started) == (2, [])
    assert err == f"error: mine: exists already in {URL} with another configuration. Give a --name\n"


def test_a_training_that_is_there_goes_on_with_its_seeds(
    cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = Home(tmp_path / "elsewhere").create_study(final_training_spec(quickstart(), [6, 7], "mine"))
    monkeypatch.setattr(remote_studies, "fetch_local_copy", lambda jobs, name: trained)
    assert typed("train", "quickstart", "--name", "mine", *THERE)[0] == 0
    command = cluster.started[-1][1]
    assert command[command.index("--seeds") + 1] == "6,7"
    assert typed("train", "quickstart", "--name", "new", *THERE)[0] == 0
    command = cluster.started[-1][1]
    assert command[command.index("--seeds") + 1] == "0,1,2"


def test_a_study_is_removed_there_and_its_jobs_with_it(cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "answers", {"delete": {"name": "mine", "deleted": True}})
    status, out, _ = typed("delete", "mine", "--yes", *THERE)
    assert (status, out) == (0, "mine: removed\n")
    assert cluster.started[0][1] == ["delete", "mine", "--yes", "--json"]
    assert cluster.forgotten == ["study-mine-3"]


@pytest.mark.parametrize(
    ("error", "status", "forgotten"),
    [
        (StudyNotFoundError("mine: no such study in /there"), 0, ["study-mine-3"]),
        (UserError("mine: its runs are still in MLflow"), 2, []),
        (StudyStoppedError("/there: No space left on device"), 1, []),
    ],
)
def test_jobs_stay_where_their_study_could_not_be_removed(
    cluster: type[Jobs], monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, forgotten: list[str]
) -> None:
    """Of a submission that never made a study they are all there is."""
    monkeypatch.setattr(cluster, "answers", {"delete": error})
    found, _, err = typed("delete", "mine", "--yes", *THERE)
    assert (found, cluster.forgotten) == (status, forgotten)
    assert err == (f"error: {error}\n" if status else "")
