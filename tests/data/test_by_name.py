"""Other data in the numbers of a model: by name; and names that mean no more than names."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from study import data
from study.data.dataset import Dataset, Facts, Split
from study.errors import UserError
from study.trained.evaluate import renumber_classes_as_model, unknown_bias_classes


def named(target: list[str], bias: list[str] | None, classes: tuple[str, ...], biases: tuple[str, ...] | None):
    codes = np.array([classes.index(name) for name in target], np.int64)
    of_bias = (
        None if bias is None else np.array([(biases or ()).index(name) if name else -1 for name in bias], np.int64)
    )
    facts = Facts(len(classes), biases and len(biases), (1,), class_names=classes, bias_names=biases, splits=("val",))
    return Dataset(facts, {"val": Split(np.zeros((len(target), 1), np.float32), codes, of_bias)})


MODEL = named(["no", "yes"], ["f", "m"], ("no", "yes"), ("f", "m"))


def test_classes_and_bias_classes_get_the_models_numbers_and_unknown_ones_stay_unknown():
    later = named(["no", "yes", "yes"], ["m", "f", ""], ("yes", "no"), ("m", "f"))
    found = renumber_classes_as_model(later, MODEL.facts)
    assert found.splits["val"].target.tolist() == [0, 1, 1]
    assert found.splits["val"].bias.tolist() == [1, 0, -1]
    assert (found.facts.class_names, found.facts.bias_names) == (("no", "yes"), ("f", "m"))


def test_names_that_the_data_lack_keep_their_place():
    found = renumber_classes_as_model(named(["yes", "yes"], ["m", "m"], ("yes",), ("m",)), MODEL.facts)
    assert (found.splits["val"].target.tolist(), found.splits["val"].bias.tolist()) == ([1, 1], [1, 1])
    assert (found.facts.classes, found.facts.bias_classes) == (2, 2)


@pytest.mark.parametrize("nameless", [("class_names",), ("bias_names",), ("class_names", "bias_names")])
def test_without_names_numbers_stay(nameless):
    facts = replace(MODEL.facts, **dict.fromkeys(nameless))
    assert renumber_classes_as_model(MODEL, facts) is MODEL
    assert renumber_classes_as_model(Dataset(facts, MODEL.splits), MODEL.facts).splits is MODEL.splits


def test_a_model_without_bias_takes_the_datas_bias_and_the_other_way_round():
    unbiased = named(["no", "yes"], None, ("no", "yes"), None)
    assert renumber_classes_as_model(MODEL, unbiased.facts) is MODEL
    assert renumber_classes_as_model(unbiased, MODEL.facts) is unbiased


def test_a_foreign_bias_class_is_an_unknown_bias_and_a_foreign_class_is_refused_with_the_models():
    foreign = named(["no", "yes"], ["x", "m"], ("no", "yes"), ("m", "x"))
    found = renumber_classes_as_model(foreign, MODEL.facts)
    assert found.splits["val"].bias.tolist() == [-1, 1]
    assert (found.facts.bias_names, found.facts.some_bias) == (("f", "m"), True)
    assert unknown_bias_classes(foreign.facts, MODEL.facts) == ["x"]
    with pytest.raises(UserError, match=r"classes 'a', 'b' given, the model was trained on the classes 'no', 'yes'"):
        renumber_classes_as_model(named(["a"], ["m"], ("a", "b"), ("m",)), MODEL.facts)


@pytest.fixture
def people(workplace) -> pd.DataFrame:
    number = np.arange(96)
    columns = {"repaid": number % 2, "sex": number // 2 % 2, "old": number // 4 % 3, "age": 20.0 + number * 7 % 31}
    frame = pd.DataFrame(columns)
    return frame.assign(
        repaid=frame["repaid"].map({0: "no", 1: "yes"}),
        sex=frame["sex"].map({0: "f", 1: "m"}),
        old=frame["old"].map({0: "a", 1: "b", 2: "c"}),
    )


def load(frame: pd.DataFrame, **options):
    frame.to_csv("people.csv", index=False)
    keys = {"name": "table", "path": "people.csv", "target": "repaid", "bias": "sex", "features": ["age"]}
    return data.load({**keys, **options})


def test_several_columns_are_named_by_all_of_them(people):
    dataset = load(people, bias="sex+old")
    assert dataset.facts.bias_names == ("f+a", "m+a", "f+b", "m+b", "f+c", "m+c")
    every = np.concatenate([split.bias for split in dataset.splits.values()])
    named = pd.Series([dataset.facts.bias_names[code] for code in every])
    expected = people["sex"] + "+" + people["old"]
    assert named.value_counts().to_dict() == expected.value_counts().to_dict()
    alike = people.replace({"sex": {"f": "f+a", "m": "f"}, "old": {"a": "a", "b": "a+a"}})
    assert load(alike, bias="sex+old").facts.bias_names is None  # two would be f+a+a


def test_renaming_changes_names_and_nothing_else(people):
    """Names of the same order: other names would be another order of classes, which is all that they decide."""
    plain = load(people)
    other = load(people.replace({"repaid": {"no": "Ä 1", "yes": "Ä 2"}, "sex": {"f": "left", "m": "right"}}))
    assert other.facts.class_names == ("Ä 1", "Ä 2")
    assert other.facts.bias_names == ("left", "right")
    for name, split in plain.splits.items():
        for key in ("inputs", "target", "bias"):
            assert (getattr(split, key) == getattr(other.splits[name], key)).all()


def test_names_in_another_order_are_the_same_data_in_the_models_numbers(people):
    """Names that sort the other way round: found by name, every number is as before."""
    people = people.assign(part=np.array(["train", "train", "val", "test"])[np.arange(96) // 12 % 4])
    plain = load(people, split="part")
    turned = load(people.replace({"repaid": {"no": "z"}, "sex": {"f": "z"}}), split="part")
    model = replace(plain.facts, class_names=("z", "yes"), bias_names=("z", "m"))
    assert (turned.facts.class_names, turned.facts.bias_names) == (("yes", "z"), ("m", "z"))
    assert renumber_classes_as_model(turned, model).fingerprint == plain.fingerprint


@pytest.mark.parametrize("keys", [{"bias": "repaid"}, {"bias": "sex+repaid"}, {"target": "sex+repaid"}])
def test_a_column_that_is_both_class_and_bias_is_refused(people, keys):
    with pytest.raises(UserError, match=r"column '(repaid|sex)' is in both data.target \(.*\) and data.bias"):
        load(people, **keys)
