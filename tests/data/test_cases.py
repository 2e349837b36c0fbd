"""Situations of public bug reports, as a user meets them: what `study plan` and a trial make of small files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from study.commands import plan, trial
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


def last_epoch(spec: StudySpec) -> dict[str, float]:
    """The metrics of a trial of the study's own configuration."""
    *_, metrics = trial.run(spec, device="cpu")
    return metrics


def test_rows_that_are_there_three_times_are_not_learned_by_heart() -> None:
    spec = study(pd.concat([noise(80)] * 3), epochs=60)
    assert last_epoch(spec)["val/accuracy"] < 0.65


def test_a_running_number_tells_no_class() -> None:
    rows = noise(240).sort_values("repaid", ignore_index=True)
    spec = study(rows.assign(id=range(240)), epochs=60)
    assert last_epoch(spec)["val/accuracy"] < 0.65


PICTURES = """\
name: pictures
data: {name: image_folder, path: photos, target: shape, bias: place, size: 16}
model: {name: small_conv_net}
method: {name: cross_entropy}
train: {epochs: 15, batch_size: 16}
search: {trials: 1, metric: val/accuracy, space: {train.learning_rate: {low: 0.001, high: 0.1, log: true}}}
"""


def photographs(signal: bool, seed: int = 0) -> StudySpec:
    """120 pictures, of a bright bar on top or at the left, or of noise."""
    draw, rows = np.random.default_rng(seed), []
    Path("photos").mkdir(exist_ok=True)
    for number in range(120):
        target, split = number % 2, ["train", "train", "val", "test"][(number // 2) % 4]
        pixels = draw.integers(0, 60, (16, 16, 3)).astype("uint8")
        if signal:
            pixels[(slice(5), slice(None)) if target else (slice(None), slice(5))] = 230
        Image.fromarray(pixels).save(f"photos/{number:03}.bmp")
        rows.append([f"{number:03}.bmp", ["left", "top"][target], ["a", "b"][(number // 8) % 2], split])
    pd.DataFrame(rows, columns=["file", "shape", "place", "split"]).to_csv("photos/labels.csv", index=False)
    Path("pictures.yaml").write_text(PICTURES)
    return load_study("pictures.yaml")


@pytest.mark.slow
def test_pictures_that_are_put_over_others_are_the_ones_trained_on() -> None:
    assert last_epoch(photographs(signal=True))["val/accuracy"] > 0.9
    assert last_epoch(photographs(signal=False, seed=1))["val/accuracy"] < 0.8
