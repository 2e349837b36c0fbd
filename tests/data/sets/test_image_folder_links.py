"""Links in a folder of images, and names that would lead out of it."""

import os
from pathlib import Path

import pytest
from escapes import ESCAPES
from hypothesis import given
from image_folders import HEADER, drawn, load, rows, write

from study.data import label_files
from study.data.label_files import is_hidden_path
from study.data.sets import image_folder
from study.errors import UserError


@pytest.fixture(autouse=True)
def home(workplace):
    return workplace / "mine"


@given(ESCAPES)
def test_no_name_in_a_list_and_no_labels_lead_out_of_the_folder(name):
    """As `..` is resolved by text and where a link precedes it; nothing more than needed is refused."""
    folder = Path("/some/folder")
    stays = os.path.normpath(folder / name).startswith(f"{folder}/") and ".." not in name.split("/")
    if stays and "\0" not in name:
        if is_hidden_path(name):
            return  # refused for another reason
        label_files.check_file_names(["fine.png", name], folder / "labels.csv", "file")
        assert image_folder.labels_table_path(folder, name) == folder / name
        return
    with pytest.raises(UserError, match=r"labels\.csv: column 'file', row 2: .* given, allowed is") as listed:
        label_files.check_file_names(["fine.png", name], folder / "labels.csv", "file")
    with pytest.raises(UserError, match=r"data\.labels: .* given, allowed is") as labels:
        image_folder.labels_table_path(folder, name)
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
