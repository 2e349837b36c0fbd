"""`study data list` and `study data prepare`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from data_files import compas_row, write_cifar10_jpeg, write_compas, write_mnist, write_stl10

from study import data
from study.cli import app
from study.commands import data as data_commands
from study.errors import UserError


def rows() -> dict[str, data_commands.DataRow]:
    return {row.name: row for row in data_commands.list_data_sets()}


def test_the_list_says_which_files_are_there(root: Path) -> None:
    before = rows()
    write_cifar10_jpeg(root)
    write_mnist(root, 2, 2)
    after = rows()
    assert list(before) == data.dataset_names()
    for name in ("cifar10", "corrupted_cifar10", "biased_mnist", "color_mnist"):
        assert (before[name].there, after[name].there) == (False, True)
    assert before["biased_digits"].there
    assert tuple(of["cifar10"].facts.title for of in (before, after)) == ("CIFAR-10", "CIFAR-10 (JPEG, q75)")
    assert after["color_mnist"].facts.condition == 3
    assert before["biased_mnist"].keys == ["rho", "seed", "val_share", "val", "folds"]


def test_prepare_tells_what_is_in_the_splits(root: Path) -> None:
    write_stl10(root, unlabelled=6)
    document = data_commands.prepare_data_set("stl10", ["unlabelled=true", "val_share=0.25"])
    assert document.options == {"unlabelled": True, "val_share": 0.25, "split_seed": 0}
    train = document.splits["train"]
    assert (train.samples, train.unlabelled, train.classes) == (36, 6, [3] * 10)
    assert document.splits["val"].samples == 10
    shown = data_commands.prepared_data_text(document)
    assert "STL-10" in shown
    assert "class 1 3 1 4" in " ".join(shown.split())


def test_prepare_counts_the_cells() -> None:
    document = data_commands.prepare_data_set("biased_digits", ["rho=0.9"])
    train = document.splits["train"]
    assert sum(map(sum, train.cells)) == train.samples == train.aligned + train.conflicting
    assert sum(train.cells[label][label] for label in range(10)) == train.aligned
    shown = data_commands.prepared_data_text(document)
    assert shown.startswith("biased_digits (rho=0.9, ")
    (conflicting,) = (line.split()[1:] for line in shown.splitlines() if line.startswith("conflicting "))
    assert conflicting[0] == str(train.conflicting)
    assert document.fingerprint == data.load({"name": "biased_digits", "rho": 0.9}).fingerprint


@pytest.mark.parametrize(
    ("name", "assignments", "message"),
    [
        ("biased_mnits", [], "no such data set. Did you mean 'biased_mnist'"),
        ("biased_mnist", ["rho=2"], "--set rho=2: rho: 2 given, allowed is less than or equal to 1"),
        ("biased_mnist", ["rh=0.5"], "unknown key. Did you mean 'rho'"),
        ("biased_mnist", ["rho"], "--set rho: not of the form key=value"),
        ("biased_mnist", ["val=fair"], "'fair' given. Allowed: biased, unbiased"),
    ],
)
def test_what_is_wrong_is_said(root: Path, name: str, assignments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        data_commands.prepare_data_set(name, assignments)


def test_prepare_refuses_files_that_are_not_the_published_ones(root: Path) -> None:
    write_mnist(root)
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte.gz: sha256 is .* was published"):
        data_commands.prepare_data_set("biased_mnist")


def test_prepare_notices_prepared_files_whose_bytes_changed(root: Path) -> None:
    write_compas(root, [compas_row(("African-American", "Caucasian")[index % 2], index) for index in range(40)])
    data_commands.prepare_data_set("compas")
    path = next((root / "prepared").glob("compas-*/train.npy"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"compas: its prepared files in .* are damaged.*Remove them"):
        data_commands.prepare_data_set("compas")


def test_the_commands(root: Path) -> None:
    from typer.testing import CliRunner

    listed = CliRunner().invoke(app, ["data", "list", "--json"])
    assert [row["name"] for row in json.loads(listed.stdout)] == data.dataset_names()
    prepared = CliRunner().invoke(app, ["data", "prepare", "biased_digits", "--set", "rho=0.9", "--json"])
    given = {"rho": 0.9, "seed": 0, "val": "unbiased", "val_share": 0.2, "folds": None}
    assert json.loads(prepared.stdout)["options"] == given
    assert "10 classes, 10 bias classes" in CliRunner().invoke(app, ["data", "prepare", "biased_digits"]).stdout


@pytest.mark.slow
def test_listing_does_not_wait_for_torch_or_pandas(root: Path) -> None:
    code = (
        "import sys; from study.commands import data as d; d.list_data_sets(); print({'torch', 'pandas'} & "
        "{*sys.modules})"
    )
    folder = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
