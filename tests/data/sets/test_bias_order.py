"""A user's bias classes are numbered as the classes that they go with, as `aligned_accuracy` and shrunk cells need."""

import numpy as np
import pandas as pd
import pytest
from image_folders import load, write

from study import data
from study.data import user_data
from study.data.cells import count_cells_of_split
from study.errors import UserError

KINDS, GROUNDS = ("cat", "dog", "fox"), ("wood", "grass", "field")
"""Kind k is on ground k; as texts, the grounds are in the opposite order."""


OF = {"path": "rows.csv", "target": "kind", "bias": "ground"}


def frame(seed: int = 0, share: float = 0.9, count: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    kind = np.arange(count) % 3
    ground = np.where(random.random(count) < share, kind, random.integers(0, 3, count))
    names = {"kind": np.take(KINDS, kind), "ground": np.take(GROUNDS, ground)}
    return pd.DataFrame({"size": random.normal(size=count), **names})


def read(table: pd.DataFrame, workplace, **options):
    table.to_csv(workplace / "rows.csv", index=False)
    return data.load({"name": "table", **OF, **options})


def test_a_bias_class_has_the_number_of_the_class_that_it_goes_with(workplace):
    table = frame()
    found = read(table, workplace)
    assert found.facts.class_names == KINDS
    assert found.facts.bias_names == GROUNDS
    train = found.splits["train"]
    assert np.mean(train.target == train.bias) > 0.85
    pairs = [
        (KINDS[target], GROUNDS[bias])
        for part in found.splits.values()
        for target, bias in zip(part.target, part.bias, strict=True)
    ]
    assert sorted(pairs) == sorted(
        zip(table["kind"], table["ground"], strict=True)
    )  # the labels themselves are as they were


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {("wood", "cat"), ("grass", "dog"), ("field", "fox")}),
        (["wood=fox", "grass=fox"], {("wood", "fox"), ("grass", "fox")}),
        (["wood=cat", "wood=dog", "grass=fox"], {("wood", "cat"), ("wood", "dog"), ("grass", "fox")}),
        ([], None),
    ],
)
def test_the_class_of_each_bias_class_is_found_or_given(workplace, given, expected):
    facts = read(frame(), workplace, aligned=given).facts
    own = facts.aligned_cells
    said = own and {(GROUNDS[s], KINDS[y]) for y, row in enumerate(own) for s, is_own in enumerate(row) if is_own}
    assert said == expected
    assert facts == data.describe({"name": "table", **OF, "aligned": given})


@pytest.mark.parametrize("given", ["sea=cat", "wood=cow", "wood"])
def test_a_pair_that_the_data_have_not_is_refused(workplace, given):
    with pytest.raises(UserError, match=f"data.aligned: '{given}' given, allowed is BIAS=CLASS"):
        read(frame(), workplace, aligned=[given])


@pytest.mark.parametrize("seed", range(3))
def test_where_bias_and_class_are_independent_no_sample_is_aligned(workplace, seed):
    found = read(frame(seed, share=0.0), workplace)
    assert found.facts.aligned is None
    assert count_cells_of_split(found.splits["train"], found.facts).conflicting is None


def test_images_are_counted_as_aligned_where_most_are(workplace):
    lines = [f"{n}.png,{'cat' if n % 2 else 'dog'},{'f' if n % 2 != (n == 8) else 'm'},0,0,train" for n in range(40)]
    lines = [line.replace(",f,", ",water,").replace(",m,", ",land,") for line in lines]  # cats, the first, on water
    write(workplace / "mine", lines)
    found = load(bias="gender")
    counts = [count_cells_of_split(part, found.facts) for part in found.splits.values()]
    assert sum(count.aligned for count in counts) == 39


def test_the_order_stays_where_it_says_which_class_is_meant(workplace):
    numbers = frame().replace({name: str(place) for place, name in enumerate(KINDS)})
    numbers["ground"] = numbers["ground"].map({"wood": 2, "grass": 1, "field": 0})
    assert read(numbers, workplace).facts.bias_names == ("0", "1", "2")
    alike = frame()
    alike["ground"] = alike["ground"].map(dict(zip(GROUNDS, ("fox", "cat", "dog"), strict=True)))
    assert read(alike, workplace).facts.bias_names == KINDS


@pytest.mark.parametrize("seed", range(3))
def test_the_order_stays_where_classes_and_biases_are_independent(workplace, seed):
    assert read(frame(seed, share=0.0), workplace).facts.bias_names == tuple(sorted(GROUNDS))


def test_a_bias_that_is_not_known_stays_so():
    labels = user_data.TableLabels(
        np.array([0, 0, 1, 1, 1]), np.array([1, -1, 0, 0, -1]), 2, 2, None, ("cat", "dog"), ("land", "water")
    )
    found = user_data.renumber_bias_classes_by_class(labels, np.arange(5))
    assert found.bias is not None
    assert found.bias.tolist() == [0, -1, 1, 1, -1]
    assert found.bias_names == ("water", "land")
