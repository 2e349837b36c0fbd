"""The share of a study: what it shows, and to whom it does not lead."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, quickstart, write_ledger

from study.cluster import log_share as shares
from study.cluster.log_share import StudyLogShare, remove_shares_of_missing_studies
from study.errors import UserError
from study.home.events import SessionClosed
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    folder = Home(tmp_path / "home").create_study(quickstart("name=mine"))
    write_ledger(folder.ledger_file, Told("baseline", [0.5]))
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    return logs


def manifest(logs: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((logs / "study/mine/manifest.json").read_text())
    return told


def test_it_leads_to_the_study_and_tells_its_files_with_their_digests(folder: StudyFolder, logs: Path) -> None:
    """Of what is to be brought: no checkpoint, no pickle, nothing that is being written, no link."""
    folder.write_traceback(3, "a traceback")
    for name in (
        "checkpoints/trial-00000.pt",
        "function.pkl",
        "report/.page.part",
        "report/page.html",
        "tracking.json",
    ):
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text("text")
    (folder.path / "report" / "link").symlink_to("/etc/hostname")
    StudyLogShare(folder, logs).create_share()
    told = manifest(logs)
    assert {*told["files"]} == {"study.yaml", "ledger.jsonl", "errors/trial-00003.txt", "report/page.html"}
    for name, file in told["files"].items():
        data = (logs / "study/mine/folder" / name).read_bytes()
        assert file == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert (told["folder"], told["name"]) == (str(folder.path), "mine")


def test_of_a_ledger_its_whole_lines_are_told_as_it_grows(folder: StudyFolder, logs: Path) -> None:
    share = StudyLogShare(folder, logs)
    share.create_share()
    ledger = Ledger(folder.ledger_file)
    ledger.append(SessionClosed(state="interrupted"))
    ledger.close()
    whole = folder.ledger_file.read_bytes()
    with folder.ledger_file.open("ab") as file:
        file.write(b'{"event":"opened","half')
    share.renew_manifest()
    told = manifest(logs)["files"]["ledger.jsonl"]
    assert told == {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}


def test_the_shares_of_studies_that_are_no_more_go(folder: StudyFolder, logs: Path) -> None:
    StudyLogShare(folder, logs).create_share()
    remove_shares_of_missing_studies(logs / "study")
    assert (logs / "study/mine/manifest.json").exists()
    shutil.rmtree(folder.path)
    remove_shares_of_missing_studies(logs / "study")
    assert not (logs / "study/mine").exists()


def test_only_its_user_can_enter_it(folder: StudyFolder, logs: Path) -> None:
    (logs / "study").mkdir(mode=0o777)
    StudyLogShare(folder, logs).create_share()
    modes = [path.stat().st_mode & 0o777 for path in (logs / "study", logs / "study/mine")]
    assert [*modes, (logs / "study/mine/manifest.json").stat().st_mode & 0o777] == [0o700, 0o700, 0o600]


def test_a_place_that_somebody_else_made_is_not_used(folder: StudyFolder, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (logs / "study").symlink_to(tmp_path / "theirs")
    with pytest.raises(UserError, match="is not this user's own folder"):
        StudyLogShare(folder, logs).create_share()
    assert not os.listdir(tmp_path / "theirs")


def test_a_study_runs_where_it_cannot_be_shown(
    folder: StudyFolder, logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (logs / "study").write_text("a file")
    monkeypatch.setattr(shares, "job_logs_folder", lambda: logs)
    with shares.share_study_while_running(folder):
        pass
    assert "cannot be read from outside the cluster" in capsys.readouterr().out
