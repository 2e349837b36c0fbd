"""A study whose validation split cannot have its metrics is refused before anything starts."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from study.commands import single_trial
from study.commands.plan import plan_study, plan_text
from study.driver import run
from study.errors import UserError
from study.home.folder import Home
from study.spec import StudySpec, load_study

FILE = """\
name: repaid
data: {{name: table, path: "{path}", target: repaid, bias: sex, split: split{data}}}
model: {{name: mlp}}
method: {{name: cross_entropy}}
train: {{epochs: 1}}
search:
  space: {{train.learning_rate: {{low: 0.001, high: 0.01, log: true}}}}
  trials: 2
  {search}
resources: {{cpu: 1, gpu: 0}}
"""

NOT_COMPARED = ("equal_opportunity", "equalized_odds")
EMPTY = "class 'yes' in group 'f'"


def study(folder: Path, search: str, positives_of_f: int = 0, data: str = "") -> StudySpec:
    """A study whose validation split has so many positives of group f."""
    rows = [(split, sex, repaid) for split in ("train", "test") for sex in "fm" for repaid in ("no", "yes")] * 20
    rows += [("val", *cell) for cell in (("f", "no"), ("m", "no"), ("m", "yes"))] * 20
    rows += [("val", "f", "yes")] * positives_of_f
    table = folder / "repaid.csv"
    lines = [f"{(7 * row) % 31}.5,{sex},{repaid},{split}" for row, (split, sex, repaid) in enumerate(rows)]
    table.write_text("\n".join(["income,sex,repaid,split", *lines]) + "\n")
    file = folder / "study.yaml"
    file.write_text(FILE.format(path=table, search=search, data=data))
    return load_study(file)


def searched(metric: str) -> str:
    return f"metric: val/{metric}"


@pytest.mark.parametrize("metric", [*NOT_COMPARED, "group_1_0_accuracy"])
def test_a_metric_of_an_empty_cell_is_refused_by_plan_and_trial(tmp_path: Path, metric: str) -> None:
    spec = study(tmp_path, searched(metric))
    with pytest.raises(UserError) as refused:
        plan_study(spec)
    assert "search.metric" in str(refused.value)
    assert EMPTY in str(refused.value)
    assert "val/worst_group_accuracy" in str(refused.value)
    with pytest.raises(UserError, match=r"search\.metric"):
        next(single_trial.SingleTrial(spec, "cpu").epochs())


@pytest.mark.parametrize("metric", NOT_COMPARED)
def test_so_is_a_constraint(tmp_path: Path, metric: str) -> None:
    with pytest.raises(UserError, match=rf"search\.constraints: val/{metric} given"):
        plan_study(study(tmp_path, f'constraints: ["val/{metric} <= 0.1"]'))


def test_so_is_a_rule_of_confirm(tmp_path: Path) -> None:
    rule = 'confirm: {top: 1, seeds: 2, rules: ["accuracy where equalized_odds <= 0.1"]}'
    with pytest.raises(UserError, match=rf"search\.confirm\.rules: val/equalized_odds .* {EMPTY}"):
        plan_study(study(tmp_path, rule))


def test_which_samples_agree_with_the_bias_is_as_the_file_says(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"aligned_accuracy given.*no sample of {EMPTY}"):
        plan_study(study(tmp_path, searched("aligned_accuracy"), data=", aligned: [f=yes]"))
    assert plan_study(study(tmp_path, searched("aligned_accuracy"), data=", aligned: [m=yes]"))


@pytest.mark.parametrize("metric", ["demographic_parity", "accuracy_parity", "accuracy", "auc"])
def test_what_can_be_had_is_not_refused(tmp_path: Path, metric: str) -> None:
    assert plan_study(study(tmp_path, searched(metric))).metric.startswith(f"val/{metric}")


@pytest.mark.parametrize("metric", NOT_COMPARED)
def test_one_sample_is_enough_to_be_had(tmp_path: Path, metric: str) -> None:
    warnings = plan_study(study(tmp_path, searched(metric), positives_of_f=1)).warnings
    assert any("1 sample" in warning for warning in warnings)


def test_a_cell_without_samples_is_warned_of_more_than_one_of_one_sample(tmp_path: Path) -> None:
    document = plan_study(study(tmp_path, searched("worst_group_accuracy")))
    assert any(EMPTY in warning and "cannot see" in warning for warning in document.warnings)
    assert f"no sample of {EMPTY}" in plan_text(document)
    one = plan_study(study(tmp_path, searched("worst_group_accuracy"), positives_of_f=1))
    assert not any("no sample" in warning for warning in one.warnings)


def test_run_refuses_before_it_makes_anything(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with pytest.raises(UserError, match=EMPTY):
        run.run_new_study(home, study(tmp_path, searched("equalized_odds")), lambda *_: nullcontext(lambda _: None))
    assert home.list_studies() == []
