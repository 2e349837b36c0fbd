"""Which of two classes is the positive one: the second, or the one that `data.positive` names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study import data
from study.data.positive_class import guess_positive_class_name, positive_class_warnings
from study.errors import UserError
from study.training import metrics


def section(folder: Path, classes: tuple[str, ...], bias: tuple[str, str] = ("f", "m"), **keys: Any) -> dict[str, Any]:
    """A table in which every second row is of the next class, and two of three of the first bias class."""
    path = folder / "decisions.csv"
    rows = [f"{row % 7}.5,{bias[row % 3 == 0]},{classes[row % len(classes)]}" for row in range(120)]
    path.write_text("\n".join(["income,sex,decision", *rows]) + "\n")
    return {"name": "table", "path": str(path), "target": "decision", "bias": "sex", **keys}


def test_the_named_class_is_the_last_and_rows_keep_their_split_and_class(tmp_path: Path) -> None:
    plain = data.load(section(tmp_path, ("approved", "denied")))
    turned = data.load(section(tmp_path, ("approved", "denied"), positive="approved"))
    assert plain.facts.class_names == ("approved", "denied")
    assert turned.facts.class_names == ("denied", "approved")
    for name, split in plain.splits.items():
        assert np.array_equal(split.target, 1 - turned.splits[name].target)
        assert np.array_equal(split.inputs, turned.splits[name].inputs)
    same = data.load(section(tmp_path, ("approved", "denied"), positive="denied"))
    assert same.facts.class_names == ("approved", "denied")


def test_equal_opportunity_follows(tmp_path: Path) -> None:
    gaps = {}
    for positive in ("approved", "denied"):
        loaded = data.load(section(tmp_path, ("approved", "denied"), positive=positive))
        split, names = loaded.splits["train"], loaded.facts.class_names
        assert names is not None
        approved, bias = names.index("approved"), split.bias
        assert bias is not None
        target = split.target
        of_f = bias == loaded.facts.bias_names.index("f")  # type: ignore[union-attr]
        given = np.where((target == approved) & of_f, 1 - approved, target)  # approved ones of f are all denied
        tensors = (torch.from_numpy(array.copy()) for array in (given, target, bias))
        prediction, classes, groups = tensors
        found = metrics.compute_metrics(None, prediction, classes, groups, loaded.facts)
        gaps[positive] = float(found["equal_opportunity"])
    assert gaps == {"approved": 1.0, "denied": 0.0}


def test_bias_classes_that_are_named_alike_turn_round_too(tmp_path: Path) -> None:
    names = ("no", "yes")
    turned = data.load(section(tmp_path, names, bias=names, positive="no")).facts
    assert turned.class_names == turned.bias_names == ("yes", "no")


@pytest.mark.parametrize(
    ("classes", "positive", "problem"),
    [
        (("approved", "denied"), "granted", "no class of .* Allowed: approved, denied"),
        (("approved", "denied", "open"), "approved", "3 classes; it is for two classes alone"),
    ],
)
def test_what_is_no_class_of_two_is_refused(
    tmp_path: Path, classes: tuple[str, ...], positive: str, problem: str
) -> None:
    with pytest.raises(UserError, match=f"data.positive: '{positive}' given, .*{problem}"):
        data.describe(section(tmp_path, classes, positive=positive))


@pytest.mark.parametrize(
    ("names", "positive"),
    [
        (("approved", "denied"), "approved"),
        (("granted", "refused"), "granted"),
        (("hired", "rejected"), "hired"),
        (("bad", "good"), "good"),
        (("No", "Yes"), "Yes"),
        (("ja", "nein"), "ja"),
        (("non", "oui"), "oui"),
        (("0", "1"), "1"),
        (("f", "m"), None),
        (("cat", "dog"), None),
        (("no", "unsure", "yes"), None),
    ],
)
def test_names_may_tell_which_class_is_meant(names: tuple[str, ...], positive: str | None) -> None:
    assert guess_positive_class_name(names) == positive


@pytest.mark.parametrize(("keys", "warned"), [({}, True), ({"positive": "denied"}, False)])
def test_the_other_way_round_is_warned_of_unless_it_is_said(tmp_path: Path, keys: Any, warned: bool) -> None:
    of = {"positive": None, **section(tmp_path, ("approved", "denied"), **keys)}
    found = positive_class_warnings(of, data.describe(of))
    assert bool(found) == warned
    assert not warned or "data.positive: approved" in found[0]
