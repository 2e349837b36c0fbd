"""Studies of a training function of one's own, from Python."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import own_functions
import pytest
from pages import GUIDE, blocks

import study
from study.api import run_study
from study.api.run_study import build_function_study, function_reference, to_domain
from study.commands import training_functions as functions
from study.home.folder import Home
from study.spec import StudySpec
from study.training.function_loading import PICKLE_PREFIX, load_function
from study.training.function_trial import FunctionTrial

SPACE = {"rate": (0.1, 0.9)}


def made(train: Any, **changes: Any) -> tuple[StudySpec, bytes | None]:
    given: dict[str, Any] = {
        "space": SPACE,
        "name": "mine",
        "metric": "val/accuracy",
        "maximize": None,
        "epochs": 3,
        "fixed": {},
        "baseline": None,
        "assignments": [],
    }
    return build_function_study(train, **{**given, **changes})


def test_a_baseline_outside_the_space_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    made(own_functions.train, baseline={"rate": 0.5})
    assert capsys.readouterr().err == ""
    made(own_functions.train, baseline={"rate": 5.0})
    assert "baseline: method.rate 5.0: outside the space" in capsys.readouterr().err


def local(offset: float) -> Any:
    """A function that no other process could import."""

    def train(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        while True:
            yield {"val/accuracy": config["rate"] + offset}

    return train


def test_a_function_of_a_module_is_named_and_another_is_pickled_with_what_it_refers_to(tmp_path: Path) -> None:
    assert function_reference(own_functions.train) == ("own_functions:train", None)
    assert function_reference(own_functions.Holder.inner) == ("own_functions:Holder.inner", None)
    name, content = function_reference(local(0.25))
    assert content is not None
    (tmp_path / "function.pkl").write_bytes(content)
    assert next(iter(load_function(name, str(tmp_path))(config={"rate": 0.5}))) == {"val/accuracy": 0.75}
    assert function_reference(local(0.5))[0] != name


def test_what_cannot_be_pickled_is_told() -> None:
    import threading

    lock: Any = threading.Lock()
    with pytest.raises(study.UserError, match=r"train: .*train cannot be pickled \(TypeError: .*lock.* refers to"):
        function_reference(local(lock))


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ((1, 4), {"low": 1, "high": 4}),
        ((0.1, 4.0, "log"), {"low": 0.1, "high": 4.0, "log": True}),
        (["a", 1], {"choices": ["a", 1]}),
        ({"low": 1, "high": 2, "log": True}, {"low": 1, "high": 2, "log": True}),
    ],
)
def test_what_is_searched_in_short(given: Any, written: Any) -> None:
    assert to_domain("key", given) == written


def test_the_study_has_all_that_was_given() -> None:
    spec, content = made(
        own_functions.train, fixed={"batch": 32}, baseline={"rate": 0.5}, assignments=["search.trials=7"]
    )
    assert content is None
    assert (spec.name, spec.epochs, spec.n_configurations, spec.metric) == ("mine", 3, 7, "val/accuracy")
    assert spec.search.baseline == {"method.rate": 0.5}
    assert spec.base["method"]["batch"] == 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {"rate": (1, 2, 3)}}, r"space: rate: \(1, 2, 3\) given; a range is \(low, high\)"),
        (
            {"space": {"rate": "log"}},
            r"space: rate: 'log' given; a range is .*, one on a log scale \(low, high, 'log'\)",
        ),
        ({"space": {"rate": (0.0, 1.0, "log")}}, r"^space: rate: a log range needs low above 0"),
        (
            {"space": {"rate": (0.1, 0.9), "width": (4, 64), "drop": (0.0, 0.5)}, "baseline": {"rate": 0.5}},
            r"^baseline: lacks width, drop",
        ),
        ({"maximize": False}, r"^maximize: 'min' given for val/accuracy, of which a higher value is better"),
        ({"maximize": "yes"}, r"maximize: 'yes' given, allowed are True, False, or a list"),
        (
            {"metric": ["val/f1", "val/loss"], "maximize": [True]},
            r"^maximize: \[True\] given, allowed .* \['val/f1', 'val/loss'\]",
        ),
        (
            {"metric": ["val/f1", "val/loss"], "maximize": True},
            r"^maximize: True given, allowed .* \['val/f1', 'val/loss'\]",
        ),
        ({"maximize": [True, True]}, r"^maximize: \[True, True\] given, allowed .* val/accuracy"),
        ({"metric": 3}, r"^metric: 3 given"),
        ({"space": {"width": range(4, 9)}}, r"^space: width: range\(4, 9\) given; a range is \(low, high\)"),
        ({"space": {"width": []}}, r"^space: width.choices: \[\] given, allowed is at least 1 item"),
        ({"baseline": {"rate": 0.5, "x": 1}}, r"^baseline: x: unknown key"),
        ({"metric": "val/score"}, r"^maximize: is missing: .*val/score .*study.run: maximize=True or False"),
        ({"metric": "val/acuracy"}, r"^maximize: is missing: .*val/acuracy .*Did you mean val/accuracy\? Allowed"),
        (
            {"metric": ["val/weights", "val/weigths"], "maximize": None},
            r"^maximize: is missing: .*Did you mean val/weights\? Allowed",
        ),
        ({"metric": "accuracy"}, r"^metric: 'accuracy' given"),
        ({"fixed": {"a-b": 1}}, r"^fixed: a-b: allowed is a name of letters"),
        ({"fixed": {"name": "x"}}, r"fixed: name: is taken"),
        ({"fixed": {"rate": 0.5}}, r"fixed: rate: in space, too"),
        ({"epochs": 0}, r"^epochs: 0 given"),
    ],
)
def test_what_cannot_be_used_is_told(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(study.UserError, match=message):
        made(own_functions.train, **changes)


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        (
            {"metric": "val/acuracy", "maximize": True},
            "val/acuracy is no metric of this software. Did you mean val/acc",
        ),
        ({"assignments": ['search.constraints=["val/log_los <= 0.5"]']}, "Did you mean val/log_loss?"),
        (
            {
                "metric": ["val/accuracy", "val/weights"],
                "maximize": [True, False],
                "assignments": ['search.constraints=["val/weigths <= 3"]'],
            },
            "val/weigths is no metric of this software. Did you mean val/weights?",
        ),
        ({"metric": "val/my_accuracy", "maximize": True}, ""),
        ({"metric": ["val/recall_a", "val/recall_b"], "maximize": [True, True]}, ""),
        ({"metric": ["val/f1", "val/f2"], "maximize": [True, True]}, ""),
    ],
)
def test_a_metric_that_is_nearly_spelt_as_another_is_told_before_the_start(
    changes: dict[str, Any], warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made(own_functions.train, **changes)
    told = capsys.readouterr().err
    assert (warning in told) if warning else not told


def test_the_direction_of_any_metric_can_be_given() -> None:
    assert made(own_functions.train, metric="val/score", maximize=False)[0].mode == "min"
    spec, _ = made(own_functions.train, metric=["val/score", "val/f1", "val/loss"], maximize=[False, True, False])
    assert spec.objective.directions == ("min", "max", "min")
    assert made(own_functions.train, metric=["val/accuracy", "val/loss"])[0].objective.directions == ("max", "min")


@pytest.mark.parametrize("function", [own_functions.returns, own_functions.wants_more, print, 3])
def test_what_is_no_training_function_is_told(function: Any) -> None:
    with pytest.raises(study.UserError, match=r"^train: "):
        made(function)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give either a study file or train"),
        ({"spec": "quickstart", "train": own_functions.train}, "give either a study file or train"),
        ({"spec": own_functions.train}, r"study.run\(train=...\)"),
        ({"train": own_functions.train}, "a name and a space are needed"),
        ({"train": own_functions.train, "name": "a", "space": SPACE, "set": {"search": {"trials": 3}}}, "'search.KEY'"),
        ({"train": own_functions.train, "name": "a", "space": SPACE, "profile": "p"}, "profile: goes with a study"),
        ({"spec": "quickstart", "space": SPACE}, "space: goes with train"),
        ({"spec": "quickstart", "space": {}}, "space: goes with train"),
        ({"spec": "quickstart", "metric": "val/loss", "epochs": 3}, r"metric, epochs: goes .*'train.epochs': ..."),
        ({"spec": "quickstart", "metric": "val/accuracy"}, r"metric: goes with train"),
        ({"spec": "quickstart", "epochs": 1}, r"epochs: goes with train"),
        ({"spec": "quickstart", "maximize": False}, r"maximize: goes with train"),
    ],
)
def test_arguments_that_do_not_go_together_are_told(given: dict[str, Any], message: str) -> None:
    with pytest.raises(study.UserError, match=message):
        run_study.run(**given)


def test_a_pickled_function_is_in_its_studys_folder_and_goes_to_studies_made_from_it(tmp_path: Path) -> None:
    home, (spec, content) = Home(tmp_path), made(local(0.25))
    folder = home.create_study(spec, functions.check_and_pickle_function(home, spec, content))
    assert (folder.path / "function.pkl").stat().st_mode & 0o777 == 0o600
    assert functions.check_and_pickle_function(home, spec) == content
    assert spec.training_function is not None
    assert spec.training_function.startswith(PICKLE_PREFIX)
    first = next(functions.build_function_trial(home, spec, "cpu").train_epochs())
    assert first["val/accuracy"] == 0.35
    with pytest.raises(study.UserError, match=r"no study in .* has this function, which was defined in a notebook"):
        functions.check_and_pickle_function(Home(tmp_path / "other"), spec)


@pytest.mark.slow
def test_the_pages_resumable_function_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for block in blocks("python", GUIDE / "python.md"):
        if "def train(" in block.text or "def resumable(" in block.text:
            exec(block.text.partition("\n\n\nown = ")[0], names)
    spec, content = made(names["resumable"], name="resumable", space={"rate": (0.001, 1.0)})
    home = Home(tmp_path)
    home.create_study(spec, functions.check_and_pickle_function(home, spec, content))
    whole = [epoch["val/accuracy"] for epoch in functions.build_function_trial(home, spec, "cpu").train_epochs()]
    running_trial: FunctionTrial = functions.build_function_trial(home, spec, "cpu")
    cut = running_trial.train_epochs(tmp_path / "state.pt")
    next(cut), next(cut)
    cut.close()  # type: ignore[attr-defined]
    rest = functions.build_function_trial(home, spec, "cpu").train_epochs(tmp_path / "state.pt")
    assert [epoch["val/accuracy"] for epoch in rest] == whole[1:]
