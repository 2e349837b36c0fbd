"""A write of a study's that the system refuses, once or from then on: the same study for many faults, then resumed.

    python tests/benchmarks/write_faults.py                    120 faults, about half an hour; needs gcc
    python tests/benchmarks/write_faults.py --faults 12        fewer
    python tests/benchmarks/write_faults.py --kind KIND        those of one kind, as it is printed

The study is that of `full_disk.py`, in a home of its own each time. An undisturbed one tells which kinds of write there
are: one call (a file is made, written, synced, renamed, made longer, linked; a folder is made) on one kind of file, by
the driver or by a trial's process. Faults go through all kinds in a drawn order, each at a drawn one of its writes,
with a drawn error (no room, quota, read-only, I/O) that is there once or from then on. The study has to come to its
end, or to stop with one message and status 1, nothing else being printed, and no failed trial; once it can write again
it has to end as one that was not disturbed, in the ledger, in MLflow and in its files. Prints what came of each; fails
where something did not hold. All studies share one Ray.
"""

import argparse
import errno
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from failing_writes import FailingWrites, Fault, run_again  # noqa: E402 (its folder is not a package)

ERRORS = ("ENOSPC", "EDQUOT", "EROFS", "EIO")
NOTHING = "nothing"
WAITS = "MLflow gets the rest"
"""How the one line begins that may be printed besides."""

PART = re.compile(r"\.part$|/\.artifact\.uploading\.|^\.disk-")
"""Of what is being made, by us and by MLflow: from a disk that is read-only it cannot be removed."""


def pattern(path: str) -> str:
    """Of the files that are of its kind: drawn parts of names and numbers are left open."""
    drawn_parts = r"[0-9a-f]{32}|(?<=\.)[0-9a-f]{8}(?=\.part)|(?<=\.uploading\.)\w{8}|(?<=/\.disk-)\w{8}|[0-9]+"
    return re.sub(drawn_parts, "*", path)


@contextmanager
def heard(file: Path) -> Iterator[None]:
    """What this process writes to its standard output and error goes into a file."""
    kept = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    with file.open("wb") as place:
        for number in (1, 2):
            os.dup2(place.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush()
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)


def files(home: Path) -> set[str]:
    """Kinds of file in a home."""
    return {pattern(str(path.relative_to(home))) for path in home.rglob("*") if path.is_file()}


def tried(
    place: Path, fault: Fault, database: Path, expected: tuple[list[dict[str, Any]], set[str]]
) -> tuple[str, str]:
    """What failed, and what was told of it; raises where something did not hold."""
    from disturbed import check, study

    from study.home.folder import Home
    from study.home.record import StudyRecord

    home, writes = Home(place / "home"), FailingWrites(place)
    if ".mlflow.db." not in fault.pattern and fault.call != "link":  # else it is made, which takes seconds
        home.path.mkdir(parents=True)
        shutil.copy(database, home.database_file)
    printed = place.with_suffix(".printed")
    with heard(printed), writes.failing(fault):
        told = study(home)
    where = writes.failed or NOTHING
    try:
        lines = [line for line in printed.read_text(errors="replace").splitlines() if not line.startswith(WAITS)]
        assert not lines, "printed:\n" + "\n".join(lines)
        for folder in home.list_studies():
            states = {trial.state for trial in StudyRecord.load(folder.ledger_file).trials.values()}
            assert "failed" not in states, "a trial was taken for failed"
        check(home, told, expected[0])
        there = files(home.path)
        if fault.lasting:
            there = {kind for kind in there if not PART.search(kind)}
        assert there == expected[1], f"missing {expected[1] - there}, too many {there - expected[1]}"
    except BaseException as error:
        error.add_note(f"told: {told}\nfailed: {where}")
        raise
    shutil.rmtree(place)
    return where, told.replace(f"{place}/", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", help="call and pattern, as 'write home/disk/ledger.jsonl'")
    given = parser.parse_args()
    run_again()
    from disturbed import few_figures, study
    from helpers import computed

    from study.driver import session
    from study.home.folder import Home
    from study.home.record import StudyRecord
    from study.sweep.ray_runtime import SharedRay
    from study.tracking.connection import open_mlflow_of_home

    few_figures()
    drawn, wrong, met = random.Random(given.seed), 0, 0
    with tempfile.TemporaryDirectory(prefix="write-faults-") as folder, SharedRay() as ray:
        session.start_or_join_ray = ray  # type: ignore[assignment]
        open_mlflow_of_home(empty := Home(Path(folder) / "empty"))
        shutil.copy(empty.database_file, database := Path(folder) / "empty.db")
        home = Home(Path(folder) / "undisturbed" / "home")
        with FailingWrites(home.path.parent).counted() as counted:
            assert study(home) == "complete"
        expected = computed(StudyRecord.load(home.find_study("disk").ledger_file)), files(home.path)
        kinds = Counter[tuple[str, str]]()
        for (call, path), count in counted.items():
            kinds[call, pattern(path)] += count
        for (call, path), count in sorted(kinds.items()):
            print(f"{count:6} {call} {path}")
        chosen = [kind for kind in sorted(kinds) if not given.kind or " ".join(kind) in given.kind]
        order: list[tuple[str, str]] = []
        while len(order) < given.faults:
            order += drawn.sample(chosen, len(chosen))
        for number, kind in enumerate(order[: given.faults]):
            name, lasting = drawn.choice(ERRORS), drawn.random() < 0.5
            nth = drawn.randint(1, kinds[kind])
            fault = Fault(*kind, nth, getattr(errno, name), lasting)
            print(f"{number:4} {name}{' from then on' if lasting else ''} at {' '.join(kind)}, {nth}", flush=True)
            began = time.monotonic()
            try:
                where, told = tried(Path(folder) / str(number), fault, database, expected)
                print(f"{time.monotonic() - began:6.1f} s {where}: {told}", flush=True)
                met += where != NOTHING
            except Exception:
                wrong += 1
                print(f"{time.monotonic() - began:6.1f} s WRONG\n{traceback.format_exc()}", flush=True)
    print(f"{given.faults} faults of {len(chosen)} kinds: {wrong} wrong, {met} survived, the others were not met")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
