import copy
import pickle

import pytest

from study.home.record import Epoch


def test_an_epoch_is_a_mapping() -> None:
    epoch = Epoch(3, {"val/accuracy": 0.5, "train/loss": None})
    assert epoch == {"epoch": 3, "val/accuracy": 0.5, "train/loss": None}
    assert list(epoch) == ["epoch", "val/accuracy", "train/loss"]
    assert len(epoch) == 3
    assert isinstance(epoch["epoch"], int)
    assert epoch.get("val/gap") is None
    with pytest.raises(KeyError, match="val/gap"):
        epoch["val/gap"]


def test_names_are_shared() -> None:
    one, other = Epoch(1, {"a": 1.0, "b": 2.0}), Epoch(2, {"a": 3.0, "b": 4.0})
    assert one.names is other.names
    assert one != other
    assert Epoch(1, {"b": 2.0, "a": 1.0}).names is not one.names
    assert Epoch(1, {"b": 2.0, "a": 1.0}) == one


def test_a_copy_is_the_same() -> None:
    epoch = Epoch(1, {"a": 0.1, "b": None})
    assert copy.deepcopy(epoch) == epoch == pickle.loads(pickle.dumps(epoch))
    assert eval(repr(epoch), {"Epoch": lambda given: given}) == epoch
