"""biased_mnist and color_mnist, on small files in MNIST's layout and on MNIST."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from data_files import TEST, TRAIN, write_idx, write_mnist

from study import data
from study.data import cache, colour_bias, mnist
from study.data.dataset import Dataset
from study.data.sets import color_mnist
from study.errors import UserError

IMAGES, LABELS = "MNIST/raw/train-images-idx3-ubyte.gz", "MNIST/raw/train-labels-idx1-ubyte.gz"


def load(name: str = "biased_mnist", **options: object) -> Dataset:
    return data.load({"name": name, **options})


def test_every_digit_is_in_one_split_with_its_label(root: Path) -> None:
    write_mnist(root)
    dataset = load(rho=0.5, val_share=0.25)
    assert {name: len(split) for name, split in dataset.splits.items()} == {"train": 150, "val": 50, "test": 100}
    strokes = Counter()
    for name in ("train", "val"):
        split = dataset.splits[name]
        white = (split.inputs == 255).all(1)
        strokes.update((mask.tobytes(), label) for mask, label in zip(white, split.target.tolist(), strict=True))
    images, labels = mnist.read_images_and_digits("train")
    assert strokes == Counter((mask.tobytes(), label) for mask, label in zip(images != 0, labels.tolist(), strict=True))


def test_the_ground_is_coloured_and_every_other_pixel_white(root: Path) -> None:
    write_mnist(root)
    split = load(rho=1.0).splits["train"]
    assert (split.inputs[:, :, 0, 1] == colour_bias.BACKGROUND_COLOURS[split.bias]).all()
    ground = (split.inputs == colour_bias.BACKGROUND_COLOURS[split.bias][:, :, None, None]).all(1)
    assert (ground | (split.inputs == 255).all(1)).all()
    assert 0.6 < ground.mean() < 0.8


def test_unpacked_files_do_as_well(root: Path) -> None:
    import gzip

    write_mnist(root)
    packed = load().fingerprint
    for path in list((root / "MNIST/raw").iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert load().fingerprint == packed


def test_colours_are_palette_colours_with_noise_whatever_the_digit(root: Path) -> None:
    write_mnist(root, train=300)
    dataset = load("color_mnist", val_share=0.1)
    split = dataset.splits["train"]
    assert split.condition.shape == (len(split), 3)
    assert split.inputs[:, :, 0, 1].tolist() == np.rint(split.condition * 255).astype(int).tolist()  # ground
    noise = split.condition * 255 - color_mnist.PALETTE_COLOURS[split.bias]
    inside = np.abs(color_mnist.PALETTE_COLOURS[split.bias] - 127) < 40  # hardly ever clipped
    assert abs(noise[inside].mean()) < 3
    assert 35 < noise[inside].std() < 42
    assert (noise == np.rint(noise)).all()
    assert 0.05 < (split.bias == split.target).mean() < 0.15


def test_strokes_of_color_mnist_are_black(root: Path) -> None:
    write_mnist(root)
    digits = np.full((10, 28, 28), 255)
    digits[:, 0, 1] = 0
    digits[:, 5, 5] = 100
    write_idx(root / "MNIST/raw/t10k-images-idx3-ubyte.gz", digits)
    write_idx(root / "MNIST/raw/t10k-labels-idx1-ubyte.gz", np.arange(10))
    split = load("color_mnist").splits["test"]
    assert (split.inputs[:, :, 10:] == 0).all()
    assert (split.inputs[:, :, 5, 5] == (split.condition * 255 * (155 / 255)).astype(np.uint8)).all()


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "cut short":
        path.write_bytes(content[: len(content) // 2])
    elif how == "of zeros":
        path.write_bytes(bytes(len(content)))
    elif how == "missing":
        path.unlink()
    else:
        write_idx(path, np.zeros((3, 2), np.uint8))


@pytest.mark.parametrize("file", [IMAGES, LABELS])
@pytest.mark.parametrize("how", ["cut short", "of zeros", "missing", "of another shape"])
def test_a_bad_file_is_named_with_what_to_do(root: Path, file: str, how: str) -> None:
    write_mnist(root)
    damage(root / file, how)
    with pytest.raises(UserError, match=f"{root / file}: .*study data prepare"):
        load()


def test_a_body_shorter_than_the_header_says_is_noticed(root: Path) -> None:
    import gzip

    write_mnist(root)
    whole = gzip.decompress((root / IMAGES).read_bytes())
    (root / IMAGES).write_bytes(gzip.compress(whole[:-1]))
    with pytest.raises(UserError, match=r"images-idx3-ubyte.gz: has .* bytes, its header promises shape \(200,"):
        load()


def test_labels_that_do_not_fit_are_named(root: Path) -> None:
    write_mnist(root)
    write_idx(root / LABELS, np.full(TRAIN * 10, 12))
    with pytest.raises(UserError, match=f"{root / LABELS}: label 0 is 12, allowed is 0 to 9"):
        load()
    write_idx(root / LABELS, np.zeros(TEST))
    with pytest.raises(UserError, match=f"{root / LABELS}: has 10 labels for the 200 images"):
        load()


def test_too_few_digits_for_a_validation_split_are_refused(root: Path) -> None:
    write_mnist(root, train=2)
    with pytest.raises(UserError, match="split val: is empty"):
        load(val_share=0.01)


def test_mnist_itself(real: Path) -> None:
    dataset = load(rho=0.997)
    assert {name: len(split) for name, split in dataset.splits.items()} == {"train": 54000, "val": 6000, "test": 10000}
    conflicting = {name: int((split.bias != split.target).sum()) for name, split in dataset.splits.items()}
    assert conflicting == {"train": 166, "val": 5404, "test": 9004}
    assert dataset.splits["test"].target[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert all(cache.hash_file_or_folder(source.find()) for source in data.sources({"name": "biased_mnist"}))
