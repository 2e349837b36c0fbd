"""Situations of public bug reports, as a user meets them: what `study plan` and a trial make of small files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study.commands import plan
from study.errors import UserError
from study.spec import load_study
from study.spec.load import StudySpec

SECTIONS = """\
name: case
model: {name: mlp}
method: {name: cross_entropy}
train: {epochs: 1}
search: {trials: 1, metric: val/worst_class_accuracy, space: {train.learning_rate: {low: 0.001, high: 0.1, log: true}}}
"""


pytestmark = pytest.mark.usefixtures("workplace")


def noise(count: int) -> pd.DataFrame:
    """Rows whose class nothing tells."""
    draw = np.random.default_rng(5)
    columns = {
        "age": draw.integers(20, 65, count),
        "income": np.round(draw.normal(30, 9, count), 2),
        "sex": np.array(["f", "m"])[draw.integers(0, 2, count)],
        "repaid": np.array(["no", "yes"])[draw.integers(0, 2, count)],
    }
    return pd.DataFrame(columns)


def study(rows: pd.DataFrame, keys: str = "", epochs: int = 1) -> StudySpec:
    rows.to_csv("rows.csv", index=False)
    data = f"data: {{name: table, path: rows.csv, target: repaid, bias: sex{keys}}}\n"
    Path("case.yaml").write_text(SECTIONS.replace("epochs: 1", f"epochs: {epochs}") + data)
    return load_study("case.yaml")


def told(spec: StudySpec) -> str:
    return plan.text(plan.plan(spec))


def test_plan_says_what_counts_the_rows_and_which_rows_are_equal() -> None:
    words = told(study(pd.concat([noise(80)] * 3).assign(id=range(240))))
    assert "column 'id' counts the rows and is no input" in words
    assert "160 of 240 rows have the inputs of another one: they stay in one split" in words


def test_plan_names_the_positive_class_and_warns_of_the_other_way_round() -> None:
    rows = noise(120).replace({"yes": "approved", "no": "denied"})
    assert "positive class: denied" in told(study(rows))
    assert "positive class: approved" in told(study(rows, ", positive: approved"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows.assign(income=rows["income"].astype(object).where(rows.index != 57, "?")), "line 59"),
        (
            lambda rows: rows.assign(repaid=rows["repaid"].where(rows.index % 5 != 0, rows["repaid"].str.title())),
            "spells",
        ),
        (lambda rows: rows.assign(split=["train", "val", "test"] * 40), r"data\.split: split"),
    ],
)
def test_what_may_be_meant_otherwise_is_refused_before_anything_starts(change, says) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=says):
        told(study(change(noise(120))))
