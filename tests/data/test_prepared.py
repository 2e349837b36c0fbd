"""Prepared data is kept by what is in its files: of a file, of a list of files, of all under a folder."""

import os
import shutil

import pytest

from study.data.cache import hash_file_or_folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "here" / "below").mkdir(parents=True)
    (tmp_path / "here" / "a").write_text("abc")
    (tmp_path / "here" / "below" / "b").write_text("abcd")
    return tmp_path / "here"


def test_a_copy_elsewhere_and_later_is_the_same(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "there")
    os.utime(tmp_path / "there" / "a", (1, 1))
    assert hash_file_or_folder(tmp_path / "there") == hash_file_or_folder(folder)
    assert hash_file_or_folder(tmp_path / "there" / "a") == hash_file_or_folder(folder / "a")


def test_what_changes_a_stamp(folder):
    seen = {hash_file_or_folder(folder), hash_file_or_folder(folder / "a")}
    (folder / "a").write_text("abd")
    seen.add(hash_file_or_folder(folder / "a"))
    (folder / "a").write_text("abe")
    seen.add(hash_file_or_folder(folder))
    (folder / "below" / "c").write_text("")
    seen.add(hash_file_or_folder(folder))
    (folder / "below" / "c").rename(folder / "c")
    seen.add(hash_file_or_folder(folder))
    assert len(seen) == 6


@pytest.mark.parametrize("target", ["..", ".", "loop", "below/loop", "/nowhere"])
def test_a_link_that_leads_back_or_nowhere_ends(folder, target):
    """As link to the folder itself, to itself, to what leads back to it, or to nothing."""
    (folder / "loop").symlink_to(target)
    (folder / "below" / "loop").symlink_to("../loop")
    before = hash_file_or_folder(folder)
    assert hash_file_or_folder(folder) == before
    (folder / "below" / "c").write_text("c")
    assert hash_file_or_folder(folder) != before


def test_a_list_of_files_is_stamped_by_their_content_and_which_are_there(folder, tmp_path):
    files = [folder / "a", folder / "below" / "b", folder / "nowhere"]
    shutil.copytree(folder, tmp_path / "there")
    seen = {hash_file_or_folder(files)}
    assert hash_file_or_folder([tmp_path / "there" / file.relative_to(folder) for file in files]) in seen
    (folder / "not-listed").write_text("c")
    assert hash_file_or_folder(files) in seen
    for file in files:
        file.write_text("xyz")
        seen.add(hash_file_or_folder(files))
    assert len(seen) == 4


def test_what_many_links_lead_to_is_read_once(tmp_path):
    """Of 30 folders each with links to all the others, there are more ways than can be gone."""
    folders = [tmp_path / "here" / f"{number}" for number in range(30)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "a").write_text("a")
    for folder in folders:
        for other in folders:
            (folder / f"to-{other.name}").symlink_to(other)
    first = hash_file_or_folder(tmp_path / "here")
    (folders[17] / "a").write_text("changed")
    assert hash_file_or_folder(tmp_path / "here") != first


def test_what_is_behind_a_link_counts(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    before = hash_file_or_folder(folder)
    (tmp_path / "elsewhere" / "c").write_text("c")
    assert hash_file_or_folder(folder) != before
