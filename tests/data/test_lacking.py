"""Classes, bias classes and groups that training has no sample of are named; a bias that is none is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from study.cli import app
from study.commands.plan import plan_study, plan_text
from study.data import cells
from study.errors import UserError
from study.spec import load_study

STUDY = """
name: people
data: {name: table, path: people.csv, target: repaid, bias: sex, features: [age]}
model: {name: mlp, width: 8}
method: {name: cross_entropy}
train: {epochs: 2, batch_size: 16, learning_rate: 0.01}
search: {trials: 1, metric: val/accuracy}
"""


@pytest.fixture
def people(workplace) -> pd.DataFrame:
    number = np.arange(96)
    return pd.DataFrame(
        {
            "repaid": np.array(["no", "yes"])[number % 2],
            "sex": np.array(["f", "m"])[number // 2 % 2],
            "part": np.array(["train", "val", "test"])[number // 4 % 3],
            "age": 20.0 + number * 7 % 31,
        }
    )


def warned(frame: pd.DataFrame) -> list[str]:
    frame.to_csv("people.csv", index=False)
    section = {"name": "table", "path": "people.csv", "target": "repaid", "bias": "sex", "features": ["age"]}
    return cells.warnings_from_counts(
        cells.count_cells_of_dataset(load_study_of("data.split=part").base["data"] | section)
    )


def load_study_of(*assignments: str):
    Path("people.yaml").write_text(STUDY)
    return load_study("people.yaml", assignments)


def test_a_class_without_training_rows_is_named(people):
    people.loc[people["part"] == "test", "repaid"] = "perhaps"
    assert warned(people) == [
        "class 'perhaps' (32 in test) has no training sample: it cannot be learned, and all of it counts as wrong"
    ]


def test_a_bias_that_copies_the_class_is_told(people):
    people["sex"] = people["repaid"].map({"no": "f", "yes": "m"})
    (told,) = warned(people)
    assert told.startswith("no sample goes against the bias: it cannot be told from the class")


def test_a_group_without_training_rows_is_named(people):
    gone = (people["part"] == "train") & (people["sex"] == "f") & (people["repaid"] == "yes")
    in_val, in_test = warned(people[~gone])
    assert in_val == (
        "no training sample of class 'yes' with bias class 'f' (8 in val): nothing is learned of such samples"
    )
    assert "(8 in test)" in in_test


def test_whole_data_are_not_warned_of(people):
    assert warned(people) == []


def test_a_bias_of_one_value_is_refused_where_it_is_needed_and_warned_of_elsewhere(people):
    people.assign(sex="m").to_csv("people.csv", index=False)
    warnings = plan_study(load_study_of()).warnings
    assert "the bias is 'm' in every row: no group differs from another. Leave out data.bias" in warnings
    for assignment in (
        "search.metric=val/worst_group_accuracy",
        "method.name=group_dro",
        "search.space.method.name={choices: [cross_entropy, group_dro]}",
    ):
        with pytest.raises(UserError, match=r"the bias is 'm' in every row: .* can tell no groups apart"):
            load_study_of(assignment)


def test_plan_notes_what_rows_are_and_names_the_positive_class(people):
    people.replace({"no": "approved", "yes": "denied"}).to_csv("people.csv", index=False)
    words = plan_text(plan_study(load_study_of()))
    assert "so few values make rows equal by chance" in words
    assert "positive class: denied" in words
    assert "data.positive: approved" in words


def test_a_bias_that_is_known_for_nobody_is_refused(people):
    people.assign(sex="").to_csv("people.csv", index=False)
    with pytest.raises(UserError, match=r"column 'sex' is empty in every row: the bias is known for nobody"):
        load_study_of("data.bias_gaps=unknown")


def init(*more: str):
    words = ["init", "mine", "--data", "people.csv", "--target", "repaid", "--bias", "sex", "--cpu", *more]
    return CliRunner().invoke(app, [*words, "--trials", "4"])


def test_init_warns_of_a_class_without_training_rows(people):
    people.loc[people["part"] == "test", "repaid"] = "perhaps"
    people.to_csv("people.csv", index=False)
    done = init("--set", "data.split=part")
    assert done.exit_code == 0, done.stderr
    assert "class 'perhaps' (32 in test) has no training sample" in str(done.stderr)
