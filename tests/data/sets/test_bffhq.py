"""bffhq in both published layouts, with generated images."""

import pytest
from pictures import numbers, picture

from study import data
from study.errors import UserError

LAYOUTS = {
    "published": ("0.5pct/align", "0.5pct/conflict", "0.5pct/valid", "test"),
    "repacked": ("train/align", "train/conflict", "valid", "test"),
}


@pytest.fixture(params=LAYOUTS)
def folder(home, request):
    align, conflict, valid, test = (home / "bffhq" / part for part in LAYOUTS[request.param])
    for label in (0, 1):
        for number in range(3):
            picture(align / str(label) / f"{number + 10 * label}_{label}_{label}.png", 3 * label)
        picture(conflict / str(label) / f"{7 + label}_{label}_{1 - label}.png", 2 * label + 1 - label)
        for bias in (0, 1):
            for place in (valid, test):
                picture(place / f"{50 + 2 * label + bias}_{label}_{bias}.png", 2 * label + bias)
    return home / "bffhq"


def test_labels_are_those_of_the_names(folder):
    dataset = data.load({"name": "bffhq", "size": 6})
    for split in dataset.splits.values():
        assert numbers(split.inputs) == (2 * split.target + split.bias).tolist()
    assert [len(split) for split in dataset.splits.values()] == [8, 4, 4]
    assert int((dataset.splits["train"].target != dataset.splits["train"].bias).sum()) == 2


def test_a_name_that_says_no_labels(folder):
    picture(folder / "test" / "5_2_0.png")
    with pytest.raises(UserError, match=r"5_2_0\.png: its name is not ID_CLASS_BIAS\.png"):
        data.load({"name": "bffhq", "size": 6})


def test_a_folder_that_is_not_there_or_empty(folder):
    for file in (folder / "test").iterdir():
        file.unlink()
    with pytest.raises(UserError, match=r"test: holds no images"):
        data.load({"name": "bffhq", "size": 6})
    (folder / "test").rmdir()
    with pytest.raises(UserError, match=r"no images for split test: needs the folders test"):
        data.load({"name": "bffhq", "size": 6})
