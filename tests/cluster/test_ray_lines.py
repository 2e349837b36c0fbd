"""Ray's lines are left out of a driver's log, ours never. `ray_lines.txt` has lines of real logs: of a study whose node
was killed, of a program with prints, warnings and tracebacks of its own whose raylet was, and of a driver whose
gcs_server was; each after the name of who wrote it."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from study.cluster.following import OursAlone, ours_alone

LINES = (Path(__file__).parent / "ray_lines.txt").read_text(encoding="utf-8").split("\n")[:-1]

LOG = "".join(f"{line[4:]}\n" for line in LINES)

OURS = "".join(f"{line[4:]}\n" for line in LINES if line.startswith("our "))


def test_of_a_real_log_ours_alone_are_kept() -> None:
    assert ours_alone(LOG) == OURS
    assert ours_alone(OURS) == OURS


@pytest.mark.parametrize("seed", range(20))
def test_the_pieces_that_a_log_comes_in_make_no_difference(seed: int) -> None:
    draw = random.Random(seed)
    cuts = sorted(draw.sample(range(1, len(LOG)), draw.choice([3, 100, 2000])))
    keep = OursAlone()
    shown = [keep(LOG[first:last]) for first, last in pairwise([0, *cuts, len(LOG)])]
    assert "".join([*shown, keep.end()]) == OURS


@pytest.mark.parametrize(
    "line",
    [
        "(my_trial pid=12) (pid=12) hello",
        "[2026-11-23] epoch 1",
        "[2026-11-23 11:11:43,603 INFO] my.logger: epoch 1",
        "2026-11-23 11:11:43,603 INFO my_module: epoch 1",
        "/home/me/ray/model.py:3: UserWarning: mine",
        "*** the best so far ***",
        " ",
    ],
)
def test_a_line_that_is_like_rays_is_kept(line: str) -> None:
    assert ours_alone(f"{line}\n") == f"{line}\n"
    assert ours_alone(line) == line


def test_a_warning_of_rays_goes_with_its_line_of_code() -> None:
    place = "/venv/lib/python3.11/site-packages/ray/_private/worker.py:2052: FutureWarning: Tip: In future versions"
    assert ours_alone(f"{place}\n  warnings.warn(\n  mine\n") == "  mine\n"
    assert ours_alone("(pid=31) loads\n(pid=31, ip=10.0.0.2) loads\nmine\n") == "mine\n"
