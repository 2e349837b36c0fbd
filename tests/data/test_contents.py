"""Data are known by what is in their files: changed bytes are seen whatever names, sizes and times say."""

import json
import os
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest
from image_folders import load, rows, write

from study.data import cache
from study.data.cache import hash_file_or_folder, hash_files
from study.errors import UserError


@pytest.fixture
def home(workplace):
    return workplace / "mine"


def kept(workplace):
    with closing(sqlite3.connect(workplace / "data" / cache.DIGESTS_FILE)) as database:
        return {json.loads(file)[0]: digest for file, digest in database.execute("SELECT * FROM digests")}


@pytest.fixture
def settled(monkeypatch):
    """Waits until what was written so far counts as settled, without the two seconds that users wait."""
    monkeypatch.setattr(cache, "FILE_TIME_RESOLUTION_S", 0.0)
    return lambda: time.sleep(0.05)


def as_bitmaps(home, seed):
    """The folder's pictures overwritten by noise: same names, and as BMP the same sizes."""
    from PIL import Image

    draw = np.random.default_rng(seed)
    for number in range(40):
        Image.fromarray(draw.integers(0, 256, (6, 5, 3), np.uint8)).save(home / f"{number}.png", format="bmp")


def test_pictures_of_the_same_names_and_sizes_are_other_data(home, settled):
    write(home, rows())
    as_bitmaps(home, 0)
    times = {file: file.stat().st_mtime_ns for file in home.glob("*.png")}
    settled()
    first = load()
    assert load().fingerprint == first.fingerprint
    as_bitmaps(home, 1)
    for file, at in times.items():
        os.utime(file, ns=(at, at))  # as copies do that keep times
    second = load()
    assert second.fingerprint != first.fingerprint
    assert not np.array_equal(second.splits["train"].inputs, first.splits["train"].inputs)
    as_bitmaps(home, 0)
    assert load().fingerprint == first.fingerprint


def test_a_settled_file_is_read_once(workplace, settled):
    files = [workplace / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    settled()
    first = hash_files([*files, files[0], workplace / "nowhere"])
    assert first[0] == first[2] != first[1]
    assert first[3] == ""
    assert kept(workplace) == {str(file): one for file, one in zip(files, first, strict=False)}
    with closing(sqlite3.connect(workplace / "data" / cache.DIGESTS_FILE)) as database, database:
        database.execute("UPDATE digests SET digest = 'as kept'")
    assert hash_files(files) == ["as kept", "as kept"]
    files[0].write_text("c")
    os.utime(files[0], ns=(files[1].stat().st_mtime_ns,) * 2)
    assert hash_files(files)[1] == "as kept" != hash_files(files)[0]


def test_a_file_that_was_just_written_is_not_kept(workplace):
    """Written again within the clock's tick it would have the same times."""
    (workplace / "a").write_text("a")
    assert hash_files([workplace / "a"])[0]
    assert kept(workplace) == {}


@pytest.mark.parametrize("state", ["damaged", "another program's", "no folder"])
def test_without_a_database_files_are_read(workplace, state, settled, monkeypatch):
    (workplace / "a").write_text("a")
    settled()
    wanted = hash_files([workplace / "a"])
    database = workplace / "data" / cache.DIGESTS_FILE
    if state == "damaged":
        database.write_bytes(b"no database at all" * 100)
    elif state == "another program's":
        database.unlink()
        with closing(sqlite3.connect(database)) as other:
            other.execute("CREATE TABLE digests (path TEXT)")
    else:
        monkeypatch.setenv("STUDY_DATA", str(workplace / "a"))
        monkeypatch.setenv("HOME", str(workplace / "a"))
    assert hash_files([workplace / "a"]) == hash_files([workplace / "a"]) == wanted
    if state == "damaged":
        assert len(kept(workplace)) == 1  # made anew


def test_what_is_no_file_is_not_waited_for(workplace):
    os.mkfifo(workplace / "pipe")
    assert hash_files([workplace / "pipe", workplace, workplace / "a\0b"]) == ["", "", ""]


def test_labels_that_change_while_they_are_read_are_named(home, monkeypatch):
    from study.data import file_lists

    write(home, rows())
    read = file_lists.decode_images_of_splits

    def slow(*arguments):
        (home / "labels.csv").write_text((home / "labels.csv").read_text() + "\n")
        return read(*arguments)

    monkeypatch.setattr(file_lists, "decode_images_of_splits", slow)
    with pytest.raises(UserError, match=r"labels\.csv: changed while the data were read"):
        load()
    monkeypatch.undo()


def test_hidden_files_of_a_folder_do_not_count(workplace):
    folder = workplace / "photos"
    folder.mkdir()
    (folder / "a.png").write_text("a")
    before = hash_file_or_folder(folder)
    for name in (".DS_Store", "__MACOSX/._a.png", ".ipynb_checkpoints/a.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    assert hash_file_or_folder(folder) == before
