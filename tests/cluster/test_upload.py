"""What a job takes along."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import quickstart

from study.cluster.job_client import SUBMITTED_STUDY_FILE, count_files_and_bytes, make_upload_folder
from study.errors import UserError
from study.spec import StudySpec, load_study


def test_the_code_the_study_files_and_the_study_and_nothing_else() -> None:
    spec = quickstart("search.trials=7")
    with make_upload_folder(spec) as folder:
        names = {path.name for path in folder.iterdir()}
        suffixes = {path.suffix for path in folder.rglob("*") if path.is_file()}
        hidden = [path for path in folder.rglob("*") if path.name.startswith((".", "__pycache__"))]
        again = load_study(str(folder / SUBMITTED_STUDY_FILE))
        files, taken = count_files_and_bytes(folder)
    assert names == {"study", "search_spaces", SUBMITTED_STUDY_FILE}
    assert suffixes == {".py", ".yaml", ".j2"}
    assert not hidden
    assert (again.hash, again.n_configurations) == (spec.hash, 7)
    assert files > 200
    assert taken < 5_000_000
    assert not folder.exists()


def test_data_that_would_not_be_found_there_are_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{n % 7},{n % 2}" for n in range(40)]
    for place in (tmp_path / "here" / "mine.csv", tmp_path / "data" / "shared.csv"):
        place.parent.mkdir()
        place.write_text("\n".join(["x,y", *rows]))
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "here")

    def spec(path: str) -> StudySpec:
        keys = ["model={name: linear}", "method={name: cross_entropy}", "search.space={}", "search.baseline=null"]
        of_table = f"data={{name: table, path: {path}, target: y}}"
        return quickstart(of_table, *keys, "search.alternatives={}", "search.metric=val/worst_class_accuracy")

    whole = str(tmp_path / "here" / "mine.csv")
    for allowed in ("shared.csv", whole):
        with make_upload_folder(spec(allowed)):
            pass
    with pytest.raises(UserError, match=f"--set data.path={whole}"), make_upload_folder(spec("mine.csv")):
        pass


def test_what_lies_about_is_left(tmp_path: Path) -> None:
    """Secrets, data and links beside the code stay where they are."""
    from study.cluster import job_client as module

    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "code.py").write_text("x = 1\n")
    for name in (".env", "token", "data.npz", "key.pem", ".hidden.py"):
        (source / name).write_text("secret")
    (source / "link.py").symlink_to("/etc/hostname")
    module._copy_package_code(source, tmp_path / "target")
    assert [path.name for path in (tmp_path / "target").rglob("*") if path.is_file()] == ["code.py"]


@pytest.mark.slow
def test_the_upload_runs_by_itself(tmp_path: Path) -> None:
    with make_upload_folder(quickstart()) as folder:
        command = [sys.executable, "-m", "study", "plan", SUBMITTED_STUDY_FILE, "--fast"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "study quickstart" in done.stdout
