"""What every data set has, and the example of what one has."""

import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from study import data
from study.data import DatasetModule, Facts
from study.errors import UserError

STRIPES = {"name": "stripes", "samples": 8}
"""Section of the example of the protocol."""


@pytest.fixture
def stripes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example of the protocol, as a data set."""
    module = ModuleType("study.data.sets.stripes")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(dedent((DatasetModule.__doc__ or "").partition("needs:\n")[2]), vars(module))
    everything = {**data.CATALOGUE.load_builtins(), "stripes": module}
    monkeypatch.setattr(data, "CATALOGUE", replace(data.CATALOGUE, load_builtins=lambda: everything))
    return module


@pytest.mark.usefixtures("stripes")
def test_the_example_of_the_protocol_is_a_data_set() -> None:
    assert [knob.key for knob in data.data_knobs("stripes")] == ["samples"]
    assert (
        data.CATALOGUE.description("stripes") == "small images, light or dark, some of them with a brighter first row"
    )
    dataset = data.load(STRIPES)
    assert {name: split.inputs.shape for name, split in dataset.splits.items()} == dict.fromkeys(
        data.describe(STRIPES).splits, (8, 3, 8, 8)
    )
    assert dataset.splits["val"].bias.tolist() == [0, 0, 1, 1] * 2
    assert (
        data.sources(STRIPES),
        data.load_labels(STRIPES),
        data.user_file_notes(STRIPES),
        data.image_square_mode(STRIPES),
    ) == ((), None, [], "crop")


def test_a_data_set_may_say_how_it_is_built_and_must_say_how_it_is_read(home: Path, stripes: ModuleType) -> None:
    direct, load = data.load(STRIPES), stripes.load
    del stripes.load
    with pytest.raises(UserError, match="stripes: its module defines neither load nor build"):
        data.load(STRIPES)
    stripes.build = lambda options: load(options).splits  # type: ignore[attr-defined]
    assert data.load(STRIPES).fingerprint == direct.fingerprint
    assert len(list((home / "prepared").glob("stripes-*"))) == 1


@pytest.mark.parametrize("name", data.dataset_names())
def test_each_has_a_line_for_users_and_keys_that_are_described(name: str) -> None:
    assert (data.find_dataset_module(name).__doc__ or "").startswith(f"{name}: ")
    assert all(knob.description for knob in data.data_knobs(name))


def test_files_of_a_users_own_are_called_by_their_name_wherever_they_are_named_from() -> None:
    facts = Facts(2, None, (1,))
    for path, title in (("birds.csv", "birds.csv"), ("/a/b/photos", "photos"), (".", Path.cwd().name)):
        assert data.dataset_title({"name": "table", "path": path}, facts) == title
    assert data.dataset_title({"name": "biased_digits"}, facts) == "biased_digits"
