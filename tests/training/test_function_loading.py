"""Which functions can be a study's, and how they are found."""

import pickle
import subprocess
import sys
from pathlib import Path

import own_functions
import pytest

from study.errors import UserError
from study.training.function_loading import (
    PICKLE_PREFIX,
    PICKLED_FUNCTION_FILE,
    function_import_folder,
    function_source_files,
    load_function,
    pickle_digest,
)

WHERE = str(Path(own_functions.__file__).parent)


def test_a_module_is_found_in_the_folder_that_a_study_is_started_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_loop_of_mine.py").write_text("def train(config):\n    yield {'val/accuracy': config['a']}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    where = function_import_folder("a_loop_of_mine:train", tmp_path / "home")
    assert where == str(tmp_path)
    assert list(load_function("a_loop_of_mine:train", where)(config={"a": 1})) == [{"val/accuracy": 1}]


def test_the_digest_of_a_functions_file_tells_whether_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    file = tmp_path / "a_loop_that_changes.py"
    file.write_text("def train(config): ...\n")
    (before,) = function_source_files("a_loop_that_changes:train", str(tmp_path))
    assert (before["name"], before["file"]) == ("a_loop_that_changes:train", "a_loop_that_changes.py")
    assert function_source_files("a_loop_that_changes:train", str(tmp_path)) == [before]
    file.write_text("def train(config): ... # other\n")
    assert function_source_files("a_loop_that_changes:train", str(tmp_path))[0]["sha256"] != before["sha256"]
    assert (
        function_source_files(f"{PICKLE_PREFIX}0123", str(tmp_path))
        == function_source_files("no_such_module:train", str(tmp_path))
        == []
    )


def test_a_function_within_a_class() -> None:
    assert load_function("own_functions:Holder.inner", WHERE) is own_functions.Holder.inner


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
        load_function(function, WHERE)


def test_a_module_that_is_nowhere_is_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"there is no module 'no_such_module_of_mine'. It must be installed, or a file"
    ):
        function_import_folder("no_such_module_of_mine:train", tmp_path)


def test_a_pickle_is_read_from_the_studys_folder_and_only_with_its_digest(tmp_path: Path) -> None:
    content = pickle.dumps(own_functions.train)
    name = f"{PICKLE_PREFIX}{pickle_digest(content)}"
    assert function_import_folder(name, tmp_path) == str(tmp_path)
    with pytest.raises(UserError, match=r"function.pkl: cannot be read \(No such file"):
        load_function(name, str(tmp_path))
    (tmp_path / PICKLED_FUNCTION_FILE).write_bytes(content)
    assert load_function(name, str(tmp_path)) is own_functions.train
    (tmp_path / PICKLED_FUNCTION_FILE).write_bytes(pickle.dumps(own_functions.peaks))
    with pytest.raises(UserError, match="is not the function that this study was made with"):
        load_function(name, str(tmp_path))
    (tmp_path / PICKLED_FUNCTION_FILE).write_bytes(b"no pickle")
    with pytest.raises(UserError, match=r"function.pkl: cannot be read here \("):
        load_function(f"{PICKLE_PREFIX}{pickle_digest(b'no pickle')}", str(tmp_path))


MODULES = {
    "mine_a/__init__.py": """
import colorsys, torch
from mine_a import deep
from mine_b import SEEN
def train(config):
    SEEN.append(1)
    deep.HELD.append(1)
    yield {"val/accuracy": len(SEEN) + len(deep.HELD)}
""",
    "mine_a/deep.py": "HELD = []",
    "mine_b.py": "import mine_c\nSEEN = mine_c.SEEN",
    "script/mine_c.py": "SEEN = []",
    "script/run.py": """
import sys, cloudpickle, pickle
from study.training.function_loading import load_function, unload_function
where = sys.argv[1]
class Held:
    SEEN = []
def train(config):
    Held.SEEN.append(1)
    yield {"val/accuracy": len(Held.SEEN)}
pickled, others = cloudpickle.dumps(train), {}
for trial in range(2):
    function = load_function("mine_a:train", where)
    others = others or dict(sys.modules)
    assert list(function(config={})) == [{"val/accuracy": 2}], trial
    del function
    unload_function("mine_a:train", where)
    assert list(pickle.loads(pickled)(config={})) == [{"val/accuracy": 1}], trial
    unload_function("pickle:1", where)
print(sorted(name for name, module in others.items() if sys.modules.get(name) is not module))
""",
}


@pytest.mark.slow
def test_a_forgotten_functions_modules_are_imported_anew(tmp_path: Path) -> None:
    """Also those of its folder and of a script's that it imports, and classes of a pickle; nothing that is installed or
    of Python's own. In a process of its own, as those of tests would go, too."""
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = subprocess.run(
        [sys.executable, tmp_path / "script" / "run.py", tmp_path], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.stdout == "['mine_a', 'mine_a.deep', 'mine_b', 'mine_c']\n", ran.stderr
