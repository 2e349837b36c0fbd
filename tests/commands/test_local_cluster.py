"""What `study cluster up` shows while parts come up, and which cards it takes."""

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from study.cluster.local import RUNS, STARTING, shared_out
from study.commands import local_cluster
from study.commands.local_cluster import cards, shown_on
from study.errors import UserError
from study.home.folder import Home
from study.sweep import ray_runtime
from study.training import device

TOLD: list[tuple[str, Sequence[str]]] = [
    (STARTING, ["mlflow", "head"]),
    (RUNS, ["head"]),
    (RUNS, ["mlflow"]),
    (STARTING, ["node-1"]),
    ("has ended by itself, attempt 2", ["node-1"]),
    (RUNS, ["node-1"]),
]


def test_two_commands_do_not_start_a_cluster_of_one_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with local_cluster.alone(home), pytest.raises(UserError, match="another command is starting a cluster of"):
        local_cluster.up(home, 1, 1, 0, None)
    with local_cluster.alone(home):
        pass


def test_a_line_for_each_part() -> None:
    out = io.StringIO()
    tell = shown_on(Console(file=out, width=20))
    for what, names in TOLD:
        tell(what, names)
    assert [line.split("  ", 1)[1] for line in out.getvalue().splitlines()] == [
        "starting mlflow, head",
        "head runs",
        "mlflow runs",
        "starting node-1",
        "node-1 has ended by itself, attempt 2",
        "node-1 runs",
    ]


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    shown_on(None)(*TOLD[0])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("count", "nodes", "shares"),
    [(0, 2, ["", ""]), (1, 2, ["0", ""]), (2, 2, ["0", "1"]), (3, 2, ["01", "2"]), (5, 3, ["01", "23", "4"])],
)
def test_each_card_is_on_one_node(count: int, nodes: int, shares: list[str]) -> None:
    assert ["".join(share) for share in shared_out([str(card) for card in range(count)], nodes)] == shares


@pytest.mark.parametrize(("visible", "chosen"), [(None, ["0", "1"]), ("3,1, 2", ["3", "1"])])
def test_cards_are_those_that_are_visible(
    visible: str | None, chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(ray_runtime, "gpus", lambda: 3)
    monkeypatch.setattr(device, "unusable", lambda: None)
    assert cards(2) == chosen
    with pytest.raises(UserError, match="--gpus 4: this machine has 3"):
        cards(4)
    monkeypatch.setattr(device, "unusable", lambda: "its driver is too old")
    with pytest.raises(UserError, match="--gpus 2: this machine's GPUs cannot be used: its driver is too old"):
        cards(2)
