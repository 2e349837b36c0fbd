"""The ten corruptions, and the data set that is made with them."""

from pathlib import Path

import numpy as np
import pytest
from data_files import write_cifar10

from study import data
from study.data.sets import corrupted_cifar10
from study.data.sets.corrupted_cifar10 import CORRUPTIONS, corrupt_images

NAMES = [function.__name__ for function in CORRUPTIONS]


def images(count: int = 24) -> np.ndarray:
    """Smooth pictures with edges, (N, 32, 32, 3), 0 to 1."""
    random = np.random.default_rng(3)
    pictures = np.stack([corrupted_cifar10.draw_clouds((count, 32, 32), 2.0, random) for _ in range(3)], axis=-1)
    pictures[:, 8:20, 10:22] = random.random((count, 1, 1, 3))
    return pictures.astype(np.float32)


def run(name: str, pictures: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    found = getattr(corrupted_cifar10, name)(images() if pictures is None else pictures, np.random.default_rng(seed))
    return np.clip(found, 0, 1)


def test_they_are_the_ten_of_the_published_data_in_its_order() -> None:
    assert "snow frost fog brightness contrast spatter elastic jpeg pixelate saturate".split() == NAMES  # noqa: SIM905


@pytest.mark.parametrize("name", NAMES)
def test_each_changes_pictures_but_not_beyond_recognition(name: str) -> None:
    before, after = images(), run(name)
    assert after.shape == before.shape
    assert np.isfinite(after).all()
    assert np.abs(after - before).mean() > 0.001
    correlations = [np.corrcoef(one.ravel(), other.ravel())[0, 1] for one, other in zip(before, after, strict=True)]
    assert np.mean(correlations) > 0.3


@pytest.mark.parametrize("name", ["snow", "frost", "fog", "spatter", "elastic"])
def test_each_image_of_a_batch_gets_its_own(name: str) -> None:
    same = np.repeat(images(1), 4, axis=0)
    found = run(name, same)
    assert all(np.abs(found[0] - other).max() > 0.01 for other in found[1:])
    assert (found == run(name, same)).all()
    assert (found != run(name, same, seed=1)).any()


def test_brightness_and_saturation_are_those_of_hsv() -> None:
    import colorsys

    pixels = np.random.default_rng(0).random((1, 6, 6, 3)).astype(np.float32)
    pixels[0, 0, 0], pixels[0, 0, 1] = 0.0, 0.5  # black, grey
    for name, change in {
        "brightness": lambda hue, sat, value: (hue, sat, min(1.0, value + 0.3)),
        "saturate": lambda hue, sat, value: (hue, min(1.0, sat * 2.5 + 0.2), value),
    }.items():
        found = run(name, pixels)
        for pixel, changed in zip(pixels.reshape(-1, 3), found.reshape(-1, 3), strict=True):
            expected = colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel.tolist())))
            assert changed == pytest.approx(expected, abs=1e-5)


def test_contrast_keeps_the_mean_and_draws_to_it() -> None:
    before, after = images(), run("contrast")
    assert after.mean((1, 2)) == pytest.approx(before.mean((1, 2)), abs=1e-5)
    assert after.std((1, 2)) == pytest.approx(0.15 * before.std((1, 2)), abs=1e-5)


def test_mud_is_brown() -> None:
    white = np.ones((4, 32, 32, 3), np.float32)
    found = run("spatter", white)
    muddy = found[found.min(-1) < 0.3]
    assert 0.002 < len(muddy) / found[..., 0].size < 0.3
    assert (np.diff(muddy, axis=-1) < 0).all()


def test_a_batch_of_mixed_corruptions_keeps_its_order() -> None:
    plain = (images(20).transpose(0, 3, 1, 2) * 255).astype(np.uint8)
    kinds = np.tile([3, 4], 10)
    found = corrupt_images(plain, kinds, np.random.default_rng(0))
    whole = plain.transpose(0, 2, 3, 1).astype(np.float32) / 255
    for kind, name in {3: "brightness", 4: "contrast"}.items():
        expected = (run(name, whole[kinds == kind]) * 255).transpose(0, 3, 1, 2)
        assert np.abs(found[kinds == kind] - expected).max() <= 1.001


def load(**options: object) -> data.Dataset:
    return data.load({"name": "corrupted_cifar10", **options})


@pytest.mark.slow
def test_shares_are_exact_and_only_training_is_biased(root: Path) -> None:
    write_cifar10(root, per_class=20)
    dataset = load(rho=0.95, val_share=0.2)
    own = {name: int((split.bias == split.target).sum()) for name, split in dataset.splits.items()}
    assert own == {"train": 10 * 76, "val": 10 * 2, "test": 10 * 2}
    assert dataset.facts.title == "Corrupted CIFAR-10"
    biased = load(rho=0.95, val_share=0.2, val="biased").splits["val"]
    assert (biased.bias == biased.target).sum() == 10 * 19
    assert load().fingerprint == load(seed=0).fingerprint != load(seed=1).fingerprint
