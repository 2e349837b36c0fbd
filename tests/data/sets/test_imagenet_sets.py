"""imagenet9 and imagenet100: the usual trees with generated images, the lists beside them."""

import numpy as np
import pytest
from pictures import numbers, picture

from study import data
from study.data.sets.imagenet9 import CLASS_NAMES, CLASS_OF_FOLDER
from study.errors import UserError

HUNDRED = [f"n{10_000_000 + 37 * index}" for index in range(100)]

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def nine(home):
    """Per class four training, two test images; some of the classes in ImageNet-A; a class that is none of them."""
    rows = ["path,category,cluster1,cluster2,cluster3"]
    for index, (folder, kind) in enumerate(CLASS_OF_FOLDER.items()):
        for number in range(4):
            picture(home / "imagenet" / "train" / folder / f"{folder}_{number}.JPEG", kind)
        for number in range(2):
            name = f"{folder}/ILSVRC2012_val_{2 * index + number:08d}.JPEG"
            picture(home / "imagenet" / "val" / name, 16 * kind + (index + number) % 9)
            rows.append(f"{name},{CLASS_NAMES[kind]},{(index + number) % 9},{index % 9},0")
        if index % 3 == 0:
            picture(home / "imagenet-a" / folder / "0.001_fox _ squirrel_0.9.jpg", kind)
    picture(home / "imagenet" / "train" / "n99999999" / "other.JPEG", 99)
    (home / "imagenet" / "9class_imagenet_val.csv").write_text("\n".join(rows) + "\n")
    return home


def imagenet9(**options):
    return data.load(
        {"name": "imagenet9", "size": 4, "val_share": 0.25, "clustering": 1, "imagenet_a": True, **options}
    )


def test_textures_are_those_of_the_list_and_of_the_test_split_alone(nine):
    dataset = imagenet9()
    test = dataset.splits["test"]
    assert numbers(test.inputs) == (16 * test.target + test.bias).tolist()
    assert [len(split) for split in dataset.splits.values()] == [126, 42, 84, 14]
    for name in ("train", "val", "imagenet_a"):
        assert numbers(dataset.splits[name].inputs) == dataset.splits[name].target.tolist()
        assert dataset.splits[name].bias is None
    assert dataset.facts.bias_splits == ("test",)


def test_without_textures_no_list_is_needed(nine):
    (nine / "imagenet" / "9class_imagenet_val.csv").unlink()
    dataset = imagenet9(clustering=0, imagenet_a=False)
    assert dataset.facts.bias_classes is None
    assert list(dataset.splits) == ["train", "val", "test"]
    with pytest.raises(UserError, match=r"9class_imagenet_val\.csv: not found"):
        imagenet9()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("00000003.JPEG,cat,", "00000003.JPEG,cow,", "n/a"),
        ("_00000000.JPEG,dog,0,", "_00000000.JPEG,dog,9,", r"column 'cluster1', row 1: the value is '9'"),
        ("_00000000.JPEG", "_00009999.JPEG", r"no texture of 1 test images, as n02085620/ILSVRC2012_val_00000000"),
        ("cluster1", "texture", r"no column 'cluster1'\. Did you mean 'cluster2'|no column 'cluster1'"),
    ],
)
def test_bad_texture_lists(nine, old, new, message):
    path = nine / "imagenet" / "9class_imagenet_val.csv"
    if message == "n/a":
        old, message = "00000003.JPEG,dog,", r"column 'category', row 4: the value is 'cow'"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=message):
        imagenet9()


def test_a_class_folder_that_is_not_there(nine):
    (nine / "imagenet" / "val" / "n02085620").rename(nine / "imagenet" / "val" / "n02085621")
    with pytest.raises(UserError, match=r"imagenet/val: no folder n02085620, 42 are needed"):
        imagenet9()


@pytest.fixture
def hundred(home):
    for index, name in enumerate(HUNDRED):
        for number in range(3):
            picture(home / "imagenet" / "train" / name / f"{name}_{number}.JPEG", index, (4, 4))
        picture(home / "imagenet" / "val" / name / f"ILSVRC2012_val_{index:08d}.JPEG", index, (4, 4))
    (home / "imagenet" / "imagenet100.txt").write_text("\n".join(reversed(HUNDRED)) + "\n")
    return home


def imagenet100(**options):
    return data.load({"name": "imagenet100", "size": 4, "val_share": 1 / 3, **options})


@pytest.mark.slow
def test_classes_are_numbered_by_name(hundred):
    dataset = imagenet100()
    assert [len(split) for split in dataset.splits.values()] == [200, 100, 100]
    for split in dataset.splits.values():
        assert numbers(split.inputs) == split.target.tolist()


def vectors(home, names, keep=slice(None)):
    values = np.stack([np.arange(len(names)), -np.arange(len(names))], 1).astype(np.float16)
    np.savez(home / "clip.npz", keys=np.array(names)[keep], values=values[keep])


@pytest.mark.slow
def test_vectors_of_a_file_go_to_their_images(hundred):
    files = sorted(path.relative_to(hundred / "imagenet").as_posix() for path in hundred.rglob("*.JPEG"))
    vectors(hundred, files)
    dataset = imagenet100(condition_file="clip.npz")
    assert dataset.facts.condition == 2
    classes = np.array([HUNDRED.index(name.split("/")[1]) for name in files])
    for split in dataset.splits.values():
        assert split.condition.dtype == np.float32
        assert (split.condition[:, 0] == -split.condition[:, 1]).all()
        assert (classes[split.condition[:, 0].astype(int)] == split.target).all()
    assert len({*np.concatenate([split.condition[:, 0] for split in dataset.splits.values()])}) == 400
    vectors(hundred, files, slice(7, None))
    with pytest.raises(UserError, match=r"no vector for 7 of 300 samples, such as 'train/n10000000/"):
        imagenet100(condition_file="clip.npz")


def test_before_the_file_of_vectors_is_there_a_study_can_be_planned(hundred):
    section = {"name": "imagenet100", "class_file": "imagenet/imagenet100.txt", "condition_file": "clip.npz"}
    assert data.describe(section).condition == 0
    with pytest.raises(UserError, match=r"clip\.npz: not found\. .*github\.com/openai/CLIP.*`keys` \(N,\)"):
        imagenet100(condition_file="clip.npz")
    vectors(hundred, ["one"])
    assert data.describe(section).condition == 2
    (hundred / "imagenet" / "imagenet100.txt").unlink()
    with pytest.raises(UserError, match=r"imagenet100\.txt: not found\. .* one per line, is needed"):
        imagenet100(condition_file="clip.npz")


@pytest.mark.parametrize("names", [HUNDRED[:99], [*HUNDRED[:99], HUNDRED[0]]])
def test_a_list_of_other_than_100_classes(hundred, names):
    (hundred / "imagenet" / "imagenet100.txt").write_text("\n".join(names))
    with pytest.raises(UserError, match=r"imagenet100\.txt: names 99 classes in (99|100) lines, 100 are needed"):
        imagenet100()


def test_a_class_outside_the_tree(hundred):
    (hundred / "imagenet" / "imagenet100.txt").write_text("\n".join([*HUNDRED[:99], "../val/" + HUNDRED[99]]))
    with pytest.raises(UserError, match=r"imagenet100\.txt: column 'class', row 100: '\.\./val/n\d+' given"):
        imagenet100()
