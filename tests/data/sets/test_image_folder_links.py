"""Links in a folder of images, and names that would lead out of it."""

import os
from pathlib import Path

import pytest
from escapes import ESCAPES
from hypothesis import given
from pictures import numbers, picture

from study import data
from study.data import label_files
from study.data.sets import image_folder
from study.errors import UserError

HEADER = "file,target,gender,young,weight,part"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine"


def rows(count: int = 40) -> list[str]:
    kinds, genders = ("cat", "dog"), ("f", "m")
    parts = ("train", "train", "Validation", "test")
    return [
        f"{n}.png,{kinds[n % 2]},{genders[n // 2 % 2]},{n // 4 % 2},{n / 8},{parts[n // 4 % 4]}" for n in range(count)
    ]


def write(folder, lines: list[str], place=lambda number: ""):
    for number in range(len(lines)):
        picture(folder / place(number) / f"{number}.png", number, (6, 5))
    (folder / "labels.csv").write_text("\n".join([HEADER, *lines]) + "\n")


def load(**options):
    return data.load({"name": "image_folder", "path": "mine", "size": 4, **options})


def drawn(dataset) -> dict[str, list[int]]:
    return {name: numbers(split.inputs) for name, split in dataset.splits.items()}


@given(ESCAPES)
def test_no_name_in_a_list_and_no_labels_lead_out_of_the_folder(name):
    """As `..` is resolved by text and where a link precedes it; nothing more than needed is refused."""
    folder = Path("/some/folder")
    stays = os.path.normpath(folder / name).startswith(f"{folder}/") and ".." not in name.split("/")
    if stays and "\0" not in name:
        label_files.check_files(["fine.png", name], folder / "labels.csv", "file")
        assert image_folder.table_in(folder, name) == folder / name
        return
    with pytest.raises(UserError, match=r"labels\.csv: column 'file', row 2: .* given, allowed is") as listed:
        label_files.check_files(["fine.png", name], folder / "labels.csv", "file")
    with pytest.raises(UserError, match=r"data\.labels: .* given, allowed is") as labels:
        image_folder.table_in(folder, name)
    for told in (listed, labels):
        assert repr(name) in str(told.value)
        assert len(str(told.value).splitlines()) == 1


def test_links_in_the_folder_are_followed(home):
    write(home, rows())
    expected = drawn(load(bias="gender"))
    (elsewhere := home.with_name("elsewhere")).mkdir()
    for file in list(home.iterdir()):
        file.rename(elsewhere / file.name)
        file.symlink_to(elsewhere / file.name)
    assert drawn(load(bias="gender")) == expected
    (home / "more").symlink_to(elsewhere)
    listed = [f"more/{line}" for line in rows()]
    (home / "labels.csv").write_text("\n".join([HEADER, *listed]) + "\n")
    assert drawn(load(bias="gender")) == expected


def test_links_that_lead_back_or_nowhere_do_no_harm(home):
    write(home, rows())
    expected = drawn(load())
    (home / "back").symlink_to(home)
    (home / "above").symlink_to("..")
    (home / "itself.png").symlink_to("itself.png")
    (home / "nowhere.png").symlink_to("no file")
    assert drawn(load()) == expected
    (home / "labels.csv").write_text("\n".join([HEADER, *rows()]).replace("\n7.png", "\nitself.png"))
    with pytest.raises(UserError, match=r"1 file is listed but missing: .*itself\.png"):
        load()


@pytest.mark.parametrize("name", ["../train/7.png", "train/../7.png", "x" * 300])
def test_names_that_lead_out_where_folders_say_the_split(home, name):
    write(home, rows(), lambda number: "train")
    (home / "labels.csv").write_text("\n".join([HEADER, *rows()]).replace("\n7.png", f"\n{name}"))
    with pytest.raises(UserError, match=r"row 8: '.*7\.png' given|'x+' is in none of its folders train"):
        load()
