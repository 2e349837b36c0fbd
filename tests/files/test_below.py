"""A name from elsewhere never becomes a path outside of its folder."""

import os
from pathlib import Path

import pytest
from escapes import ESCAPES
from hypothesis import given

from study.errors import UserError
from study.files import safe_path_below


@given(ESCAPES)
def test_a_path_is_below_its_folder_or_refused(name: str) -> None:
    folder = Path("/home/ann/studies")
    try:
        path = safe_path_below(folder, name)
    except UserError:
        return
    assert os.path.normpath(path) == str(path)
    assert folder in path.parents
    assert not any(part.startswith(".") for part in path.relative_to(folder).parts)


@pytest.mark.parametrize("name", ["a", "a/b", "trial-00001.txt", "Grüße/日本 1"])
def test_plain_names_are_taken(name: str) -> None:
    assert safe_path_below(Path("x"), name) == Path("x") / name


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "..", "a/../b", ".a", "a\\b", "a\0b", "a\nb", "x" * 256])
def test_others_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be the name of a file"):
        safe_path_below(Path("x"), name)
