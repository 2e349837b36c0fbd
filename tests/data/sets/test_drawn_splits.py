"""utkface and dogs_and_cats: official layouts with generated images, splits drawn from them."""

import numpy as np
import pytest
from pictures import numbers, picture

from study import data
from study.data import file_lists
from study.data.sets.listed_images import parse_utkface_name
from study.errors import UserError

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def faces(home):
    """12 of each gender, race (White or Black) and side of 35; the colour says which."""
    for number in range(96):
        age, gender, race = (20, 50)[number // 2 % 2], number % 2, number // 4 % 2
        picture(home / "UTKFace" / f"{age}_{gender}_{race}_2017{number:013d}.jpg.chip.jpg", number % 8)
    return home / "UTKFace"


def utkface(**options):
    few = {"train_samples": 18, "eval_samples": 8}
    return data.load({"name": "utkface", "size": 4, **few, **options})


def counts(split) -> list[list[int]]:
    return np.histogram2d(split.target, split.bias, bins=(2, 2))[0].astype(int).tolist()


@pytest.mark.parametrize(("severity", "many"), [(2, 3334), (3, 3750), (4, 4000)])
def test_the_published_counts_of_utkface(severity, many):
    """FSCL paper, Table 9."""
    cells = file_lists.biased_cell_counts(10_000, severity, frozenset({(0, 0), (1, 1)}))
    assert cells == {(0, 0): many, (1, 1): many, (0, 1): 5000 - many, (1, 0): 5000 - many}
    assert set(file_lists.biased_cell_counts(2_400, 1, frozenset()).values()) == {600}


def test_the_published_counts_of_dogs_and_cats():
    """FSCL paper, appendix H.2."""
    assert set(file_lists.biased_cell_counts(8_220, 5, frozenset({(0, 1), (1, 0)})).values()) == {3425, 685}


def test_utkface_is_biased_in_training_alone(faces):
    dataset = utkface(severity=2)
    assert [counts(split) for split in dataset.splits.values()] == [
        [[6, 3], [3, 6]],
        [[2, 2], [2, 2]],
        [[2, 2], [2, 2]],
    ]
    for split in dataset.splits.values():
        found = np.array(numbers(split.inputs))
        assert (split.target == 1 - found % 2).all()
        assert (split.bias == (found // 4 == 0)).all()


def test_among_the_older_men_are_the_many(faces):
    dataset = utkface(severity=2, sensitive="age")
    assert counts(dataset.splits["train"]) == [[3, 6], [6, 3]]
    found = np.array(numbers(dataset.splits["train"].inputs))
    assert (dataset.splits["train"].bias == (found // 2 % 2 == 0)).all()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("34_0_0_20170116174525125.jpg.chip.jpg", {"age": 1, "gender": 1, "ethnicity": 1}),
        ("35_1_4_20170116174525125.jpg.chip.jpg", {"age": 0, "gender": 0, "ethnicity": 0}),
        ("110_1_2_20170116220224657 .jpg.chip.jpg", {"age": 0, "gender": 0, "ethnicity": 0}),
        ("55_0_0_20170116232725357jpg.chip.jpg", {"age": 0, "gender": 1, "ethnicity": 1}),
        ("39_1_20170116174525125.jpg.chip.jpg", None),
        ("61_1_20170109142408075.jpg.chip.jpg", None),
        ("61_1_20170109150557335.jpg.chip.jpg", None),
        ("20_2_0_20170116174525125.jpg.chip.jpg", None),
        ("20_1_5_20170116174525125.jpg.chip.jpg", None),
        ("Thumbs.jpg", None),
    ],
)
def test_what_a_name_says(name, found):
    assert parse_utkface_name(name) == found


def test_the_known_malformed_names_are_left_out(faces):
    for name in ("39_1_20170116174525125", "61_1_20170109142408075", "61_1_20170109150557335"):
        (faces / f"{name}.jpg.chip.jpg").write_text("never read")
    assert len(utkface().splits["train"]) == 18


def test_a_folder_of_other_images_is_refused(faces):
    for number in range(4):
        picture(faces / f"holiday{number}.jpg")
    with pytest.raises(UserError, match="4 of 100 file names are not age_gender_race"):
        utkface()


def test_too_few_images_and_equal_attributes(faces):
    with pytest.raises(UserError, match=r"24 images of class 0 and bias class 0, 28 are needed \(24 for train"):
        utkface(train_samples=96, severity=1)
    with pytest.raises(UserError, match="another attribute"):
        utkface(sensitive="gender")


@pytest.fixture
def animals(home):
    """20 of each species and colour, and five cats on neither list."""
    folder = home / "dogs_and_cats"
    lists = {"bright": [], "dark": []}
    for number in range(80):
        name = f"{('cat', 'dog')[number % 2]}.{number}.jpg"
        lists[("bright", "dark")[number // 2 % 2]].append(name)
        picture(folder / "train" / name, number % 4)
    for number in range(5):
        picture(folder / "train" / f"cat.{900 + number}.jpg", 9)
    for colour, names in lists.items():
        (folder / f"list_{colour}.txt").write_text("\n".join(names) + "\n")
    return folder


def dogs_and_cats():
    return data.load({"name": "dogs_and_cats", "size": 4, "train_samples": 24, "eval_samples": 8})


def test_cats_are_dark_and_dogs_bright_in_training(animals):
    dataset = dogs_and_cats()
    assert [counts(split) for split in dataset.splits.values()] == [
        [[2, 10], [10, 2]],
        [[2, 2], [2, 2]],
        [[2, 2], [2, 2]],
    ]
    for split in dataset.splits.values():
        assert numbers(split.inputs) == (split.target + 2 * split.bias).tolist()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("mouse.7.jpg", "begins neither with"),
        ("cat.2.jpg", "is on the other list, too"),
        ("cat./../dog.1.jpg", "given, allowed is a relative path"),
    ],
)
def test_lists_that_make_no_sense(animals, entry, message):
    with (animals / "list_bright.txt").open("a") as file:
        file.write(entry + "\n")
    with pytest.raises(UserError, match=rf"'{entry}' {message}|entry 41: '{entry}' {message}"):
        dogs_and_cats()
