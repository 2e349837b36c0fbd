"""image_folder: the user's images, by CSV, in folders or flat; what is wrong is told with file, column and remedy."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_folders import HEADER, drawn, load, rows, write
from pictures import numbers, picture, truncate

from study import data
from study.commands import init
from study.commands.init_answers import AnswerSource
from study.errors import UserError
from study.spec import load_study


@pytest.fixture(autouse=True)
def home(workplace):
    return workplace / "mine"


def test_a_flat_folder_is_split_by_shares_of_each_cell(home):
    write(home, rows())
    dataset = load(bias="gender", val_share=0.25, test_share=0.2)
    assert [len(split) for split in dataset.splits.values()] == [24, 8, 8]
    assert sorted(number for found in drawn(dataset).values() for number in found) == list(range(40))
    for split in dataset.splits.values():
        found = np.array(numbers(split.inputs))
        assert (split.target == found % 2).all()
        assert (split.bias == found // 2 % 2).all()
        assert np.bincount(2 * split.target + split.bias).tolist() == [len(split) // 4] * 4
    assert drawn(load(bias="gender", val_share=0.25, test_share=0.2)) == drawn(dataset)
    assert drawn(load(bias="gender", val_share=0.25, test_share=0.2, split_seed=1)) != drawn(dataset)


def test_a_column_says_the_split(home):
    write(home, rows())
    found = drawn(load(split="part"))
    assert found == {
        name: [number for number in range(40) if number // 4 % 4 in codes]
        for name, codes in {"train": (0, 1), "val": (2,), "test": (3,)}.items()
    }


@pytest.mark.parametrize("names", [("train", "test"), ("Train", "Test"), ("TRAINING", "testing")])
def test_folders_of_splits_are_known_in_any_letters_and_are_no_classes(home, names):
    for number in range(40):
        picture(home / names[number < 8] / ("cat", "dog")[number % 2] / f"{number}.png", number, (6, 5))
    dataset = load(labels="folders")
    assert dataset.facts.class_names == ("cat", "dog")
    assert sorted(drawn(dataset)["test"]) == list(range(8))


def test_files_of_classes_that_are_no_images_by_their_ending_are_told(home):
    for number in range(40):
        picture(home / ("cat", "dog")[number % 2] / f"{number}.png", number, (6, 5))
    (home / "cat" / "0.png").rename(home / "cat" / "0.jfif")  # as browsers save a JPEG
    (home / "about.heic").write_text("")
    (home / "cat" / "Thumbs.db").write_text("")
    section = {"name": "image_folder", "path": "mine", "labels": "folders"}
    assert data.user_file_notes(section) == []
    (home / "cat" / "seven.heic").write_text("")
    (home / "dog" / "eight.avif").write_text("")
    (note,) = data.user_file_notes(section)
    assert note.startswith("2 files in folders of classes, whose ending ('.avif', '.heic') is none of an image, left")


@pytest.mark.parametrize("prefixed", [True, False])
def test_folders_say_the_split_and_validation_is_cut_from_train(home, prefixed):
    lines, place = rows(), lambda number: "test" if number < 8 else "train"
    listed = [f"{place(number)}/{line}" if prefixed else line for number, line in enumerate(lines)]
    write(home, listed, place)
    dataset = load(val_share=0.25)
    assert drawn(dataset)["test"] == list(range(8))
    assert [len(split) for split in dataset.splits.values()] == [24, 8, 8]


def test_a_file_that_is_in_the_folders_of_two_splits_is_not_guessed(home):
    write(home, rows(), lambda number: "test" if number < 8 else "train")
    picture(home / "train" / "3.png", 50, (6, 5))
    with pytest.raises(UserError, match=r"mine: '3\.png' is in several of its folders: \w+, \w+\. List it with"):
        load()
    lines = [f"test/{line}" if line.startswith("3.png") else line for line in rows()]
    (home / "labels.csv").write_text("\n".join([HEADER, *lines]))
    assert drawn(load())["test"] == list(range(8))


def test_no_test_split_where_none_is_wanted(home):
    write(home, rows())
    assert load(test_share=0.0).facts.splits == ("train", "val")


def test_attributes_are_combined_and_conditions_taken_as_they_are(home):
    write(home, rows())
    dataset = load(bias="gender+young", condition=["weight", "young"])
    assert (dataset.facts.bias_classes, dataset.facts.condition) == (4, 2)
    for split in dataset.splits.values():
        found = np.array(numbers(split.inputs))
        assert (split.bias == found // 2 % 2 + 2 * (found // 4 % 2)).all()
        assert (split.condition == np.stack([found / 8, found // 4 % 2], 1)).all()


def without_gender(lines):
    """The same, the first twenty without a gender."""
    return [line.replace(",f,", ",,").replace(",m,", ",,") for line in lines[:20]] + lines[20:]


def test_a_bias_that_is_not_known_is_kept_where_that_is_wished(home):
    write(home, without_gender(rows()))
    with pytest.raises(UserError, match="column 'gender', row 1: the value is empty"):
        load(bias="gender")
    dataset = load(bias="gender+young", bias_gaps="unknown", val_share=0.25, test_share=0.2)
    assert dataset.facts.some_bias
    assert [len(split) for split in dataset.splits.values()] == [24, 8, 8]
    for split in dataset.splits.values():
        found = np.array(numbers(split.inputs))
        known = found // 2 % 2 + 2 * (found // 4 % 2)
        assert (split.bias == np.where(found < 20, -1, known)).all()
        assert (split.bias < 0).sum() == len(split) // 2  # each split has its share of them
    write(home, rows())
    assert not load(bias="gender", bias_gaps="unknown").facts.some_bias


def test_conditions_from_a_file(home):
    write(home, rows())
    np.savez(home / "clip.npz", keys=[f"{n}.png" for n in range(50)], values=np.arange(100).reshape(50, 2))
    dataset = load(condition_file="mine/clip.npz")
    for split in dataset.splits.values():
        assert (split.condition[:, 0] == 2 * np.array(numbers(split.inputs))).all()
    with pytest.raises(UserError, match="give one of them"):
        load(condition_file="mine/clip.npz", condition=["weight"])


def test_a_parquet_list_gives_the_same_and_its_gaps_are_told(home):
    write(home, rows())
    table = pd.read_csv(home / "labels.csv")
    table.to_parquet(home / "labels.parquet")
    assert load(labels="labels.parquet", bias="young").fingerprint == load(bias="young").fingerprint
    table.loc[3, "gender"] = None
    table.to_parquet(home / "labels.parquet")
    with pytest.raises(UserError, match=r"labels\.parquet: column 'gender', row 4: the value is empty"):
        load(labels="labels.parquet", bias="gender")


def test_described_without_reading_images(home):
    home.mkdir()
    (home / "labels.csv").write_text("\n".join([HEADER, *rows()]))
    facts = data.describe({"name": "image_folder", "path": "mine", "bias": "gender", "condition": ["weight"]})
    assert (facts.classes, facts.bias_classes, facts.shape, facts.condition) == (2, 2, (3, 64, 64), 1)
    assert facts.splits == ("train", "val", "test")
    assert any(
        note.startswith("40 files are listed but missing")
        for note in data.user_file_notes({"name": "image_folder", "path": "mine"})
    )
    with pytest.raises(UserError, match="40 files are listed but missing"):
        load()


def test_a_text_named_as_an_image_is_told_before_images_are_read(home):
    write(home, rows())
    section = {"name": "image_folder", "path": "mine"}
    assert data.user_file_notes(section) == []
    (home / "7.png").write_text("no image\n")
    (note,) = data.user_file_notes(section)
    assert note.startswith("1 file is not readable as images: ")
    assert "mine/7.png (is no image" in note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "traget"}, r"labels\.csv: no column 'traget'\. Did you mean 'target'\? It has: file, target"),
        ({"bias": "gender+old"}, r"no column 'old'"),
        ({"file": "path"}, r"no column 'path'"),
        ({"split": "gender"}, r"column 'gender', row 1: 'f' is not a split, allowed: training, valid"),
        ({"condition": ["gender"]}, r"column 'gender', row 1: 'f' is not a finite number"),
        ({"target": "weight"}, r"column 'weight' holds numbers, 40 different ones"),
        ({"labels": "list.csv"}, r"mine/list\.csv: not found"),
        ({"labels": "x" * 300}, r"mine/x+: not found"),
        ({"path": "x" * 300}, r"x+: not found\. Looked for"),
        ({"path": "~nobody-of-this-name/mine"}, r"~nobody-of-this-name/mine: not found\. Looked for"),
        ({"path": "yours"}, r"yours: not found\. Looked for .*/yours and .*data/yours"),
        ({"condition_file": "clip.npz"}, r"clip\.npz: not found"),
    ],
)
def test_keys_that_do_not_fit_the_file(home, options, message):
    write(home, rows())
    with pytest.raises(UserError, match=message):
        data.describe({"name": "image_folder", "path": "mine", "size": 4, **options})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, lines[3]], r"column 'file', row 41: '3\.png' is the file of row 4\. Take"),
        (lambda lines: [lines[0].replace("cat", ""), *lines[1:]], r"column 'target', row 1: the value is empty"),
        (lambda lines: [",dog,m,0,0,train", *lines], r"column 'file', row 1: is empty"),
        (lambda lines: [f"../{lines[0]}", *lines[1:]], r"column 'file', row 1: '\.\./0\.png' given, allowed is a"),
        (lambda lines: [*lines, "x" * 300 + lines[7]], r"1 file is listed but missing: .*mine/x+7\.png"),
        (lambda lines: [], r"labels\.csv: has no rows"),
        (lambda lines: [lines[0], lines[1] + ",7,8", *lines[2:]], r"labels\.csv: not readable as a table"),
        (lambda lines: [lines[0].replace("cat", "nan"), *lines[1:]], r"column 'target', row 1: the value is empty, or"),
        (
            lambda lines: [lines[0].replace("cat", "-inf"), *lines[1:]],
            r"column 'target', row 1: the value is '-inf', no",
        ),
        (lambda lines: [lines[0].replace("cat", "cta"), *lines[1:]], r"column 'target': the value 'cta' is in 1 of 40"),
        (
            lambda lines: [line + ",7" for line in lines],
            r"labels\.csv: not readable as a table: its rows have more values than its header",
        ),
        (lambda lines: [line.replace("dog", "cat") for line in lines], r"has 1 different value in 40 rows"),
    ],
)
def test_bad_lists(home, change, message):
    write(home, rows())
    (home / "labels.csv").write_text("\n".join([HEADER, *change(rows())]) + "\n")
    with pytest.raises(UserError, match=message):
        load()


def test_a_header_with_a_name_twice(home):
    """Which of two columns is meant is not guessed; what is not used may be there as often as it likes."""
    write(home, rows())
    (home / "labels.csv").write_text("\n".join([HEADER.replace("gender", "target"), *rows()]))
    with pytest.raises(UserError, match=r"labels\.csv: column 'target' is there 2 times, as column 2 and 3"):
        load()
    (home / "labels.csv").write_text("\n".join([HEADER.replace("gender", "young"), *rows()]))
    assert load().facts.classes == 2
    with pytest.raises(UserError, match=r"labels\.csv: column 'young' is there 2 times"):
        load(bias="young")


def test_an_empty_split(home):
    write(home, [line.replace("Validation", "train").replace("train", "test") for line in rows()])
    with pytest.raises(UserError, match=r"column 'part': split train is empty: 40 samples, none is left for it"):
        load(split="part")
    write(home, rows(4))
    with pytest.raises(UserError, match=r"split (val|test) is empty"):
        load()


def test_a_truncated_image_is_named(home):
    write(home, rows())
    truncate(home / "7.png")
    with pytest.raises(UserError, match=r"1 file is not readable as images: .*mine/7\.png"):
        load()


@settings(max_examples=15)
@given(
    cells=st.lists(st.integers(0, 3), min_size=30, max_size=80),
    val=st.floats(0.1, 0.5),
    test=st.floats(0.1, 0.5),
    seed=st.integers(0, 2**32),
)
def test_splits_are_disjoint_complete_and_stratified(cells, val, test, seed):
    from types import SimpleNamespace

    from study.data.user_data import divide_into_splits

    labels = np.array([0, 1, 2, 3] * 10 + cells)
    rule = SimpleNamespace(val=None, val_share=val, test_share=test, split_seed=seed)
    splits = divide_into_splits(labels, None, rule, "here")
    assert sorted(np.concatenate(list(splits.values())).tolist()) == list(range(len(labels)))
    for cell in range(4):
        count = int((labels == cell).sum())
        assert abs((labels[splits["test"]] == cell).sum() - test * count) < 1


def test_pictures_of_equal_bytes_stay_in_one_split_and_so_do_groups(home):
    write(home, rows(80))
    for number in range(40):  # the second half are copies and links of the first
        (home / f"{number + 40}.png").unlink()
        if number % 2:
            (home / f"{number + 40}.png").symlink_to(home / f"{number}.png")
        else:
            (home / f"{number + 40}.png").write_bytes((home / f"{number}.png").read_bytes())
    found = drawn(load())
    assert sum(len({*numbers}) for numbers in found.values()) == 40
    section = {"name": "image_folder", "path": "mine"}
    assert data.user_file_notes(section) == ["40 of 80 pictures have the bytes of another one: they stay in one split"]
    own = data.user_file_notes({**section, "split": "part", "group": "gender"})
    assert own[0].startswith("data.group: 2 values of 'gender' are in several splits: '")
    for old in home.glob("*.png"):
        old.unlink()
    write(home, rows(80))
    assert data.user_file_notes(section) == []
    table = pd.read_csv(home / "labels.csv").assign(patient=[n // 4 for n in range(80)])
    table.to_csv(home / "labels.csv", index=False)
    people = [{number // 4 for number in split} for split in drawn(load(group="patient")).values()]
    assert sum(map(len, people)) == 20


@pytest.mark.parametrize("mark", ["NA", "nan", "", "?"])
def test_marks_of_missing_values_are_those_of_tables(home, mark):
    table = pd.DataFrame([line.split(",") for line in rows()], columns=HEADER.split(","))
    write(home, rows())
    table.assign(gender=[mark, *table["gender"][1:]]).to_csv(home / "labels.csv", index=False)
    marks = {"missing_marks": ["?"]} if mark == "?" else {}
    facts = load(bias="gender", bias_gaps="unknown", **marks).facts
    assert (facts.bias_names, facts.some_bias) == (("f", "m"), True)
    with pytest.raises(UserError, match=r"column 'gender', row 1: the value is empty"):
        load(bias="gender", **marks)


@pytest.mark.parametrize("parts", [[""], ["train", "val", "test"]])
def test_folders_are_classes_where_there_is_no_table(home, parts):
    for number in range(48):
        suffix = "gif" if number == 7 else "png"
        place = home / parts[number // 2 % len(parts)] / ("cat", "dog")[number % 2]
        picture(place / f"{number}.{suffix}", number, (6, 5))
    dataset = load(labels="folders")
    assert (dataset.facts.class_names, dataset.facts.bias_classes) == (("cat", "dog"), None)
    assert sorted(number for found in drawn(dataset).values() for number in found) == list(range(48))
    for name, split in dataset.splits.items():
        assert split.target.tolist() == [number % 2 for number in numbers(split.inputs)]
        assert parts == [""] or {number // 2 % 3 for number in numbers(split.inputs)} == {parts.index(name)}
    with pytest.raises(
        UserError, match=r"labels\.csv: not found\. Where folders are the classes: data\.labels: folders"
    ):
        load()
    with pytest.raises(UserError, match=r"data\.bias: 'gender' given, but folders of classes say no bias"):
        load(labels="folders", bias="gender")
    old = home / parts[0] / "cat" / "0.png"
    old.rename(home / parts[0] / "dog" / "0.png")  # the same pictures in the same order, another class
    moved = load(labels="folders")
    assert sum(int(split.target.sum()) for split in moved.splits.values()) == 25
    picture(home / "stray.png", 50, (6, 5))
    with pytest.raises(UserError, match=r"'stray\.png' is in no folder of a class"):
        load(labels="folders")


def test_init_finds_folders_of_classes(home, monkeypatch):
    for number in range(48):
        picture(home / ("cat", "dog")[number % 2] / f"{number}.png", number, (6, 5))
    monkeypatch.chdir(home.parent)
    told = []
    path = init.write_study_file(init.InitOptions("own", "mine"), None, False, AnswerSource(None, told.append))
    section = load_study(str(path)).base["data"]
    assert (section["labels"], section["bias"]) == ("folders", None)
    assert "labels: folders: the class of an image is its folder's name, the bias is not known" in told
    with pytest.raises(UserError, match=r"--bias gender: names a column, but .*mine has no table"):
        init.write_study_file(
            init.InitOptions("own", "mine", bias="gender"), None, True, AnswerSource(None, told.append)
        )
