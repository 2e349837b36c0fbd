"""Which functions can be a study's, and how they are found."""

import pickle
from pathlib import Path

import own_functions
import pytest

from study.errors import UserError
from study.training.own_function import FILE, PICKLE, digest, load, place, source

WHERE = str(Path(own_functions.__file__).parent)


def test_a_module_is_found_in_the_folder_that_a_study_is_started_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_loop_of_mine.py").write_text("def train(config):\n    yield {'val/accuracy': config['a']}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    where = place("a_loop_of_mine:train", tmp_path / "home")
    assert where == str(tmp_path)
    assert list(load("a_loop_of_mine:train", where)(config={"a": 1})) == [{"val/accuracy": 1}]


def test_the_digest_of_a_functions_file_tells_whether_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    file = tmp_path / "a_loop_that_changes.py"
    file.write_text("def train(config): ...\n")
    (before,) = source("a_loop_that_changes:train", str(tmp_path))
    assert (before["name"], before["file"]) == ("a_loop_that_changes:train", "a_loop_that_changes.py")
    assert source("a_loop_that_changes:train", str(tmp_path)) == [before]
    file.write_text("def train(config): ... # other\n")
    assert source("a_loop_that_changes:train", str(tmp_path))[0]["sha256"] != before["sha256"]
    assert source(f"{PICKLE}0123", str(tmp_path)) == source("no_such_module:train", str(tmp_path)) == []


def test_a_function_within_a_class() -> None:
    assert load("own_functions:Holder.inner", WHERE) is own_functions.Holder.inner


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("own_functions", r"'own_functions' given, allowed is MODULE:NAME"),
        ("own_functions:tran", r"own_functions has no tran"),
        ("no_such_module_of_mine:train", r"no_such_module_of_mine: cannot be imported \(ModuleNotFoundError"),
        ("own_functions:returns", r"is no generator function, as in def train\(config, seed\)"),
        ("os:system", r"is no generator function"),
        ("own_functions:wants_more", r"takes data; it may take config, seed, epochs, checkpoint"),
        ("own_functions:takes_nothing", r"does not take config"),
    ],
)
def test_what_is_no_training_function_is_told(function: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(function, WHERE)


def test_a_module_that_is_nowhere_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"there is no module 'no_such_module_of_mine'. It must be installed, or a file"
    ):
        place("no_such_module_of_mine:train", tmp_path)


def test_a_pickle_is_read_from_the_studys_folder_and_only_with_its_digest(tmp_path: Path) -> None:
    content = pickle.dumps(own_functions.train)
    name = f"{PICKLE}{digest(content)}"
    assert place(name, tmp_path) == str(tmp_path)
    with pytest.raises(UserError, match=r"function.pkl: cannot be read \(No such file"):
        load(name, str(tmp_path))
    (tmp_path / FILE).write_bytes(content)
    assert load(name, str(tmp_path)) is own_functions.train
    (tmp_path / FILE).write_bytes(pickle.dumps(own_functions.peaks))
    with pytest.raises(UserError, match="is not the function that this study was made with"):
        load(name, str(tmp_path))
    (tmp_path / FILE).write_bytes(b"no pickle")
    with pytest.raises(UserError, match=r"function.pkl: cannot be read here \("):
        load(f"{PICKLE}{digest(b'no pickle')}", str(tmp_path))
