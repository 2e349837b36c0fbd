"""A disk that is full or fails is told by its own error, whatever writes and whatever a library makes of that."""

import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import Told, quickstart, record, write_ledger
from limits import full_disk
from ray import cloudpickle, exceptions
from torch import nn

from study.analysis.report.write_report import write_report
from study.commands.export_configurations import export_best
from study.data.cache import allocate_array_on_disk, load_or_build_dataset
from study.data.dataset import Facts, Split
from study.errors import StudyStoppedError, UserError, find_disk_error
from study.files import write_output
from study.home.events import NodeExcluded
from study.home.folder import Home
from study.home.ledger import Ledger
from study.ranking import Results
from study.tracking.connection import connect_to_mlflow, format_mlflow_error
from study.training.checkpoint import TrialCheckpointFile
from study.training.function_trial import FolderCheckpoint
from study.training.loop import TrainingLoop

ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def network() -> nn.Module:
    """Of 3.6 MB in eleven parts."""
    return nn.Sequential(*(nn.Linear(300, 300) for _ in range(10)))


def checkpoint(folder: Path) -> None:
    TrialCheckpointFile(folder / "state.pt", {}, {"net": network()}, {}).save_if_due(1)


def weights(folder: Path) -> None:
    nothing_fitted = SimpleNamespace(probe_tensors=dict)
    of_network = SimpleNamespace(_networks=network(), evaluate=nothing_fitted)
    TrainingLoop.save_model(of_network, folder / "one.safetensors")  # type: ignore[arg-type]


def kept_folder(folder: Path) -> None:
    (scratch := folder / "scratch").mkdir(exist_ok=True)
    os.truncate(scratch / "own" if (scratch / "own").exists() else touched(scratch / "own"), 50_000)
    FolderCheckpoint(folder / "state.zip", scratch, {}).save_folder_if_due(1, None)


def touched(path: Path) -> Path:
    path.touch()
    return path


def prepared(folder: Path) -> None:
    inputs = np.zeros((40_000, 1, 2, 2), np.uint8)
    split = Split(inputs, np.arange(40_000) % 3, np.arange(40_000) % 2)
    facts = Facts(classes=3, bias_classes=2, shape=(1, 2, 2), splits=("train",))
    load_or_build_dataset("one", {}, facts, lambda: {"train": split})


def nameless(folder: Path) -> None:
    allocate_array_on_disk((40_000, 4))


def ledger(folder: Path) -> None:
    if not (folder / "ledger.jsonl").exists():
        Ledger.create(folder / "ledger.jsonl")
    log = Ledger(folder / "ledger.jsonl")
    try:
        for _ in range(2000):
            log.append(NodeExcluded(node="a", reason="because"))
    finally:
        log.close()


def report(folder: Path) -> None:
    spec = quickstart()
    write_report(Results(spec, record(*(Told("search", [0.5], state="complete") for _ in range(4)))), folder / "report")


def best_file(folder: Path) -> None:
    home = Home(folder / "home")
    there = home.create_study(quickstart()) if not home.list_studies() else home.list_studies()[0]
    told = [Told("baseline", [0.4], state="complete"), Told("search", [0.5], state="complete")]
    write_ledger(there.ledger_file, *told)
    export_best(there, Results(quickstart(), record(*told)), folder / "best.yaml")


def table(folder: Path) -> None:
    write_output(folder / "table.csv", "1,2\n" * 10_000)


def home(folder: Path) -> None:
    Home(folder / "new").create_study(quickstart())


WRITERS: dict[str, tuple[Callable[[Path], None], list[int]]] = {
    "checkpoint": (checkpoint, [10_000, 500_000, 3_000_000, 3_610_000]),
    "weights": (weights, [10_000, 3_000_000]),
    "folder of a training function": (kept_folder, [0, 10]),
    "prepared data": (prepared, [0, 1000, 159_000, 161_000]),
    "images that do not fit into memory": (nameless, [0, 100_000]),
    "ledger": (ledger, [1000]),
    "report": (report, [0, 5000]),
    "table": (table, [0, 10_000]),
    "new study": (home, [0, 100]),
}
CASES = [
    pytest.param(name, largest, marks=pytest.mark.slow if name == "report" else ())
    for name, (_, sizes) in WRITERS.items()
    for largest in sizes
]


@pytest.mark.parametrize(("name", "largest"), CASES)
def test_a_writer_says_that_the_disk_is_full_and_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, largest: int
) -> None:
    """A limit on the size of files stands for the full disk. Later, with room, the same is written."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    write = WRITERS[name][0]
    with full_disk(largest), pytest.raises(OSError, match="File too large") as full:
        write(tmp_path)
    assert full.value.errno == errno.EFBIG
    assert find_disk_error(cloudpickle.loads(cloudpickle.dumps(full.value))) is not None, (
        "as it comes from a trial's process"
    )
    assert str(full.value.filename or tmp_path).startswith(str(tmp_path))
    assert not list(tmp_path.rglob("*.part*"))
    write(tmp_path)


@pytest.mark.parametrize("number", ERRNOS)
def test_an_error_of_the_disk_is_found_behind_what_was_made_of_it(number: int) -> None:
    told = OSError(number, os.strerror(number), "/home/of/studies")
    of_ray = exceptions.RayTaskError("train", "Traceback ...", told).as_instanceof_cause()
    found = find_disk_error(cloudpickle.loads(cloudpickle.dumps(of_ray)))
    assert found is not None
    assert (found.errno, found.filename) == (number, "/home/of/studies")
    by_cause, by_context = RuntimeError("write failed"), RuntimeError("unexpected pos 64 vs 0")
    by_cause.__cause__ = by_context
    by_context.__context__ = told
    assert find_disk_error(by_cause) is told
    told.__context__ = by_cause  # a ring
    assert find_disk_error(by_context) is told


def test_data_for_which_ray_has_no_room_are_the_disks() -> None:
    told = exceptions.RayTaskError("train", "Traceback ...", exceptions.OutOfDiskError("full")).as_instanceof_cause()
    found = find_disk_error(cloudpickle.loads(cloudpickle.dumps(told)))
    assert found is not None
    assert (found.errno, found.filename) == (errno.ENOSPC, tempfile.gettempdir())


@pytest.mark.parametrize(
    "error", [OSError(errno.EACCES, "no"), ValueError(), UserError("no room"), StudyStoppedError("stop")]
)
def test_other_errors_are_not_the_disks(error: Exception) -> None:
    error.__context__ = error
    assert find_disk_error(error) is None


def test_what_a_full_disk_makes_of_a_database_is_the_disks(tmp_path: Path) -> None:
    """SQLite's own error, and what MLflow raises of it: one line that names the file, and nothing is logged."""
    database = sqlite3.connect(tmp_path / "plain.db", isolation_level=None)
    with closing(database), full_disk(5000), pytest.raises(sqlite3.OperationalError) as raised:
        database.execute("CREATE TABLE one AS SELECT hex(randomblob(50000))")
    assert find_disk_error(raised.value) is not None


@pytest.mark.slow
def test_mlflow_without_room_is_one_line(
    empty_database: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "mlflow.db"
    database.write_bytes(empty_database.read_bytes())
    client = connect_to_mlflow(f"sqlite:///{database}")
    client.create_experiment("before")
    with full_disk(0), pytest.raises(Exception, match="disk") as raised:
        client.create_experiment("after")
    line = format_mlflow_error(raised.value, f"sqlite:///{database}")
    assert line.startswith(f"{database}: ")
    assert line.count("\n") == 0
    assert line.endswith(("Make room there", "See that it can be written again"))
    assert capfd.readouterr().err == ""
