"""What the Python functions say of what cannot be used: their own arguments, not the options of a command."""

import doctest
import traceback
from pathlib import Path
from typing import Any

import own_functions
import pytest

import study
from study.api import argument_names
from study.api.argument_names import options_to_arguments
from study.errors import UserError

NAMES = ("column", "name", "set", "top", "trial", "keep_going")


def test_going_on_is_an_argument_where_there_is_one() -> None:
    told = "a: exists already in ./studies. Go on with it: study resume a. Run it anew under another name: --name a-2"
    assert options_to_arguments(told, ["name", "resume"]) == (
        "a: exists already in ./studies. Go on with it: resume=True. Run it anew under another name: name='a-2'"
    )
    assert "study resume a. " in options_to_arguments(told, ["name"])


def test_what_is_imported_late_is_offered_by_completion() -> None:
    assert {*study.__all__} <= {*dir(study)}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a: exists already. Another name: --name a-2", "a: exists already. Another name: name='a-2'"),
        ('--set a.b="c d, e": a.b: no', 'set={"a.b": "c d, e"}: a.b: no'),
        ('--set a.b=["c < 3", "d] e"]: a.b.0: no', 'set={"a.b": ["c < 3", "d] e"]}: a.b.0: no'),
        ("--set a.b=[[1, 2], [3]]. And --top 3", 'set={"a.b": [[1, 2], [3]]}. And top=3'),
        ('--set a={"b": {"low": 1}}: no', 'set={"a": {"b": {"low": 1}}}: no'),
        ("Fewer: --set a.b=...", 'Fewer: set={"a.b": ...}'),
        ("--top 50: mine has 3", "top=50: mine has 3"),
        ("--trial, --top: give one of them, not both", "trial, top: give one of them, not both"),
        ("leave out --name and --keep-going (--top)", "leave out name and keep_going (top)"),
        ("--file picture: is for lists", "column='picture': is for lists"),
        ("--other 3: is no argument", "--other 3: is no argument"),
        ("Go on: study resume mine --top 5. More: --top 3", "Go on: study resume mine --top 5. More: --top 3"),
    ],
)
def test_options_become_arguments_and_commands_stay(message: str, expected: str) -> None:
    assert options_to_arguments(message, NAMES) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("metrics", "Did you mean 'metric'"),
        ("n_trials", "Did you mean 'trials'"),
        ("direction", "'maximize'"),
        ("mode", "'maximize'"),
        ("num_samples", "Did you mean 'trials'"),
        ("constraint", r"set=\{'search.constraints': ...\}"),
        ("epoch", r"Did you mean 'epochs'\? There are"),
        ("spaces", "Did you mean 'space'"),
        ("constraints", r"set=\{'search.constraints': ...\}"),
    ],
)
def test_an_argument_that_there_is_not_is_refused_with_the_nearest(given: str, expected: str) -> None:
    arguments: dict[str, Any] = {given: 5}
    with pytest.raises(TypeError, match=expected):
        study.run("quickstart", **arguments)


@pytest.mark.parametrize("given", [{}, {"search.trials": 4}])
def test_trials_is_the_key_of_the_study_file_before_set(given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"search\.trials.*-3"):
        study.run(train=own_functions.train, name="mine", space={"rate": (0, 1)}, trials=-3, set=given)


def test_a_traceback_shows_the_callers_line_and_none_of_what_it_called() -> None:
    with pytest.raises(UserError) as caught:
        study.run(train=lambda config: iter(()), name="no name of a study", space={"x": (0, 1)})
    here, *of_study = traceback.extract_tb(caught.tb)
    assert here.filename == __file__
    assert [Path(frame.filename).name for frame in of_study] == ["argument_names.py"]
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("Traceback (most recent call last)") == 1


def test_the_documented_example_is_right() -> None:
    assert doctest.testmod(argument_names) == (0, 1)


def test_arguments_that_need_their_names_are_told_by_name() -> None:
    with pytest.raises(TypeError, match=r"run\(\): too many arguments without a name. Name the others: train=..., s"):
        study.run("quickstart", {"rate": (0.0, 1.0)})  # type: ignore[misc]


def test_a_key_without_its_section_is_told_with_it() -> None:
    with pytest.raises(UserError, match=r"trials: unknown key. Did you mean 'search.trials'\?$"):
        study.run("quickstart", set={"trials": 4})
    with pytest.raises(TypeError, match=r"set=\{'method.alpha': ...\}"):
        study.run("quickstart", alpha=0.5)  # type: ignore[call-arg]
