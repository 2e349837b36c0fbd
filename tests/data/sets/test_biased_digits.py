"""The 1,797 digits of scikit-learn, split and coloured by a seed."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from study import data
from study.data import Dataset
from study.data.sets import biased_digits


def load(**options: float) -> Dataset:
    return data.load({"name": "biased_digits", **options})


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load()


def strokes(images: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """The digit below the colour: the darkest channel of a ground that has a channel at 0."""
    from study.data.colour_bias import BACKGROUND_COLOURS

    channel = BACKGROUND_COLOURS[colours].argmin(1)
    ground = BACKGROUND_COLOURS[colours].min(1).astype(float)[:, None, None]
    shade = images[np.arange(len(images)), channel].astype(float)
    return np.rint(16 * (shade - ground) / (255 - ground)).astype(int)


def test_every_digit_is_in_exactly_one_split(dataset: Dataset) -> None:
    found = [strokes(split.inputs, split.bias) for split in dataset.splits.values()]
    whole = sorted(image.tobytes() for image in np.concatenate(found))
    assert len(whole) == 1797
    assert whole == sorted(image.tobytes() for image in load_digits().images.astype(int))


def test_a_scikit_learn_that_keeps_the_digits_elsewhere_is_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from_file = biased_digits.load_strokes_and_classes()
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    asked = biased_digits.load_strokes_and_classes()
    assert all(np.array_equal(*both) and both[0].dtype == both[1].dtype for both in zip(from_file, asked, strict=True))


def test_labels_stay_with_their_images(dataset: Dataset) -> None:
    digits = load_digits()
    label = {image.astype(int).tobytes(): target for image, target in zip(digits.images, digits.target, strict=True)}
    split = dataset.splits["val"]
    found = [label[image.tobytes()] for image in strokes(split.inputs, split.bias)]
    assert found == split.target.tolist()


def test_only_training_is_biased(dataset: Dataset) -> None:
    for name, rho in {"train": 0.95, "val": 0.1, "test": 0.1}.items():
        split = dataset.splits[name]
        own = np.bincount(split.target[split.bias == split.target], minlength=10)
        assert own.tolist() == [int(count * rho) for count in np.bincount(split.target)]


def test_the_fingerprint_sees_every_array(dataset: Dataset) -> None:
    from dataclasses import replace

    seen = {dataset.fingerprint}
    for name, split in dataset.splits.items():
        for field in ("inputs", "target", "bias"):
            array = getattr(split, field).copy()
            array.flat[-1] ^= 1
            changed = replace(split, **{field: array})
            seen.add(Dataset(dataset.facts, {**dataset.splits, name: changed}).fingerprint)
        seen.add(Dataset(dataset.facts, {**dataset.splits, name: replace(split, bias=None)}).fingerprint)
    assert len(seen) == 1 + 3 * 4


def test_the_condition_is_the_grounds_colour(dataset: Dataset) -> None:
    split = dataset.splits["train"]
    assert split.condition.shape == (len(split), 3)
    shown = split.inputs.min((2, 3)) / 255  # a stroke brightens all channels
    assert np.allclose(split.condition, shown, atol=0.06)


def test_of_several_data_sets_the_fingerprint_is_over_all(dataset: Dataset) -> None:
    other = load(seed=1)
    alone = data.joint_fingerprint({"a": dataset})
    both = data.joint_fingerprint({"a": dataset, "b": other})
    assert alone == dataset.fingerprint
    assert len({alone, both, data.joint_fingerprint({"a": other, "b": dataset}), other.fingerprint}) == 4
    assert both == data.joint_fingerprint({"b": other, "a": dataset})
