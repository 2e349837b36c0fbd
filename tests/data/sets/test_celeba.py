"""celeba in the official layout, with generated images."""

import pytest
from pictures import numbers, picture

from study import data
from study.data.sets.listed_images import CELEBA_ATTRIBUTES
from study.errors import UserError

SPLITS = [0] * 8 + [1] * 4 + [2] * 4


def values(index: int) -> dict[str, int]:
    """Attributes of an image: the four that the tests use run through all combinations, the others are absent."""
    bits = {"Male": 0, "Young": 1, "Attractive": 2, "Big_Nose": 3}
    return {name: (index >> bits[name] & 1 if name in bits else 0) for name in CELEBA_ATTRIBUTES}


@pytest.fixture
def folder(home):
    folder = home / "celeba"
    names = [f"{index + 1:06d}.jpg" for index in range(16)]
    for index, name in enumerate(names):
        picture(folder / "img_align_celeba" / name, index, (178, 218))
    rows = [
        name + "".join(f" {2 * value - 1:2d}" for value in values(index).values()) for index, name in enumerate(names)
    ]
    (folder / "list_attr_celeba.txt").write_text("\n".join(["16", " ".join(CELEBA_ATTRIBUTES) + " ", *rows]) + "\n")
    splits = [f"{name} {split}" for name, split in zip(names, SPLITS, strict=True)]
    (folder / "list_eval_partition.txt").write_text("\n".join(splits) + "\n")
    return folder


def load(**options):
    return data.load({"name": "celeba", "size": 8, **options})


def test_images_labels_and_splits_belong_together(folder):
    dataset = load()
    assert [numbers(dataset.splits[name].inputs) for name in ("train", "val", "test")] == [
        [*range(8)],
        [*range(8, 12)],
        [*range(12, 16)],
    ]
    for split in dataset.splits.values():
        for number, target, bias in zip(numbers(split.inputs), split.target, split.bias, strict=True):
            assert (target, bias) == (values(number)["Attractive"], values(number)["Male"])


def test_pairs_give_four_values(folder):
    dataset = load(target="Big_Nose+Attractive", sensitive="Male+Young")
    assert (dataset.facts.classes, dataset.facts.bias_classes) == (4, 4)
    for split in dataset.splits.values():
        for number, target, bias in zip(numbers(split.inputs), split.target, split.bias, strict=True):
            found = values(number)
            assert target == found["Big_Nose"] + 2 * found["Attractive"]
            assert bias == found["Male"] + 2 * found["Young"]


def test_described_without_files(home):
    facts = data.describe({"name": "celeba", "sensitive": "Male+Young"})
    assert (facts.classes, facts.bias_classes, facts.shape) == (2, 4, (3, 128, 128))
    with pytest.raises(UserError, match=r"list_attr_celeba\.txt: not found"):
        load()


def test_an_attribute_that_is_none_is_told_before_anything_is_read():
    with pytest.raises(UserError, match=r"data\.target: 'Atractive' given\. Did you mean 'Attractive'\?"):
        data.describe({"name": "celeba", "target": "Atractive"})
    with pytest.raises(UserError, match="twice"):
        data.describe({"name": "celeba", "sensitive": "Male+Male"})


def test_a_list_of_other_images(folder):
    path = folder / "list_eval_partition.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(UserError, match=r"does not list the images of .* \(15 and 16 images\)"):
        load()


def test_an_image_outside_the_folder(folder):
    for name in ("list_attr_celeba.txt", "list_eval_partition.txt"):
        (folder / name).write_text((folder / name).read_text().replace("000003.jpg", "../000003.jpg"))
    with pytest.raises(UserError, match=r"list_attr_celeba\.txt: column 'file', row 3: '\.\./000003\.jpg' given"):
        load()
