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
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from disturbed import NAME, check, few_figures, study  # noqa: E402 (its folder is not a package)
from helpers import computed  # noqa: E402

from study.driver import session  # noqa: E402
from study.home.folder import Home  # noqa: E402
from study.home.record import StudyRecord  # noqa: E402
from study.sweep.ray_runtime import SharedRay  # noqa: E402
from study.tracking.connection import open_mlflow_of_home  # noqa: E402

SIZE = 1 << 30


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
    shutil.copy(empty, home.database_file)
    filler = place / "filler"
    with filler.open("wb") as file:
        left = shutil.disk_usage(place).free - room
        while left > 0:
            left -= file.write(b"x" * min(left, 1 << 20))
    told = study(home)
    folders = home.list_studies()
    if folders:
        states = {trial.state for trial in StudyRecord.load(folders[0].ledger_file).trials.values()}
        assert "failed" not in states, "a trial was taken for failed"
    filler.unlink()
    check(home, told, expected)
    assert not [path for path in home.path.rglob("*") if ".part" in path.name], "a part of a file is left"
    shutil.rmtree(home.path)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", type=int, default=120)
    given = parser.parse_args()
    few_figures()
    wrong, found = 0, Counter[str]()
    with disk() as place, SharedRay() as ray:
        session.start_or_join_ray = ray  # type: ignore[assignment]
        home = Home(place / "undisturbed")
        open_mlflow_of_home(home)
        shutil.copy(home.database_file, empty := place / "empty.db")
        begun = used(home)
        assert study(home) == "complete"
        expected, whole = computed(StudyRecord.load(home.find_study(NAME).ledger_file)), used(home) - begun
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
