"""cub and ut_zappos: official layouts with generated images, attributes as the condition."""

import numpy as np
import pytest
from pictures import numbers, picture

from study import data
from study.data.sets.listed_images import SHOE_CLASS_NAMES
from study.errors import UserError

pytestmark = pytest.mark.usefixtures("home")


def seen(image: int, attribute: int) -> int:
    return int((image * 7 + attribute) % 5 == 0)


@pytest.fixture
def birds(home):
    """Three images of each of 20 species, two of them for training."""
    folder = home / "CUB_200_2011"
    (folder / "attributes").mkdir(parents=True)
    lists = {"images": [], "image_class_labels": [], "train_test_split": []}
    rows = []
    for image in range(60):
        species = 10 * (image // 3) + 1
        name = f"{species:03d}.Bird/Bird_{image:04d}.jpg"
        picture(folder / "images" / name, image, (6, 5))
        lists["images"].append(f"{image + 1} {name}")
        lists["image_class_labels"].append(f"{image + 1} {species}")
        lists["train_test_split"].append(f"{image + 1} {int(image % 3 < 2)}")
        rows += [f"{image + 1} {attribute + 1} {seen(image, attribute)} 3 1.5" for attribute in range(312)]
    rows[3] += " 0 9.408"  # the official file has such rows
    for name, lines in lists.items():
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "attributes" / "image_attribute_labels.txt").write_text("\n".join(rows) + "\n")
    shares = [" ".join(f"{(species + attribute) % 101:.3f}" for attribute in range(312)) for species in range(200)]
    (folder / "attributes" / "class_attribute_labels_continuous.txt").write_text("\n".join(shares) + "\n")
    return folder


def cub(**options):
    return data.load({"name": "cub", "size": 4, "val_share": 0.5, **options})


def test_birds_with_what_was_seen_in_them(birds):
    dataset = cub()
    assert [len(split) for split in dataset.splits.values()] == [20, 20, 20]
    assert dataset.facts.classes == 200
    for name, split in dataset.splits.items():
        for number, target, condition in zip(numbers(split.inputs), split.target, split.condition, strict=True):
            assert target == 10 * (number // 3)
            assert (number % 3 == 2) == (name == "test")
            assert condition.tolist() == [seen(number, attribute) for attribute in range(312)]


def test_birds_with_what_people_see_in_their_species(birds):
    split = cub(condition="continuous").splits["test"]
    expected = (split.target[:, None] + np.arange(312)) % 101 / 100
    assert np.abs(split.condition - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("image_class_labels.txt", "\n5 11\n", "\n5 201\n", r"column 'class', row 5: the value is '201'"),
        ("train_test_split.txt", "\n5 1\n", "\n5 2\n", r"column 'is_training', row 5: the value is '2'"),
        ("images.txt", "\n5 ", "\n5 ../../", r"images\.txt: column 'file', row 5: '\.\./\.\./011\.Bird/"),
        ("train_test_split.txt", "\n60 0", "", "its three lists of images name different images"),
        (
            "attributes/image_attribute_labels.txt",
            "\n1 2 ",
            "\n1 313 ",
            r"image_attribute_labels\.txt: column 'attribute', row 2: the value is '313'",
        ),
        ("attributes/image_attribute_labels.txt", "\n60 312 0 3 1.5", "", "lacks 1 of 18720 rows"),
    ],
)
def test_bad_lists_of_birds(birds, file, old, new, message):
    path = birds / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError, match=message):
        cub()


def test_species_with_numbers_missing(birds):
    path = birds / "attributes" / "class_attribute_labels_continuous.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:150]))
    with pytest.raises(UserError, match="has 150 x 312 numbers, 200 x 312 are needed"):
        cub(condition="continuous")


@pytest.fixture
def shoes(home):
    """Ten of each kind."""
    folder = home / "ut-zap50k-data"
    folder.mkdir()
    columns = [f"Material.{index}" for index in range(120)] + [f"Gender.{index}" for index in range(6)]
    labels = ["CID,Category,SubCategory,HeelHeight,Insole,Closure,Gender,Material,ToeStyle"]
    binary = [",".join(["CID", "Category.Shoes", "SubCategory.Oxfords", *columns])]
    for number in range(210):
        kind = SHOE_CLASS_NAMES[number % 21]
        cid = f"{100627 + number}-{number}"
        labels.append(f"{cid},Shoes,{kind},,,Lace up,Men,Leather,")
        binary.append(",".join([cid, "1", "0", *(str(number >> bit & 1) for bit in range(126))]))
        picture(home / "ut-zap50k-images" / "Shoes" / kind / "A Brand" / f"{cid.replace('-', '.')}.jpg", number)
    (folder / "meta-data.csv").write_text("\n".join(labels) + "\n")
    (folder / "meta-data-bin.csv").write_text("\n".join(binary) + "\n")
    return home


def zappos(**options):
    return data.load({"name": "ut_zappos", "size": 4, **options})


def test_shoes_with_their_attributes(shoes):
    dataset = zappos()
    assert [len(split) for split in dataset.splits.values()] == [132, 15, 63]
    everything = []
    for split in dataset.splits.values():
        found = numbers(split.inputs)
        everything += found
        assert split.target.tolist() == [number % 21 for number in found]
        assert (split.condition[:, :8] @ (1 << np.arange(8))).astype(int).tolist() == found
        assert split.condition.shape[1] == dataset.facts.condition == 126
    assert sorted(everything) == list(range(210))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("meta-data.csv", "Boat Shoes", "Canoe Shoes", r"column 'SubCategory', row 3: the value is 'Canoe Shoes'"),
        ("meta-data.csv", "100630-3", "100630-4", "its CIDs are not those of meta-data.csv"),
        ("meta-data-bin.csv", "Material.7,", "", "has 125 attributes, 126 are needed|not readable as a table"),
        ("meta-data-bin.csv", "100630-3,1,0,1", "100630-3,1,0,2", "not 0 or 1 everywhere"),
    ],
)
def test_bad_tables_of_shoes(shoes, file, old, new, message):
    path = shoes / "ut-zap50k-data" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError, match=message):
        zappos()


def test_a_shoe_without_an_image(shoes):
    next((shoes / "ut-zap50k-images").rglob("100627.0.jpg")).unlink()
    with pytest.raises(UserError, match="no image of 1 shoes, as 100627-0"):
        zappos()
