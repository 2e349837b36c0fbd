"""What a message of a study file proposes is accepted when it is typed as it is proposed."""

import re
import shlex
from pathlib import Path

import pytest

from study.errors import UserError
from study.spec import load_study

FILE = """\
name: mine
data: {name: biased_digits, rho: 0.95}
model: {name: small_conv_net}
method: {name: cross_entropy}
search:
  space: {train.learning_rate: {low: 0.001, high: 0.1, log: true}}
"""


@pytest.fixture
def study_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text(FILE)
    return file


def refused(file: Path, *assignments: str) -> str:
    with pytest.raises(UserError) as error:
        load_study(str(file), assignments)
    return str(error.value)


def proposed(message: str) -> list[str]:
    """Return what each proposal of a message is, as it is typed."""
    found = re.search(r"Did you mean (.+?)\?( |$)", message, re.MULTILINE)
    assert found, message
    return [re.sub(r"^'(.*)'$", r"\1", part) for part in re.split(r" or | and (?!no)", found[1])]


@pytest.mark.parametrize(
    "typed",
    [
        "method.name=crossentropy",
        "method.name=eps_sup_info_nc",
        "method.name=eps_info_nc",
        *(f"method.name={word}" for word in ("dcl", "HCL", "CCL-K", "fscl", "SimCLR", "biasbal", "lff", "jtt", "gce")),
        "model.name=simpleconvnet",
        "data.name=biased_digit",
        "search.sampler=bayes",
        "search.sampler=sobol",
        "search.metric=val/acc",
        "search.metric=test/accuracy",
        "train.optimizer=adm",
        "method.regulariser=fairkl",
    ],
)
def test_a_proposed_value_is_accepted(study_file: Path, typed: str) -> None:
    key = typed.partition("=")[0]
    for value in proposed(refused(study_file, typed)):
        again = f"{key}={value}"
        views = ["train.augmentation=crop_flip"] if key == "method.name" else []
        load_study(str(study_file), [again, *views])


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        *((typed, "eps_sup_info_nce") for typed in ("fairkl", "FairKL", "eps_sup_info_nce+fair_kl")),
        *((typed, "sup_con") for typed in ("sup_con+fair_kl", "sup_con+fairkl", "SupCon+FairKL", "sup_con_fair_kl")),
        ("cross_entropy+fair_kl", "cross_entropy"),
    ],
)
def test_fair_kl_is_proposed_as_the_two_keys_that_it_is(study_file: Path, typed: str, name: str) -> None:
    both = proposed(refused(study_file, f"method.name={typed}"))[0].split(" with ")
    method = load_study(str(study_file), both).base["method"]
    assert (method["name"], method["regulariser"]) == (name, "fair_kl")


def test_fair_kl_among_searched_methods_is_proposed_as_an_alternative(study_file: Path) -> None:
    space = "search.space.method.name={choices: [cross_entropy, %s]}"
    (name, alternatives) = proposed(refused(study_file, space % "fairkl"))[0].split("', with ")
    assert load_study(str(study_file), [space % name.strip("'"), alternatives]).space.domains["method.name"].choices


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("train.epoch", "3"),
        ("epochs", "3"),
        ("learning_rate", "0.1"),
        ("method.temprature", "0.1"),
        ("search.confirm.tops", "3"),
        ("search.early_stopping.grac", "2"),
        ("resources.gpus", "0.5"),
        ("search.trial", "5"),
        ("search.space.train.weight_deca", "{low: 0.1, high: 1.0}"),
        ("search.baseline.train.learning_rat", "0.1"),
    ],
)
def test_a_proposed_key_is_accepted_in_its_place(study_file: Path, typed: str, value: str) -> None:
    method = ["method.name=sup_con"] if "method" in typed else []
    message = refused(study_file, *method, f"{typed}={value}")
    for key in proposed(message):
        before = re.match(r"search\.(space|baseline)\.", typed)
        load_study(str(study_file), [*method, f"{before[0] if before else ''}{key}={value}"])


def test_a_key_that_cannot_be_searched_is_not_proposed_but_said(study_file: Path) -> None:
    message = refused(study_file, "search.space.train.epoch={low: 1, high: 9}")
    assert "train.epochs cannot be searched: every trial of a study has the same epochs" in message
    assert "Did you mean" not in message


def test_a_profile_is_proposed_keys_with_their_section(study_file: Path) -> None:
    study_file.write_text(f"{FILE}profiles:\n  small: {{train.epoch: 3}}\n")
    with pytest.raises(UserError, match=r"Did you mean 'train\.epochs'\?"):
        load_study(str(study_file), profile="small")


@pytest.mark.parametrize("line", ["epochs: 3", "train.epochs: 3", "learning_rate: 0.1"])
def test_a_key_of_a_section_is_proposed_to_a_file_in_its_section(study_file: Path, line: str) -> None:
    study_file.write_text(f"{FILE}{line}\n")
    (section,) = proposed(refused(study_file))
    study_file.write_text(f"{FILE}{section.replace('...', line.split()[-1])}\n")
    assert load_study(str(study_file))


def test_a_file_whose_name_has_a_blank_is_proposed_as_a_shell_takes_it(study_file: Path) -> None:
    study_file.rename(study_file.with_name("my birds.yaml"))
    for typed in ("my bird.yaml", "my bird"):
        with pytest.raises(UserError) as error:
            load_study(typed)
        found = re.search(r"Did you mean (.+?)(\?|$)", str(error.value))
        assert found
        (word,) = shlex.split(found[1])
        assert load_study(word).name == "mine"
