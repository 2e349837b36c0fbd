"""Reading a cluster's studies, and fetching one: what is brought, what is refused, and what is told then."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from heads import TOKEN, StandIn, job, stand_in
from helpers import Told, append_event, quickstart, write_ledger

from study.cluster.dashboard import DashboardUnreachableError, dashboard_unreachable_error
from study.cluster.driver_job import DriverJob
from study.cluster.log_share import StudyLogShare
from study.commands import fetch as fetching
from study.commands.final_training import final_training_spec, find_model_files
from study.commands.remote_studies import RemoteStudies, driver_end_lines, export_from_cluster
from study.errors import UserError
from study.home.folder import Home, StudyFolder, read_fetch_origin
from study.spec import StudySpec, load_study
from study.upstream.ray_token import MIN_TOKEN_CHARACTERS


class There:
    """A cluster with a study that its driver is at, and a laptop."""

    def __init__(self, folder: Path, head: StandIn, spec: StudySpec) -> None:
        self.study = Home(folder / "cluster").create_study(spec)
        searched = [Told("baseline", [0.5]), Told("search", [0.7, 0.8], "running")]
        trained = [Told("final", [0.5, 0.6], "complete", seed=seed) for seed in spec.final_seeds or ()]
        write_ledger(self.study.ledger_file, *(trained or searched))
        (self.study.path / "models").mkdir()
        (self.study.path / "models/trial-00001.safetensors").write_bytes(b"weights")
        self.share, self.head, self.home = StudyLogShare(self.study, head.logs), head, Home(folder / "laptop")
        self.share.create_share()
        head.jobs.append(job("mine"))

    def add(self, folder: StudyFolder, state: str = "interrupted") -> None:
        append_event(folder.ledger_file, "closed", state=state)
        self.share.renew_manifest()

    def fetch(self, **options: object) -> fetching.FetchOutcome:
        return fetching.fetch_study(self.home, "mine", self.head.address, **options)  # type: ignore[arg-type]


@pytest.fixture
def there(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    for name, value in {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "laptop"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")  # the cluster's, say: fetch leaves it alone
    (tmp_path / "logs").mkdir()
    with stand_in(tmp_path / "logs") as head:
        yield There(tmp_path, head, getattr(request, "param", quickstart("name=mine")))


def test_a_study_that_runs_is_read_as_such(there: There) -> None:
    told = RemoteStudies(there.head.address).status("mine")
    assert (told.job.state, told.study.summary.state) == ("running", "running")
    assert told.cluster["nodes"] == 1
    (row,) = RemoteStudies(there.head.address).list_rows()
    assert (row["name"], row["job"], row["trials"]) == ("mine", "running", {"running": 1, "complete": 1})
    assert there.home.list_studies() == []


def test_a_driver_that_has_made_no_study_yet(there: There) -> None:
    there.head.jobs.append(job("late", "PENDING", node=None))
    told = RemoteStudies(there.head.address).status("late")
    assert told.study is None
    assert "its driver has not made it yet (study-late, pending)" in told.reason
    assert [row["state"] for row in RemoteStudies(there.head.address).list_rows()] == ["running", "pending"]


def test_a_name_that_is_not_there(there: There) -> None:
    with pytest.raises(UserError, match=r"mime: no such study at .* Did you mean 'mine'"):
        RemoteStudies(there.head.address).update_home(["mime"])


def test_a_study_is_fetched_and_then_what_is_new(there: There) -> None:
    done = there.fetch()
    assert done.files == ["ledger.jsonl", "study.yaml"]
    assert done.origin.was_running
    assert "models" not in " ".join(fetching.fetch_outcome_lines(done)), "nobody asked for them"
    assert any("it runs at" in line for line in fetching.fetch_outcome_lines(done))
    assert there.home.find_study("mine").load_spec().hash == there.study.load_spec().hash
    there.add(there.study)
    there.head.jobs[0]["status"] = "STOPPED"
    done = there.fetch(models=True)
    assert done.files == ["ledger.jsonl", "models/trial-00001.safetensors"]
    assert "models: 1 new, 1 in all" in fetching.fetch_outcome_lines(done)
    assert "models: 0 new, 1 in all" in fetching.fetch_outcome_lines(there.fetch(models=True))
    assert there.fetch().files == []
    assert (done.origin.was_running, done.n_own_events) == (False, 0)


@pytest.mark.parametrize(
    "there", [final_training_spec(quickstart(), [0, 1], "mine")], indirect=True, ids=["final training"]
)
def test_where_models_stayed_there_it_is_said_how_they_come(there: There) -> None:
    (told,) = [line for line in fetching.fetch_outcome_lines(there.fetch()) if "its models" in line]
    assert told.endswith(f"study fetch mine --address {there.head.address} --models")
    for seed in (None, 1):
        with (
            pytest.raises(UserError, match=r"on the cluster that it was fetched from.*study fetch mine .*--models$"),
            find_model_files(there.home, "mine", seed),
        ):
            pass


def test_a_fetch_that_breaks_off_leaves_no_study_and_goes_on(there: There) -> None:
    there.head.cut = 700
    with pytest.raises(UserError, match=r"ledger\.jsonl broke off"):
        there.fetch()
    assert there.home.list_studies() == []
    there.head.cut = None
    there.fetch()
    assert [folder.name for folder in there.home.list_studies()] == ["mine"]
    assert not [path for path in there.home.path.iterdir() if path.name.startswith(".mine")]


def test_a_study_without_models_is_fetched_with_them(there: There) -> None:
    shutil.rmtree(there.study.models_folder)
    there.share.renew_manifest()
    assert "models: it has none" in fetching.fetch_outcome_lines(there.fetch(models=True))


def test_another_name_here(there: There) -> None:
    there.fetch(rename="theirs")
    assert there.home.find_study("theirs").load_spec().name == "theirs"
    there.add(there.study)
    assert there.fetch(rename="theirs").files == ["ledger.jsonl", "study.yaml"]


def test_another_study_of_that_name_is_refused(there: There) -> None:
    there.home.create_study(quickstart("name=mine"))
    with pytest.raises(UserError, match=r"another study of that name is in .*, it was not fetched.*--name mine-2"):
        there.fetch()


def test_a_home_that_the_cluster_has_too_needs_no_fetch(there: There, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of `study cluster up`: the study is the same, whatever has run of it."""
    there.home = Home(there.study.path.parent)
    there.add(there.study)
    done = there.fetch()
    assert (done.files, read_fetch_origin(there.study)) == ([], None)
    assert "is this very study" in fetching.fetch_outcome_lines(done)[0]
    assert there.fetch(rename="beside").folder.ledger_file.read_bytes() == there.study.ledger_file.read_bytes()


def test_what_a_study_there_chose_is_trained_by_its_name(there: There) -> None:
    address = there.head.address
    with pytest.raises(UserError, match=r"mine: is running on the cluster, not complete. .* study export mine -o best"):
        export_from_cluster(address, "mine")
    there.add(there.study, "complete")
    file = export_from_cluster(address, "mine")
    assert file is not None
    origin = load_study(str(file), one_trial=True).origin
    assert origin is not None
    assert (origin["study"], origin["trial"]) == ("mine", 0)
    with pytest.raises(UserError, match="other: no such study"):
        export_from_cluster(address, "other")
    assert there.home.list_studies() == []


@pytest.mark.parametrize(
    "there", [final_training_spec(quickstart(), [0, 1], "mine")], indirect=True, ids=["final training"]
)
def test_a_final_training_there_has_chosen_nothing(there: There) -> None:
    assert export_from_cluster(there.head.address, "mine") is None


def test_an_address_of_the_shell_whose_cluster_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "http://127.0.0.1:1"
    assert "STUDY_ADDRESS" not in str(dashboard_unreachable_error(address))
    monkeypatch.setenv("STUDY_ADDRESS", address)
    assert str(dashboard_unreachable_error(address)).endswith("if its cluster is down: unset STUDY_ADDRESS")


def test_what_went_on_here_is_not_lost(there: There) -> None:
    there.add(there.study)
    folder = there.fetch().folder
    there.add(folder, "failed")
    assert there.fetch().n_own_events == 1
    there.add(there.study, "failed")
    there.add(there.study)
    before = folder.ledger_file.read_bytes()
    with pytest.raises(UserError, match=r"mine: has events of its own .* --name mine-2"):
        there.fetch()
    assert folder.ledger_file.read_bytes() == before


def test_a_study_that_runs_there_does_not_go_on_here(there: There) -> None:
    folder = there.fetch().folder
    with pytest.raises(UserError, match=r"mine: runs at .* study stop mine --address .*study fetch mine"):
        fetching.check_not_running_at_origin(folder)
    there.head.jobs[0]["status"] = "STOPPED"
    fetching.check_not_running_at_origin(folder)
    there.head.jobs.clear()  # nothing known there: what was told when it was fetched counts
    with pytest.raises(UserError, match="runs at"):
        fetching.check_not_running_at_origin(folder)


def test_when_the_head_has_gone_what_is_known_is_told(there: There, capsys: pytest.CaptureFixture[str]) -> None:
    RemoteStudies(there.head.address).status("mine")
    there.head.gone = True
    for ask in (lambda e: e.status("mine"), lambda e: e.list_rows()):
        with pytest.raises(DashboardUnreachableError) as told:
            ask(RemoteStudies(there.head.address))
        for words in ("no Ray dashboard answers", "mine was running on ", "study report mine --address "):
            assert words in str(told.value)
        assert f"{there.study.path}/ledger.jsonl on " in str(told.value)
        assert "study submit" in str(told.value)
    assert RemoteStudies(there.head.address).update_home(["mine"]).find_study("mine").load_spec().name == "mine"
    assert "mine: as it was on " in capsys.readouterr().err


def test_a_head_that_was_started_anew(there: There) -> None:
    RemoteStudies(there.head.address).status("mine")
    there.head.jobs.clear()
    with pytest.raises(UserError, match=r"does not know mine: a restarted head has .* mine was running on "):
        RemoteStudies(there.head.address).status("mine")
    (row,) = RemoteStudies(there.head.address).list_rows()
    assert (row["name"], row["job"], row["state"]) == ("mine", None, "running")


@pytest.mark.parametrize("token", ["w" * 32, "short"])
def test_a_token_that_is_not_the_clusters(there: There, tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text(token)
    for ask in (lambda: RemoteStudies(there.head.address).status("mine"), there.fetch):
        with pytest.raises(UserError, match="refuses the token, or none was given"):
            ask()
    assert not there.home.path.exists()
    assert len("short") < MIN_TOKEN_CHARACTERS


def test_a_head_of_another_ray(there: There) -> None:
    there.head.ray = "1.13.0"
    with pytest.raises(UserError, match=r"runs Ray 1\.13\.0, which has no /api/jobs/; here is Ray "):
        there.fetch()


def test_reading_loads_no_ray(there: There) -> None:
    if "ray" not in sys.modules:  # of another test in this process
        RemoteStudies(there.head.address).status("mine")
        assert "ray" not in sys.modules


def test_the_end_of_a_job_names_the_address_unless_the_shell_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "http://127.0.0.1:8265"
    ended = DriverJob("study-mine", "mine", "hash", 1, "succeeded", "", 1.0, 2.0, "python", {})
    assert driver_end_lines(address, ended)[-1].endswith(f"or once: export STUDY_ADDRESS={address}")
    monkeypatch.setenv("STUDY_ADDRESS", f"{address}/")
    assert driver_end_lines(address, ended)[-1] == "Commands that the log proposes take the address from STUDY_ADDRESS"
