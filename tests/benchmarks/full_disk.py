"""A home whose disk is full at some moment of a study: the same study at many levels of room, then resumed.

    uv run python tests/benchmarks/full_disk.py                   120 levels, up to what the study writes; needs root
    uv run python tests/benchmarks/full_disk.py --levels 12       fewer

The study is one of a training function that keeps a state, with fresh seeds, early stopping, MLflow and a report. The
home is on a file system of memory, which is filled but for so many bytes; levels are denser below, where trials run,
than above, where the report is written, and come in a drawn order. At each level the study has to come to its
end, or to stop with one message and status 1 and no failed trial; with room again it has to end as one that was not
disturbed, in the ledger, in MLflow and in its files. Prints what held at each level, and where it stopped; fails where
something did not hold. All studies share one Ray.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from ended import assert_nothing_was_lost  # noqa: E402 (its folder is not a package)
from helpers import computed  # noqa: E402
from rich.console import Console  # noqa: E402
from runs import Runs  # noqa: E402

from study import cli  # noqa: E402
from study.analysis.figures import FIGURES  # noqa: E402
from study.api.running import function_study  # noqa: E402
from study.commands import run, sitting  # noqa: E402
from study.commands.progress_view import ProgressView  # noqa: E402
from study.errors import UserError  # noqa: E402
from study.home.folder import Home  # noqa: E402
from study.home.record import StudyRecord  # noqa: E402
from study.sweep.shared_ray import SharedRay  # noqa: E402
from study.tracking.opening import open_mlflow  # noqa: E402

NAME, SIZE = "disk", 1 << 30
VIEW = ProgressView(Console(file=StringIO()), quiet=True)


def train(config: dict[str, Any], seed: int, epochs: int, checkpoint: Path) -> Iterator[dict[str, float]]:
    """Nears a value, with a state of 40 kB."""
    file = checkpoint / "state"
    done = json.loads(file.read_text())["epoch"] if file.exists() else 0
    for epoch in range(done + 1, epochs + 1):
        luck = random.Random(f"{config['x']} {seed} {epoch}").gauss(0, 0.01)
        file.write_text(json.dumps({"epoch": epoch, "rest": "x" * 40_000}))
        value = (0.9 - (config["x"] - 0.7) ** 2) * (1 - 0.5**epoch) + luck
        yield {"val/accuracy": value, "test/accuracy": value - 0.02}


def study(home: Home) -> str:
    """Start it, or go on with it; what came of it: `complete`, `MLflow`, or the message that a user gets."""
    given = {"name": NAME, "metric": "val/accuracy", "maximize": None, "epochs": 3, "fixed": {}}
    changes = ["search.trials=5", "search.sampler=random", "search.confirm={top: 1, seeds: 2}"]
    changes += ["search.early_stopping={name: asha, grace: 1, reduction: 2}", "search.concurrency=1"]
    spec, function = function_study(train, space={"x": (0.0, 1.0)}, baseline={"x": 0.1}, assignments=changes, **given)
    try:
        there = [folder.name for folder in home.studies()]
        end = run.resume(home, NAME, VIEW) if there else run.start(home, spec, VIEW, function=function)
    except UserError as error:
        if "there is nothing to go on with" in str(error):
            return "complete"
        raise
    except Exception as error:
        expected = cli._expected(error)
        if expected is None or expected[1] != 1 or "\n" in expected[0]:
            raise
        return expected[0]
    assert end.record.state == "complete", end.record.state
    return "MLflow" if end.untracked else "complete"


@contextmanager
def disk() -> Iterator[Path]:
    """A file system of memory."""
    with tempfile.TemporaryDirectory(prefix="study-full-") as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def used(home: Home) -> int:
    """Bytes of its files, in pages."""
    return sum(-(-path.lstat().st_size // 4096) * 4096 for path in home.path.rglob("*") if path.is_file())


def level(place: Path, empty: Path, room: int, expected: list[dict[str, Any]]) -> str:
    """Where the study stopped with so much room, by the file; raises where something did not hold."""
    home = Home(place / f"home-{room}")
    home.path.mkdir()
    shutil.copy(empty, home.database)
    filler = place / "filler"
    with filler.open("wb") as file:
        left = shutil.disk_usage(place).free - room
        while left > 0:
            left -= file.write(b"x" * min(left, 1 << 20))
    told = study(home)
    folders = home.studies()
    if folders:
        states = {trial.state for trial in StudyRecord.load(folders[0].ledger_file).trials.values()}
        assert "failed" not in states, "a trial was taken for failed"
    filler.unlink()
    assert told in ("complete", "MLflow") or "resume" in told or "type the same command again" in told, told
    if told != "complete":
        again = study(home)
        assert again == "complete", again
    folder = home.find(NAME)
    record = assert_nothing_was_lost(folder)
    assert computed(record) == expected, "another result"
    Runs(home.tracking_uri, NAME).agree_with(record)
    assert not [path for path in home.path.rglob("*") if ".part" in path.name], "a part of a file is left"
    assert (folder.report / "report.html").is_file()
    assert folder.best_file.is_file()
    shutil.rmtree(home.path)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", type=int, default=120)
    given = parser.parse_args()
    for name in list(FIGURES)[2:]:  # drawing them is most of what a level costs
        del FIGURES[name]
    wrong, found = 0, Counter[str]()
    with disk() as place, SharedRay() as ray:
        sitting.ray_session = ray  # type: ignore[assignment]
        home = Home(place / "undisturbed")
        open_mlflow(home)
        shutil.copy(home.database, empty := place / "empty.db")
        begun = used(home)
        assert study(home) == "complete"
        expected, whole = computed(StudyRecord.load(home.find(NAME).ledger_file)), used(home) - begun
        print(f"undisturbed: {whole / 1000:.0f} kB beside MLflow's empty database, {len(expected)} trials", flush=True)
        rooms = [round(1.05 * whole * (number / max(1, given.levels - 1)) ** 2) for number in range(given.levels)]
        for room in random.Random(0).sample(rooms, len(rooms)):
            try:
                told = level(place, empty, room, expected)
                where = told.partition(": ")[0].removeprefix(f"{place}/home-{room}/")
            except Exception:
                wrong += 1
                where = "WRONG"
                traceback.print_exc()
                (place / "filler").unlink(missing_ok=True)
            found[where] += 1
            print(f"{room / 1000:8.0f} kB  {where}", flush=True)
    print(f"{given.levels} levels, {wrong} wrong; where the study stopped:")
    print("\n".join(f"{count:4} {where}" for where, count in found.most_common()))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
