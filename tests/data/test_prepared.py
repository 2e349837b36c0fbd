"""Prepared data is kept by what its files are: content of a file, names and sizes under a folder."""

import os
import shutil

import pytest

from study.data.prepared import stamp


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "here" / "below").mkdir(parents=True)
    (tmp_path / "here" / "a").write_text("abc")
    (tmp_path / "here" / "below" / "b").write_text("abcd")
    return tmp_path / "here"


def test_a_copy_elsewhere_and_later_is_the_same(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "there")
    os.utime(tmp_path / "there" / "a", (1, 1))
    assert stamp(tmp_path / "there") == stamp(folder)
    assert stamp(tmp_path / "there" / "a") == stamp(folder / "a")


def test_what_changes_a_stamp(folder):
    seen = {stamp(folder), stamp(folder / "a")}
    (folder / "a").write_text("abd")
    seen.add(stamp(folder / "a"))
    (folder / "a").write_text("abcdef")
    seen.add(stamp(folder))
    (folder / "below" / "c").write_text("")
    seen.add(stamp(folder))
    (folder / "below" / "c").rename(folder / "c")
    seen.add(stamp(folder))
    assert len(seen) == 6
