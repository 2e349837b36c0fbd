"""Files that programs leave beside pictures are none; names are found however an accent is spelled."""

import os
import unicodedata

import pytest
from image_folders import load, rows, write
from pictures import picture

from study import data
from study.commands.init import check_data_answer, likely_label_table_name, table_name_check
from study.data import file_lists
from study.data.label_files import path_as_spelled_on_disk
from study.errors import UserError

HIDDEN = ["._3.png", ".hidden.png", "__MACOSX/3.png", "__MACOSX/._3.png", ".ipynb_checkpoints/3-checkpoint.png"]
COMPOSED, APART = unicodedata.normalize("NFC", "Möwe é"), unicodedata.normalize("NFD", "Möwe é")


def test_hidden_files_are_no_pictures_of_a_folder(tmp_path):
    folder = tmp_path / ".cache" / "photos"  # the folder's own place may be hidden
    files = [picture(folder / name, 1) for name in ("a.png", "below/b.png")]
    for name in HIDDEN:
        picture(folder / name, 2)
        picture(folder / "below" / name, 2)
    assert file_lists.list_images(folder) == files


@pytest.mark.parametrize("name", HIDDEN)
def test_a_list_with_a_hidden_file_is_refused(workplace, name):
    lines = rows()
    write(workplace / "mine", lines)
    lines[3] = lines[3].replace("3.png", name)
    (workplace / "mine" / "labels.csv").write_text("\n".join(["file,target,gender,young,weight,part", *lines]))
    with pytest.raises(UserError, match=r"labels\.csv: column 'file', row 4: .* given, a hidden file or folder"):
        load()


@pytest.mark.parametrize(("listed", "there"), [(COMPOSED, APART), (APART, COMPOSED), (COMPOSED, COMPOSED)])
@pytest.mark.parametrize("homes", [False, True])
def test_a_file_is_found_however_its_name_is_spelled(workplace, listed, there, homes):
    lines = rows()
    place = (lambda number: "test" if number < 8 else "train") if homes else (lambda number: "")
    write(workplace / "mine", lines, place)
    plain = load(val_share=0.25)
    lines[3] = lines[3].replace("3.png", f"{listed}/{listed}.png")
    (workplace / "mine" / place(3) / there).mkdir()
    (workplace / "mine" / place(3) / "3.png").rename(workplace / "mine" / place(3) / there / f"{there}.png")
    (workplace / "mine" / "labels.csv").write_text("\n".join(["file,target,gender,young,weight,part", *lines]))
    assert load(val_share=0.25).fingerprint == plain.fingerprint


def test_each_part_may_be_spelled_in_its_own_way(tmp_path):
    (tmp_path / APART).mkdir()
    file = tmp_path / APART / f"{COMPOSED}.png"
    file.write_text("")
    for first in (COMPOSED, APART):
        for second in (COMPOSED, APART):
            assert path_as_spelled_on_disk(tmp_path, f"{first}/{second}.png") == file
    assert path_as_spelled_on_disk(tmp_path, f"{COMPOSED}/other.png") == tmp_path / COMPOSED / "other.png"
    exact = tmp_path / APART / f"{APART}.png"
    exact.write_text("")
    assert path_as_spelled_on_disk(tmp_path, f"{COMPOSED}/{APART}.png") == exact


def test_one_file_under_two_spellings_is_refused(workplace):
    lines = rows()
    write(workplace / "mine", lines)
    (workplace / "mine" / "3.png").rename(workplace / "mine" / f"{APART}.png")
    lines[3], lines[4] = (lines[3].replace("3.png", f"{COMPOSED}.png"), lines[4].replace("4.png", f"{APART}.png"))
    (workplace / "mine" / "labels.csv").write_text("\n".join(["file,target,gender,young,weight,part", *lines]))
    with pytest.raises(UserError, match=r"row 5: .* is the file of row 4, spelled differently"):
        load()


def test_a_hidden_table_is_not_offered(tmp_path):
    for name in ("birds.csv", "._birds.csv", ".labels.csv"):
        (tmp_path / name).write_text("file,target")
    assert likely_label_table_name(tmp_path) == "birds.csv"
    with pytest.raises(UserError, match=r"Tables there: birds\.csv$"):
        table_name_check(tmp_path)("labels.csv")


LATIN = os.fsdecode(b"im\xfcge")
"""A name that is no UTF-8, as of an archive that was packed on another system."""


def test_pictures_whose_names_are_no_utf8_are_read_in_folders_and_lists(workplace):
    for name in ("mine", "named"):
        for number in range(40):
            stem = f"{LATIN}{number}" if name == "named" else f"im\u00fcge{number}"
            picture(workplace / name / ("cat", "dog")[number % 2] / f"{stem}.png", number, (6, 5))
    section = {"name": "image_folder", "size": 4, "labels": "folders"}
    plain, named = (data.load({**section, "path": path}) for path in ("mine", "named"))
    assert sorted(map(bytes, plain.splits["train"].inputs)) == sorted(map(bytes, named.splits["train"].inputs))
    lines = [f"{('cat', 'dog')[n % 2]}/im\u00fcge{n}.png,{('cat', 'dog')[n % 2]}" for n in range(40)]
    for path in ("mine", "named"):
        for encoding in ("utf-8", "latin-1"):
            (workplace / path / "labels.csv").write_text("\n".join(["file,target", *lines]), encoding=encoding)
            read = data.load({**section, "path": path, "labels": "labels.csv"})
            assert len(read.splits["train"]) == len(plain.splits["train"])


def test_a_class_or_a_path_whose_name_is_no_utf8_is_refused_by_name(workplace):
    for number in range(6):
        picture(workplace / "mine" / ("cat", LATIN)[number % 2] / f"{number}.png", number, (6, 5))
    with pytest.raises(UserError, match=r"mine: 'im\\udcfcge', the name of a class, is not in UTF-8"):
        data.describe({"name": "image_folder", "path": "mine", "size": 4, "labels": "folders"})
    (workplace / LATIN).mkdir()
    with pytest.raises(UserError, match="its name is not in UTF-8"):
        check_data_answer(LATIN)
    with pytest.raises(UserError, match="its name is not in UTF-8"):
        table_name_check(workplace)(f"{LATIN}.csv")
