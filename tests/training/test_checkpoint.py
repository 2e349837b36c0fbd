"""The state of a trial on disk: stopped and resumed it gives the same bits; what is damaged or another's is refused."""

import errno
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import timeless
from one_trial import config

from study.data import Dataset
from study.training import checkpoint
from study.training.checkpoint import UnusableCheckpointError
from study.training.trial import Trial


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "rate"), [(1, "lr_milestones=[0.5]"), (2, "schedule=cosine")])
def test_a_trial_stopped_and_resumed_gives_the_bits_of_one_that_was_not(
    dataset: Dataset, tmp_path: Path, stop: int, rate: str
) -> None:
    three = config("train.epochs=3", f"train.{rate}", "model.head=mlp", "model.head_norm=hidden")
    file = tmp_path / "trial" / "state.pt"
    whole = Trial(three, dataset, "cpu")
    expected = timeless(whole.train_epochs())
    first = list(islice(Trial(three, dataset, "cpu").train_epochs(file), stop + 1))[
        :stop
    ]  # written once the next is asked for
    assert [path.name for path in file.parent.iterdir()] == ["state.pt"]
    torch.rand(5)
    again = Trial(three, dataset, "cpu")
    assert timeless([*first, *again.train_epochs(file)]) == expected
    assert again.evaluate("test") == whole.evaluate("test")


def test_what_is_written_was_given_before(dataset: Dataset, tmp_path: Path) -> None:
    """A caller that is cut off never misses an epoch: the file holds no epoch whose metrics were not taken."""
    file = tmp_path / "state.pt"
    trial = Trial(config("train.epochs=3"), dataset, "cpu")
    held = [trial.saved_epoch(file) for _ in trial.train_epochs(file)]
    assert [*held, trial.saved_epoch(file)] == [0, 1, 2, 2], "the last epoch is not written: nothing follows it"


def test_the_state_of_another_trial_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "state.pt"
    list(Trial(config(), dataset, "cpu").train_epochs(file))
    for other in (config(seed=3), config("model.width=4")):
        with pytest.raises(
            UnusableCheckpointError, match=r"state\.pt: is the state of a trial of another configuration"
        ):
            next(iter(Trial(other, dataset, "cpu").train_epochs(file)))


@pytest.mark.parametrize("damage", ["empty", "half", "one bit", "text"])
def test_a_damaged_file_is_told(dataset: Dataset, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "state.pt"
    trial = Trial(config(), dataset, "cpu")
    list(trial.train_epochs(file))
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    file.write_bytes({"empty": b"", "half": whole[: len(whole) // 2], "one bit": flipped, "text": b"hello"}[damage])
    with pytest.raises(UnusableCheckpointError, match="is damaged"):
        trial.saved_epoch(file)


def changed(content: dict[str, Any], key: str, value: object) -> dict[str, Any]:
    """With another value of this key, or without the key."""
    others = {other: part for other, part in content.items() if other != key}
    return others if value == "left out" else {**others, key: value}


@pytest.mark.parametrize("part", ["epoch", "made_from", "states", "random"])
def test_a_file_of_another_form_is_told(dataset: Dataset, tmp_path: Path, part: str) -> None:
    """Whole and of this trial, as another version may write it: it is refused before the trial begins."""
    file, trial = tmp_path / "state.pt", Trial(config(), dataset, "cpu")
    list(trial.train_epochs(file))
    content = torch.load(file, weights_only=True)
    for value in (None, "two", -1, 1.0, True, [], "left out"):
        torch.save(changed(content, part, value), file)
        with pytest.raises(UnusableCheckpointError, match=r"state\.pt: is .*; remove it"):
            trial.saved_epoch(file)


def test_writing_takes_at_most_its_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs of 1 s, writes of 0.19 s: the first after one epoch, then none for 20 times 0.19 s."""
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "perf_counter", lambda: now[0])
    save = torch.save

    def slow(content: object, file: object) -> None:
        now[0] += 0.19
        save(content, file)

    monkeypatch.setattr(checkpoint.torch, "save", slow)
    kept, written = (
        checkpoint.TrialCheckpointFile(tmp_path / "state.pt", {}, {}, {}, pause=checkpoint.MIN_PAUSE_PER_WRITE_TIME),
        [],
    )
    for epoch in range(1, 13):
        now[0] += 1.0
        kept.save_if_due(epoch)
        written.append(kept.restore_state())
    assert written == [1] * 4 + [5] * 4 + [9] * 4


def test_a_write_that_fails_leaves_the_file_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = checkpoint.TrialCheckpointFile(tmp_path / "state.pt", {}, {}, {})
    kept.save_if_due(1)

    def full(content: object, file: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint.torch, "save", full)
    with pytest.raises(OSError, match="No space left"):
        kept.save_if_due(2)
    assert kept.restore_state() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]
