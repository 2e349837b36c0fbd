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


def rows() -> dict[str, dict]:
    return {row["name"]: row for row in data_commands.overview()}


def test_the_list_says_which_files_are_there(root: Path) -> None:
    before = rows()
    write_cifar10_jpeg(root)
    write_mnist(root, 2, 2)
    after = rows()
    assert list(before) == data.names()
    for name in ("cifar10", "corrupted_cifar10", "biased_mnist", "color_mnist"):
        assert (before[name]["there"], after[name]["there"]) == (False, True)
    assert before["biased_digits"]["there"]
    assert (before["cifar10"]["facts"]["title"], after["cifar10"]["facts"]["title"]) == (
        "CIFAR-10",
        "CIFAR-10 (JPEG, q75)",
    )
    assert after["color_mnist"]["facts"]["condition"] == 3
    assert before["biased_mnist"]["keys"] == ["rho", "seed", "val_share", "val"]
    assert json.loads(json.dumps(list(after.values()))) == list(after.values())


def test_every_data_set_says_what_it_is(root: Path) -> None:
    for name, row in rows().items():
        assert row["about"].startswith(f"{name}: "), name
        assert len(row["about"]) < 120, name
    shown = data_commands.table(rows().values())
    assert all(f"\n{name} " in shown for name in rows())
    assert str(root) in shown


def test_prepare_tells_what_is_in_the_splits(root: Path) -> None:
    write_stl10(root, unlabelled=6)
    document = data_commands.prepare("stl10", ["unlabelled=true", "val_share=0.25"])
    assert document["options"] == {"unlabelled": True, "val_share": 0.25, "split_seed": 0}
    train = document["splits"]["train"]
    assert (train["samples"], train["unlabelled"], train["classes"]) == (36, 6, [3] * 10)
    assert document["splits"]["val"]["samples"] == 10
    shown = data_commands.text(document)
    assert "STL-10" in shown
    assert "class 1 3 1 4" in " ".join(shown.split())


def test_prepare_counts_the_cells() -> None:
    document = data_commands.prepare("biased_digits", ["rho=0.9"])
    train = document["splits"]["train"]
    assert sum(map(sum, train["cells"])) == train["samples"] == train["aligned"] + train["conflicting"]
    assert sum(train["cells"][label][label] for label in range(10)) == train["aligned"]
    shown = data_commands.text(document)
    assert shown.startswith("biased_digits (rho=0.9, ")
    assert f"{train['conflicting']} conflicting" in shown
    assert document["fingerprint"] == data.load({"name": "biased_digits", "rho": 0.9}).fingerprint


def test_prepare_of_a_table_knows_no_conflicting_samples(root: Path) -> None:
    write_compas(root, [compas_row(("African-American", "Caucasian")[index % 2], index) for index in range(40)])
    document = data_commands.prepare("compas")
    assert document["splits"]["train"]["conflicting"] is None
    assert sum(map(sum, document["splits"]["train"]["cells"])) == 28
    assert "conflicting" not in data_commands.text(document)


def test_prepare_counts_no_bias_that_is_not_known(root: Path) -> None:
    rows = [f"{n},{'ab'[n % 2]},{('a', 'b', '')[n % 3]}" for n in range(60)]
    (root / "kinds.csv").write_text("\n".join(["age,kind,sort", *rows]) + "\n")
    wishes = [f"path={root / 'kinds.csv'}", "target=kind", "bias=sort", "bias_gaps=unknown"]
    document = data_commands.prepare("table", wishes)
    counted = [sum(map(sum, split["cells"])) for split in document["splits"].values()]
    assert sum(counted) == 40
    assert sum(split["samples"] for split in document["splits"].values()) == 60


def test_a_class_that_is_not_in_every_split_is_told(root: Path) -> None:
    """Two equal slips are no class of a single row, which is refused."""
    rows = [f"{n},{'cat' if n % 2 else 'dog'},{'mf'[n // 2 % 2]}" for n in range(100)]
    (root / "pets.csv").write_text("\n".join(["age,kind,sex", *rows]) + "\n")
    keys = ["path=pets.csv", "target=kind", "bias=sex"]
    whole = data_commands.prepare("table", keys)
    assert whole["absent"] == []
    assert "not in every split" not in data_commands.text(whole)
    rows[3], rows[51] = "3,catt,m", "51,catt,m"
    rows[7], rows[8] = "7,cat,w", "8,dog,w"
    (root / "pets.csv").write_text("\n".join(["age,kind,sex", *rows]) + "\n")
    document = data_commands.prepare("table", keys)
    assert [(row["label"], row["name"], row["samples"]) for row in document["absent"]] == [
        ("class", "catt", 2),
        ("bias class", "w", 2),
    ]
    for row in document["absent"]:
        assert row["splits"], row
    without = ", ".join(document["absent"][0]["splits"])
    assert f"not in every split: class 'catt' (2 samples, none in {without}), bias class 'w' (2 samples, none in " in (
        data_commands.text(document)
    )
    assert data_commands.text(document).endswith("Nothing is learned or measured of it there; mend it if it is a slip")


@pytest.mark.parametrize(
    ("name", "assignments", "message"),
    [
        ("biased_mnits", [], "no such data set. Did you mean 'biased_mnist'"),
        ("biased_mnist", ["rho=2"], "--set rho=2: rho: 2 given, allowed is less than or equal to 1"),
        ("biased_mnist", ["rh=0.5"], "unknown key. Did you mean 'rho'"),
        ("biased_mnist", ["rho"], "--set rho: not of the form key=value"),
        ("biased_mnist", ["val=fair"], "'fair' given. .*Allowed: 'biased', 'unbiased' or 'given'"),
    ],
)
def test_what_is_wrong_is_said(root: Path, name: str, assignments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        data_commands.prepare(name, assignments)


def test_prepare_refuses_files_that_are_not_the_published_ones(root: Path) -> None:
    write_mnist(root)
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte.gz: sha256 is .* was published"):
        data_commands.prepare("biased_mnist")


def test_prepare_notices_prepared_files_whose_bytes_changed(root: Path) -> None:
    write_compas(root, [compas_row(("African-American", "Caucasian")[index % 2], index) for index in range(40)])
    data_commands.prepare("compas")
    path = next((root / "prepared").glob("compas-*/train.npy"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"compas: its prepared files in .* are damaged.*Remove them"):
        data_commands.prepare("compas")


def test_the_commands(root: Path) -> None:
    from typer.testing import CliRunner

    listed = CliRunner().invoke(app, ["data", "list", "--json"])
    assert [row["name"] for row in json.loads(listed.stdout)] == data.names()
    prepared = CliRunner().invoke(app, ["data", "prepare", "biased_digits", "--set", "rho=0.9", "--json"])
    assert json.loads(prepared.stdout)["options"] == {"rho": 0.9, "seed": 0, "val": "unbiased", "val_share": 0.2}
    assert "10 classes, 10 bias classes" in CliRunner().invoke(app, ["data", "prepare", "biased_digits"]).stdout


@pytest.mark.slow
def test_listing_does_not_wait_for_torch_or_pandas(root: Path) -> None:
    code = "import sys; from study.commands import data as d; d.overview(); print({'torch', 'pandas'} & {*sys.modules})"
    folder = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
