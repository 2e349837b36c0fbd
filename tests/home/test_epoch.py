import pytest

from study.home.record import EpochMetrics


def test_an_epoch_is_a_mapping() -> None:
    epoch = EpochMetrics(3, {"val/accuracy": 0.5, "train/loss": None})
    assert epoch == {"epoch": 3, "val/accuracy": 0.5, "train/loss": None}
    assert list(epoch) == ["epoch", "val/accuracy", "train/loss"]
    assert len(epoch) == 3
    assert isinstance(epoch["epoch"], int)
    assert epoch.get("val/gap") is None
    with pytest.raises(KeyError, match="val/gap"):
        epoch["val/gap"]
