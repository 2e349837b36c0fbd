"""cifar10, cifar100 and stl10, on small files in the official layouts, and the JPEG copy of CIFAR-10."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from data_files import encoded, write_batch, write_cifar10, write_cifar10_jpeg, write_cifar100, write_stl10, write_tar

from study import data
from study.data.dataset import Dataset
from study.errors import UserError

BATCH = "cifar-10-batches-py/data_batch_3"


def load(name: str = "cifar10", **options: object) -> Dataset:
    return data.load({"name": name, **options})


def sizes(dataset: Dataset) -> dict[str, int]:
    return {name: len(split) for name, split in dataset.splits.items()}


def test_the_official_files(root: Path) -> None:
    write_cifar10(root)
    dataset = load(val_share=0.25)
    assert sizes(dataset) == {"train": 150, "val": 50, "test": 40}
    assert dataset.facts.title == "CIFAR-10"
    for split in dataset.splits.values():
        assert (split.inputs == (20 * split.target)[:, None, None, None]).all()
    assert np.bincount(dataset.splits["val"].target).tolist() == [5] * 10


def test_cifar100_has_the_fine_labels(root: Path) -> None:
    write_cifar100(root)
    dataset = load("cifar100", val_share=0.25)
    assert sizes(dataset) == {"train": 300, "val": 100, "test": 400}
    split = dataset.splits["train"]
    assert (split.inputs[:, 0, 0, 0] == (split.target * 20 % 256)).all()
    assert sorted(set(split.target.tolist())) == list(range(100))


def test_rows_of_a_batch_are_channels_of_rows(root: Path) -> None:
    write_cifar10(root)
    image = np.arange(3072, dtype=np.int64) % 251
    write_batch(root / "cifar-10-batches-py/test_batch", {b"labels": [3], b"data": image[None].astype(np.uint8)})
    found = load().splits["test"].inputs[0]
    assert found[2, 5, 7] == (2 * 1024 + 5 * 32 + 7) % 251


def test_the_jpeg_copy_calls_itself_so(root: Path) -> None:
    write_cifar10_jpeg(root)
    for source in ("auto", "jpeg"):
        dataset = load(source=source, val_share=0.25)
        assert dataset.facts.title == "CIFAR-10 (JPEG, q75)"
        assert sizes(dataset) == {"train": 30, "val": 10, "test": 40}
        for split in dataset.splits.values():
            assert np.abs(split.inputs.astype(int) - (20 * split.target)[:, None, None, None]).max() <= 1


def test_the_official_files_come_first(root: Path) -> None:
    write_cifar10_jpeg(root)
    write_cifar10(root)
    assert load().facts.title == "CIFAR-10"
    assert load(source="jpeg").facts.title == "CIFAR-10 (JPEG, q75)"
    assert load().fingerprint != load(source="jpeg").fingerprint


def test_files_that_are_not_there_are_asked_for(root: Path) -> None:
    with pytest.raises(UserError, match=rf"cifar-10-batches-py: not found.*{root}/cifar-10-python.tar.gz"):
        load()
    with pytest.raises(UserError, match=r"cifar10-jpeg/train.tar.gz: not found"):
        load(source="jpeg")


class Evil:
    """What a pickle can do: run a command."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.path}",)


def test_a_pickle_cannot_run_anything(root: Path, tmp_path: Path) -> None:
    write_cifar10(root)
    for content in (Evil(tmp_path / "evil"), {b"data": Evil(tmp_path / "evil")}, {b"data": np.array([Evil(tmp_path)])}):
        (root / BATCH).write_bytes(pickle.dumps(content, 2))
        with pytest.raises(UserError, match=f"{root / BATCH}: not a readable batch of CIFAR: it asks for"):
            load()
    assert not (tmp_path / "evil").exists()


ROW = np.zeros((1, 3072), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({b"labels": [10], b"data": ROW}, "labels from 10 to 10, allowed is 0 to 9"),
        ({b"labels": [-1], b"data": ROW}, "labels from -1 to -1"),
        ({b"labels": [1, 2], b"data": ROW}, r"images are uint8 \(1, 3072\), uint8 \(2, 3072\) is needed"),
        ({b"labels": [1], b"data": ROW.astype(np.float64)}, "images are float64"),
        ({b"fine_labels": [1], b"data": ROW}, "holds no labels"),
        ({b"labels": [1]}, "holds no data"),
    ],
)
def test_a_wrong_batch_is_named(root: Path, content: dict[bytes, object], message: str) -> None:
    write_cifar10(root)
    write_batch(root / BATCH, content)
    with pytest.raises(UserError, match=f"{root / BATCH}: {message}"):
        load()


@pytest.mark.parametrize("length", [0, 10, 5000])
def test_a_batch_cut_short_is_named(root: Path, length: int) -> None:
    write_cifar10(root)
    (root / BATCH).write_bytes((root / BATCH).read_bytes()[:length])
    with pytest.raises(UserError, match=f"{root / BATCH}: not a readable batch"):
        load()


def test_a_missing_batch_is_named(root: Path) -> None:
    write_cifar10(root)
    (root / BATCH).unlink()
    with pytest.raises(UserError, match=f"{root / BATCH}: not found.*not complete"):
        load()


GREY = encoded(np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8))
SMALL = encoded(np.zeros((8, 8, 3), np.uint8))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"train/cat/0001.jpg": GREY[:-200]}, "train/cat/0001.jpg: not a readable image"),
        ({"train/cat/0001.jpg": b""}, "train/cat/0001.jpg: not a readable image"),
        ({"train/cat/0001.jpg": SMALL}, "train/cat/0001.jpg: an image of 8 x 8 pixels, 32 x 32"),
        ({"train/cow/0001.jpg": GREY}, "train/cow/0001.jpg is in folder 'cow', allowed are airplane"),
        ({}, "holds no images"),
    ],
)
def test_a_wrong_archive_is_named(root: Path, members: dict[str, bytes], message: str) -> None:
    write_cifar10_jpeg(root)
    write_tar(root / "cifar10-jpeg/train.tar.gz", members)
    with pytest.raises(UserError, match=rf"{root}/cifar10-jpeg/train.tar.gz: {message}"):
        load()


@pytest.mark.parametrize("share", [10, 50, 90])
def test_an_archive_cut_short_is_named(root: Path, share: int) -> None:
    write_cifar10_jpeg(root)
    path = root / "cifar10-jpeg/train.tar.gz"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * share // 100])
    with pytest.raises(UserError, match=r"train.tar.gz: cannot be read to its end.*get it again"):
        load()


def test_stl10_lies_column_by_column(root: Path) -> None:
    write_stl10(root)
    dataset = load("stl10", val_share=0.25)
    assert sizes(dataset) == {"train": 30, "val": 10, "test": 40}
    for split in dataset.splits.values():
        assert (split.inputs[:, 0, 1, 2] == 100 + split.target).all()
        assert (split.inputs.sum((1, 2, 3)) == 100 + split.target).all()


def test_unlabelled_images_are_added_to_training_without_a_class(root: Path) -> None:
    write_stl10(root, unlabelled=6)
    plain, more = load("stl10"), load("stl10", unlabelled=True)
    assert (plain.facts.unlabelled, more.facts.unlabelled) == (False, True)
    assert sizes(more) == sizes(plain) | {"train": sizes(plain)["train"] + 6}
    train = more.splits["train"]
    assert train.target[-6:].tolist() == [-1] * 6
    assert train.inputs[-6:, 0, 1, 2].tolist() == [100, 101, 102, 103, 104, 105]
    assert (train.inputs[:-6] == plain.splits["train"].inputs).all()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train_X.bin", b"\0" * 100, "100 bytes are not a whole number of images"),
        ("train_y.bin", b"\1" * 39, "has 39 labels for the 40 images of train_X.bin"),
        ("test_y.bin", b"\0" * 40, "labels from 0 to 0, allowed is 1 to 10"),
        ("test_X.bin", None, "not found; .* is not complete"),
    ],
)
def test_a_wrong_file_of_stl10_is_named(root: Path, file: str, content: bytes | None, message: str) -> None:
    write_stl10(root)
    path = root / "stl10_binary" / file
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(UserError, match=f"{path}: {message}"):
        load("stl10")


@pytest.mark.slow
def test_the_real_jpeg_copy(real: Path) -> None:
    dataset = load(source="jpeg")
    assert sizes(dataset) == {"train": 45000, "val": 5000, "test": 10000}
    assert np.bincount(dataset.splits["val"].target).tolist() == [500] * 10
    pixels = dataset.splits["train"].inputs[::10].astype(float) / 255
    assert pixels.mean((0, 2, 3)) == pytest.approx((0.4913, 0.4821, 0.4465), abs=0.005)
    assert pixels.std((0, 2, 3)) == pytest.approx((0.2452, 0.2428, 0.2606), abs=0.005)
