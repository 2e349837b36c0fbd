"""How many samples each cell has, from labels alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from data_files import write_cifar10_jpeg, write_mnist, write_stl10
from hypothesis import given
from hypothesis import strategies as st

from study import data
from study.data import cells
from study.data.dataset import Facts, SplitLabels
from study.ranking.json_documents import to_plain_value

FACTS = Facts(2, 2, (3, 4, 4), aligned=(0, 1))


def test_by_hand() -> None:
    labels = SplitLabels(np.array([0, 0, 0, 1, -1]), np.array([0, 0, 1, 1, 0]))
    assert cells.count_cells_of_split(labels, FACTS) == cells.SplitCounts(
        samples=5,
        unlabelled=1,
        classes=[3, 1],
        cells=[[2, 1], [0, 1]],
        smallest=1,
        largest=2,
        empty=1,
        aligned=3,
        conflicting=1,
    )


def test_without_bias_labels() -> None:
    found = cells.count_cells_of_split(SplitLabels(np.array([0, 1, 1])), Facts(3, None, (3, 4, 4)))
    assert found == cells.SplitCounts(3, 0, [1, 2, 0])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=60))
def test_counts_add_up(pairs: list[tuple[int, int]]) -> None:
    target, bias = (np.array(part, np.int64) for part in zip(*pairs, strict=True))
    found = cells.count_cells_of_split(SplitLabels(target, bias), Facts(3, 4, (3, 4, 4)))
    assert np.sum(found.cells, axis=1).tolist() == found.classes
    assert sum(found.classes) == found.samples == len(pairs)
    filled = [count for row in found.cells for count in row if count]
    assert (found.smallest, found.largest, found.empty) == (min(filled), max(filled), 12 - len(filled))
    assert found.conflicting is None


def test_missing_files_are_said_and_nothing_is_got(root: Path) -> None:
    for name in ("biased_mnist", "waterbirds", "cifar10"):
        found = cells.count_cells_of_dataset({"name": name})
        assert found.unknown == f"its files are not here, see study data prepare {name}"
        assert found.splits == {}
    assert list(root.iterdir()) == []


def test_a_damaged_file_is_said(root: Path) -> None:
    write_mnist(root, 3, 3)
    (root / "MNIST/raw/train-labels-idx1-ubyte.gz").write_bytes(b"")
    assert "train-labels" in cells.count_cells_of_dataset({"name": "biased_mnist"}).unknown


def test_a_data_set_that_does_not_tell_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(data.find_dataset_module("biased_digits"), "load_labels")
    assert "does not tell its labels" in cells.count_cells_of_dataset({"name": "biased_digits"}).unknown


@pytest.mark.parametrize(
    "section",
    [
        {"name": "biased_mnist", "val_share": 0.5},
        {"name": "cifar10", "val_share": 0.5},
        {"name": "stl10", "val_share": 0.5, "unlabelled": True},
    ],
    ids=lambda section: section["name"],
)
def test_nothing_is_prepared_and_the_counts_are_those_of_what_is(root: Path, section: dict[str, object]) -> None:
    write_mnist(root, 20, 10)
    write_cifar10_jpeg(root)
    write_stl10(root)
    found = cells.count_cells_of_dataset(section)
    assert json.loads(json.dumps(to_plain_value(found))) == to_plain_value(found)
    assert not (root / "prepared").exists()
    dataset = data.load(section)
    assert found.splits == {
        name: cells.count_cells_of_split(split, dataset.facts) for name, split in dataset.splits.items()
    }


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, "agree with the bias (data.aligned): water=duck, land=hen; all other samples conflict with it"),
        (["land=hen", "land=duck"], "agree with the bias (data.aligned): land=duck, land=hen; all other samples"),
        ([], "no sample counts as agreeing or conflicting with the bias; data.aligned can name pairs"),
    ],
)
def test_which_pairs_agree_with_the_bias_is_told(tmp_path: Path, named: list[str] | None, expected: str) -> None:
    table = tmp_path / "birds.csv"
    rows = [(n, *(("duck", "water") if (n % 2) != (n == 8) else ("hen", "land"))) for n in range(40)]
    table.write_text("x,bird,place\n" + "".join(f"{n},{bird},{place}\n" for n, bird, place in rows))
    section = {"name": "table", "path": str(table), "target": "bird", "bias": "place", "aligned": named}
    assert cells.aligned_pairs_text(section, cells.count_cells_of_dataset(section)).startswith(expected)
    without = section | {"bias": None, "aligned": None, "without": ["place"]}
    assert cells.aligned_pairs_text(without, cells.count_cells_of_dataset(without)) == ""
