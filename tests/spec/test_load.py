"""From a file to a StudySpec: bad input is one message with place, key, what was given and what is allowed."""

from pathlib import Path

import pytest
from helpers import QUICKSTART, quickstart, refused

from study import published
from study.errors import UserError
from study.spec import load_study
from study.spec.yaml_document import dump_yaml, find_study_file, read_study_file, shipped_study_files

SPEC = quickstart()


@pytest.mark.parametrize("name", sorted(shipped_study_files().keys() - published.published_table_names()))
def test_every_shipped_file_is_a_study_of_its_own_name(name: str) -> None:
    """Those of the papers' tables are loaded in tests/reproduce."""
    assert load_study(name).name == name


def test_a_file_of_that_name_in_the_folder_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "birds.yaml").touch()
    with pytest.raises(UserError, match=r"^birds: no study file of that name is shipped\. Did you mean birds\.yaml\?$"):
        find_study_file("birds")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("epochs:", "epoch:", 9, "train.epoch: unknown key. Did you mean 'epochs'? All: study guide keys"),
        ("method:", "methods:", 8, "methods: unknown key. Did you mean 'method'? All: study guide keys"),
        ("low: 0.001", "lo: 0.001", 12, "search.space.method.alpha.lo: unknown key. Did you mean 'low'?"),
        (
            "biased_digits",
            "biased_digit",
            6,
            "'biased_digit' given. Did you mean 'biased_digits'? All: study spaces",
        ),
        ("fair_kl", "fairkl", 8, "method.regulariser: 'fairkl' given. Did you mean 'fair_kl'? Allowed:"),
        (
            "sampler: tpe",
            "sampler: tpee",
            16,
            "'tpee' given. Did you mean 'tpe'? Allowed: gp, grid, qmc",
        ),
        ("epochs: 20", "epochs: 2.5", 9, "train.epochs: 2.5 given, allowed is a whole number"),
        ("learning_rate: 0.001", "learning_rate: 0", 9, "train.learning_rate: 0 given, allowed is greater than 0"),
        ("grace: 4", "grace: 21", 19, "search.early_stopping.grace: 21 given, allowed is at most train.epochs = 20"),
        ("sampler: tpe", "replicates: 10000000000000000000000000000000", 16, "search.replicates: 1000000"),
        ("gpu: 0", "gpu: 2", 21, "resources.gpu: 2 given, allowed is at most 1: a trial trains on one card"),
        ("gpu: 0", "accelerator: H100", 21, "resources.accelerator: 'H100' given, but a trial takes no GPU"),
        ("low: 0.001", "low: 2.0", 12, "search.space.method.alpha: low 2.0 is above high 1.0"),
        ("low: 0.001", "low: 0.0", 12, "search.space.method.alpha: a log range needs low above 0, low is 0"),
        ("low: 0.001, ", "", 12, "search.space.method.alpha: give low and high, or choices"),
        ("low: 0.001", "choices: [1.0]", 12, "search.space.method.alpha: give either choices, or low and high, not"),
        ("low: 0.0,", "low: -1.0,", 13, "search.space.method.lambda: -1.0 given, allowed is greater than or equal to"),
        ("choices: [0.0", "choices: [30.0", 14, "search.space.method.epsilon: 30.0 given, allowed is at most 2/temp"),
        ("choices: [0.0, 0.1, 0.25, 0.5]", "choices: []", 14, "search.space.method.epsilon.choices: "),
        ("name: quickstart", "name: a/b", 5, "name: 'a/b' given. A name has letters, digits"),
        ("model:  {", "model:  [", 7, "not valid YAML"),
    ],
)
def test_a_bad_line_is_told_with_its_place_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    path = tmp_path / "mine.yaml"
    assert old in QUICKSTART
    path.write_text(QUICKSTART.replace(old, new, 1) if "model" not in old else QUICKSTART.replace(old, new))
    with pytest.raises(UserError) as caught:
        load_study(str(path))
    told = [one for one in str(caught.value).splitlines() if one.startswith(f"{path}:{line}: ")]
    assert any(words in one for one in told), str(caught.value)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("method.epsilon=21", "method.epsilon: 21.0 given, allowed is at most 2/temperature = 20 (FairKL paper A.2)"),
        ("method={}", "method.name: is missing"),
        ("train.lr_milestones=[0.5, 1.5]", "train.lr_milestones.1: 1.5 given, allowed is less than 1"),
        ("train.seed=99999999999999999999999", "train.seed: 99999999999999999999999 given, allowed is less than or eq"),
        ("train=3", "train: 3 given, allowed is a mapping of keys to values"),
    ],
)
def test_a_bad_override_is_told_at_the_override(assignment: str, words: str) -> None:
    found = refused(assignment)
    assert words in found
    assert "--set" in found or "quickstart.yaml" in found
    assert "instance of" not in found
    assert len(found.splitlines()) <= 2 or "regulariser" in assignment


def test_everything_wrong_is_told_at_once() -> None:
    sections = ["train.epochs=0", "data.rho=2", "model.width=0", "method.alpha=-1", "train.speed=1", "data.rhoo=1"]
    assert len(refused(*sections).splitlines()) == 6
    settings = ["search.sampler=tep", "search.pruner=asha", "resources.cpu=-1"]
    assert len(refused(*settings, *sections).splitlines()) == 9
    names = ["method.regulariser=nones", "method.epsilonn=1", "method.lambda=-1"]
    assert len(refused(*names, "search.space={}", "search.baseline=null").splitlines()) == 3


def test_the_missing_sections_are_named(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text("name: x\n")
    with pytest.raises(UserError) as caught:
        load_study(str(tmp_path / "short.yaml"))
    for section in ("data", "model", "method"):
        assert f"{section}: is missing" in str(caught.value)


@pytest.mark.parametrize(("key", "shown"), [('"a\\nb"', r"'a\nb'"), ('"a\\u2028b"', r"'a\u2028b'"), ("''", "''")])
def test_a_key_is_shown_in_one_line(tmp_path: Path, key: str, shown: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(f"{QUICKSTART}{key}: 3\n")
    with pytest.raises(UserError) as caught:
        load_study(str(path))
    assert str(caught.value).startswith(f"{path}:{len(QUICKSTART.splitlines()) + 1}: {shown}: unknown key. ")
    assert len(str(caught.value).splitlines()) == 1


def test_a_message_stays_one_line_whatever_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    labels = 'search:\n  alternatives: {method: {"a\\u2028b": {name: wcl}, "c\\nd": {name: wcl}}}\n'
    path.write_text(QUICKSTART.replace("search:\n", labels, 1))
    with pytest.raises(UserError, match=r"Allowed: 'a\\u2028b', 'c\\nd', bias_balanced_cross_entropy, ") as caught:
        load_study(str(path), ["search.space.method.name={choices: [e]}"])
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("own", ["data", "search.alternatives.data.mine"])
def test_data_that_cannot_be_described_are_told_with_the_file(own: str) -> None:
    search = ["search.space.data.name={choices: [biased_digits, mine]}", "search.alternatives={data: {mine: {}}}"]
    given = [
        *search,
        "search.alternatives.data.mine={name: biased_digits}",
        f"{own}={{name: table, path: no.csv, target: x}}",
    ]
    with pytest.raises(UserError, match=r"data: no\.csv: not found\. Looked for "):
        quickstart(*given)


def test_a_profile_applies_before_the_overrides() -> None:
    assert load_study("fairkl_digits", profile="gpu").resources.gpu == 0.25
    assert load_study("fairkl_digits", ["resources.gpu=0.5"], profile="gpu").resources.gpu == 0.5


@pytest.mark.parametrize(
    "key",
    [
        *("train.epochs", "train.seed", "method.alpha", "search.trials"),
        *("search.time", "search.early_stopping.reduction", "resources.cpu"),
    ],
)
def test_a_number_that_no_machine_can_count_to_is_told(key: str) -> None:
    for digits in ("9" * 400, "-" + "9" * 400, "9" * 5000):
        told = refused(f"{key}={digits}")
        assert told.startswith(f"--set {key}=")
        assert "allowed is" in told or "cannot be read" in told
        assert len(told) < 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "count"), [("train", 3000), ("search", 300), ("data", 300), ("search.space", 300), ("train", 41)]
)
def test_of_many_faults_the_first_are_told_and_the_others_counted(tmp_path: Path, section: str, count: int) -> None:
    values = read_study_file(find_study_file("quickstart")).values
    keys = values["search"]["space"] if section == "search.space" else values[section]
    keys |= {f"method.x{number}" if section == "search.space" else f"x{number}": 1 for number in range(count)}
    path = tmp_path / "many.yaml"
    path.write_text(dump_yaml(values))
    with pytest.raises(UserError) as caught:
        load_study(str(path))
    lines = str(caught.value).splitlines()
    assert len(lines) == 41
    assert lines[-1] == f"{path}: and {count - 40} more problems"
    assert len(str(caught.value)) < 60_000


@pytest.mark.parametrize(
    "assignment", ["train.epochs={}", "train.{}=1", "{}=1", "name={}", "method.name={}", "train.epochs.{}=1", "{}"]
)
def test_what_is_longer_than_a_message_is_shortened(assignment: str) -> None:
    told = refused(assignment.format("long" * 100_000))
    assert len(told) < 5000
    assert "characters)" in told


@pytest.mark.parametrize(
    "assignments", [("train.epochs=1",), ("train.epochs=3", "search.early_stopping={name: asha, grace: 4}")]
)
def test_early_stopping_need_not_suit_a_single_trial(assignments: tuple[str, ...]) -> None:
    assert "search.early_stopping." in refused(*assignments)
    assert load_study("fairkl_digits", assignments, one_trial=True).epochs == int(
        assignments[0].removeprefix("train.epochs=")
    )
    with pytest.raises(UserError, match=r"train\.epochs: 0 given"):
        load_study("fairkl_digits", ["train.epochs=0"], one_trial=True)


def test_the_epoch_of_a_trial_is_the_last_or_the_best_in_a_window() -> None:
    assert SPEC.objective.epoch_window is None
    assert quickstart("search.epoch=best").objective.epoch_window == 3
    assert quickstart("search.epoch=best", "search.epoch_window=7").objective.epoch_window == 7
    assert quickstart("search.epoch_window=7").objective == SPEC.objective
    assert "search.epoch: 'first' given. Allowed: last, best" in refused("search.epoch=first")
    assert "search.epoch_window: 0 given, allowed is greater than or equal to 1" in refused("search.epoch_window=0")
    assert "search.metric: 'val/knn_accuracy' given." in refused("search.epoch=best", "search.metric=val/knn_accuracy")


def test_early_stopping_may_be_a_word() -> None:
    by_word, in_full = (quickstart(f"search.early_stopping={value}").search for value in ("asha", "{name: asha}"))
    assert by_word == in_full
    with pytest.raises(UserError, match=r"search\.early_stopping\.name: 'ashaa' given\. Did you mean 'asha'\?"):
        quickstart("search.early_stopping=ashaa")


def test_what_is_set_away_takes_its_own_keys_along(capsys: pytest.CaptureFixture[str]) -> None:
    """Where they are searched, in the baseline and in the section; what the user names stays, and is refused."""
    spec = quickstart("method.regulariser=none")
    assert list(spec.search.space) == ["method.alpha", "method.epsilon"]
    assert spec.search.baseline == {"method.alpha": 1.0, "method.epsilon": 0.0}
    assert capsys.readouterr().err == "left out, as nothing uses them with method.regulariser=none: method.lambda\n"
    plain = quickstart("method.name=cross_entropy", "method.regulariser=none")
    weights = {"class_weights": 0.0, "cell_weights": 0.0}
    own = {"name": "cross_entropy", "regulariser": "none", "alpha": 1.0, "adversary": "none"}
    assert plain.base["method"] == own | weights
    assert quickstart("method.name=learning_from_failure").search.space == {}
    assert "space.method.lambda: unknown key" in refused("method.regulariser=none", "search.space.method.lambda.low=1")
    chosen = "search.space.method.regulariser={choices: [none, fair_kl]}"
    assert "method.lambda" in quickstart(chosen, "search.baseline=null", "method.regulariser=none").search.space


def test_yes_and_off_are_told_what_is_allowed(tmp_path: Path) -> None:
    for word in ("yes", "off"):
        with pytest.raises(UserError, match=rf"train\.with_val: '{word}' given, allowed is true or false"):
            load_study("fairkl_digits", [f"train.with_val={word}"])
