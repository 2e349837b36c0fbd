"""The key `val`: what validation has in each data set with bias labels, and what it leaves as it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from biased_files import write_biased

from study import data
from study.data.dataset import Split
from study.errors import UserError


@dataclass(frozen=True)
class Case:
    """A data set: the keys that make it small and the kinds that it has.

    `coloured`: it gives its samples their bias itself. `by_chance`: its splits are drawn regardless of class and bias.
    """

    name: str
    keys: dict[str, Any]
    default: str
    given: bool = False
    coloured: bool = False
    by_chance: bool = False

    def __str__(self) -> str:
        return "-".join([self.name, *(str(self.keys[key]) for key in ("source", "split") if key in self.keys)])

    @property
    def kinds(self) -> list[str]:
        return ["biased", "unbiased", *(["given"] if self.given else [])]

    def section(self, kind: str | None = None) -> dict[str, Any]:
        return {"name": self.name, **self.keys, **({"val": kind} if kind else {})}

    def load(self, kind: str | None = None) -> dict[str, Split]:
        return dict(data.load(self.section(kind)).splits)


SMALL = {"size": 4, "train_samples": 60, "eval_samples": 16}
SHARE = {"size": 4, "val_share": 0.3}
OWN = {"target": "target", "bias": "bias", "val_share": 0.3}
CASES = [
    Case("biased_digits", {"rho": 0.9}, "unbiased", coloured=True),
    Case("biased_mnist", {"rho": 0.9, "val_share": 0.5}, "unbiased", coloured=True),
    Case("color_mnist", {"val_share": 0.5}, "biased", coloured=True),
    Case("corrupted_cifar10", {"rho": 0.9, "val_share": 0.5}, "unbiased", coloured=True),
    Case("adult", {"val_share": 0.3}, "biased", by_chance=True),
    Case("compas", {"val_share": 0.3}, "biased", by_chance=True),
    Case("utkface", SMALL, "unbiased"),
    Case("dogs_and_cats", SMALL, "unbiased"),
    Case("waterbirds", SHARE, "given", given=True),
    Case("celeba", SHARE, "given", given=True),
    Case("bffhq", SHARE, "given", given=True),
    Case("image_folder", {"path": "mine", "size": 4, **OWN}, "biased"),
    Case("image_folder", {"path": "mine", "size": 4, "split": "part", **OWN}, "given", given=True),
    Case("table", {"path": "mine/labels.csv", "features": ["number"], **OWN}, "biased"),
    Case("table", {"path": "mine/labels.csv", "features": ["number"], "split": "part", **OWN}, "given", given=True),
]
every_set = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_biased(folder)
    return folder


@pytest.fixture(autouse=True)
def root(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_DATA", str(files))
    monkeypatch.setenv("HOME", str(files / "nobody"))


def cells(split: Split) -> np.ndarray:
    return np.bincount(10 * split.target + split.bias, minlength=100)


def same(split: Split, other: Split) -> bool:
    return all(np.array_equal(getattr(split, field), getattr(other, field)) for field in ("inputs", "target", "bias"))


def test_every_data_set_with_bias_labels_in_training_has_the_key() -> None:
    named = {case.name: case.section() for case in CASES}
    for name in data.dataset_names():
        facts = data.describe(named.get(name, {"name": name}))
        assert (facts.facts_of_split("train").bias_classes is not None) == (name in named), f"{name}: CASES needs a row"
        assert ("val" in {knob.key for knob in data.data_knobs(name)}) == (name in named), f"{name}: lacks the key"


@every_set
def test_what_is_loaded_is_what_is_described_with_the_default_kind_and_a_seed_decides_who_is_where(case: Case) -> None:
    facts, dataset, default = data.describe(case.section()), data.load(case.section()), case.load(case.default)
    assert (dataset.facts, tuple(dataset.splits)) == (facts, facts.splits)
    for name, split in dataset.splits.items():
        assert same(split, default[name])
        assert split.inputs.shape[1:] == facts.shape
        assert split.inputs.dtype == (np.float32 if facts.is_table else np.uint8)
    seed = next(knob.key for knob in data.data_knobs(case.name) if knob.key in ("seed", "split_seed"))
    again, other = (data.load(case.section() | {seed: value}).fingerprint for value in (0, 1))
    assert dataset.fingerprint == again
    assert (other != again) is not case.given, "splits of their own are what they are"


@every_set
def test_labels_are_those_of_what_is_loaded(case: Case) -> None:
    for kind in case.kinds:
        labels, splits = data.load_labels(case.section(kind)), case.load(kind)
        assert labels is not None
        assert list(labels) == list(splits)
        for name, split in splits.items():
            assert labels[name].target.tolist() == split.target.tolist()
            assert labels[name].bias.tolist() == split.bias.tolist()


@every_set
def test_test_is_the_same_and_where_samples_are_coloured_training_too(case: Case) -> None:
    """A table's numbers are standardised over the training rows, so that its labels alone can be compared."""
    first, *others = [case.load(kind) for kind in case.kinds]
    for other in others:
        assert np.array_equal(first["test"].target, other["test"].target)
        assert np.array_equal(first["test"].bias, other["test"].bias)
        assert same(first["test"], other["test"]) or first["test"].inputs.ndim == 2
        if case.coloured or case.name in ("utkface", "dogs_and_cats"):
            assert same(first["train"], other["train"])
            assert not same(first["val"], other["val"])


@every_set
def test_biased_is_as_biased_as_training_and_unbiased_is_not(case: Case) -> None:
    biased, unbiased = case.load("biased"), case.load("unbiased")
    train, val = cells(biased["train"]), cells(biased["val"])
    spread = 4 * np.sqrt(val.sum()) if case.by_chance else 1 + 10 * case.coloured
    assert np.abs(val - train * val.sum() / train.sum()).max() <= spread
    even = cells(unbiased["val"])
    if case.coloured:
        conflicting = (unbiased["val"].bias != unbiased["val"].target).mean()
        assert conflicting == pytest.approx(0.9, abs=0.08)
    else:  # as many of each cell, or half of what there is
        whole = cells(unbiased["train"]) + even
        drawn = case.name in ("utkface", "dogs_and_cats")
        assert all(count in (even.max(), size // 2) for count, size in zip(even, whole, strict=True) if size) or drawn
        assert len(set(even[even > 0])) == 1 or not drawn


@pytest.mark.parametrize("case", [case for case in CASES if "size" in case.keys or case.name == "table"], ids=str)
def test_no_sample_is_in_two_splits(case: Case) -> None:
    """Where each has pixels, or a number, of its own."""
    for kind in case.kinds:
        splits = case.load(kind)
        rows = [row.tobytes() for split in splits.values() for row in split.inputs]
        assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("case", [case for case in CASES if not case.given], ids=str)
def test_a_split_of_its_own_is_refused_where_there_is_none(case: Case) -> None:
    if case.name in ("image_folder", "table"):
        with pytest.raises(UserError, match=r"data\.val: 'given' given, but .* Allowed: biased, unbiased"):
            data.describe(case.section("given"))
    else:
        (key,) = (knob for knob in data.data_knobs(case.name) if knob.key == "val")
        assert set(key.choices) == {"biased", "unbiased"}


def test_unbiased_needs_bias_labels() -> None:
    for case in CASES[-4:]:
        with pytest.raises(UserError, match=r"data\.val: 'unbiased' given, which needs bias labels"):
            data.describe(case.section("unbiased") | {"bias": None})


def test_a_given_split_that_is_not_wanted_is_in_none() -> None:
    sizes = {kind: [len(split) for split in CASES[-3].load(kind).values()] for kind in ("given", "biased")}
    assert sizes["given"] == [120, 60, 60]
    assert sizes["biased"] == [84, 36, 60]
