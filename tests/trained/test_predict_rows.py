"""A model of a table: its files alone classify rows as in training, and what is wrong with a row is told."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from final_training import TABLE, people, train_study, train_table
from safetensors import safe_open
from typer.testing import CliRunner, Result

from study import data
from study.api.trained_model import TrainedModel
from study.cli import app
from study.commands.final_training import final_training_spec
from study.data.dataset import Facts
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.spec import load_study
from study.trained import ModelDescription, TrainedClassifier
from study.trained.evaluate import evaluate_model
from study.trained.prediction import predict_rows


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    place = tmp_path_factory.mktemp("table")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDY_DATA", str(place / "data"))
        return train_table(Home(place / "home"), people(place / "people.csv"))


def table_of(loans: StudyFolder) -> Path:
    return Path(loans.load_spec().base["data"]["path"])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def predict(loans: StudyFolder, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["predict", str(loans.model_description_file(0)), "--device", "cpu", *arguments])


@pytest.mark.slow
def test_the_training_table_is_classified_as_in_training(loans: StudyFolder) -> None:
    done = predict(loans, str(table_of(loans)), "-o", "classes.csv")
    assert done.exit_code == 0, done.stderr
    rows = list(csv.DictReader(Path("classes.csv").read_text().splitlines()))
    assert [row["row"] for row in rows] == [str(n + 1) for n in range(120)]
    right = np.mean([row["class"] == ("no", "yes")[n % 2] for n, row in enumerate(rows)])
    dataset, record = data.load(loans.load_spec().base["data"]), StudyRecord.load(loans.ledger_file)
    classifier = TrainedClassifier.load_from_description(loans.model_description_file(0), "cpu")
    expected = [
        np.mean(classifier.predict_probabilities(s.inputs).argmax(1) == s.target) for s in dataset.splits.values()
    ]
    assert right == pytest.approx(np.average(expected, weights=[len(s) for s in dataset.splits.values()]))
    assert expected[2] == pytest.approx(record.trials[0].test_metrics["test/accuracy"])
    for row in rows:
        assert row["confidence"] == max(row["p(no)"], row["p(yes)"]) == row[f"p({row['class']})"]


def test_the_card_says_how_large_and_how_fast_it_is(loans: StudyFolder) -> None:
    """The probe beside a method's own classifier was counted, too, as if it predicted."""
    (said,) = re.findall(
        r"Trained: ([\d,]+) parameters that predict, ([\d,]+) for training alone, [\d.]+ MB on disk\. A row takes "
        r"[\d.e-]+ ms",
        loans.model_card_file.read_text(),
    )
    with safe_open(loans.model_file(0), "np") as file:
        sizes = {name: int(np.prod(file.get_slice(name).get_shape())) for name in file.keys()}  # noqa: SIM118
    of_probe = sum(size for name, size in sizes.items() if name.startswith("probes."))
    assert of_probe > 0
    assert int(said[1].replace(",", "")) == of_probe


def test_a_row_alone_is_as_it_is_among_others(loans: StudyFolder) -> None:
    """No mean of the rows that are given enters, and columns may come in any order, as any type, with others."""
    whole = TrainedModel(TrainedClassifier.load_from_description(loans.model_description_file(0), "cpu")).predict(
        table_of(loans)
    )
    frame = pd.read_csv(table_of(loans)).iloc[[4]]
    frame = frame[["owner", "income", "job", "sex"]].assign(extra=1, owner=bool(frame["owner"].iloc[0]))
    alone = TrainedModel(TrainedClassifier.load_from_description(loans.model_description_file(0), "cpu")).predict(frame)
    np.testing.assert_allclose(alone.iloc[0, 1:].astype(float), whole.iloc[4, 1:].astype(float), rtol=1e-5)
    frame.to_parquet("one.parquet")
    np.testing.assert_allclose(
        TrainedModel(TrainedClassifier.load_from_description(loans.model_description_file(0), "cpu"))
        .predict("one.parquet")
        .iloc[0, 1:]
        .astype(float),
        alone.iloc[0, 1:].astype(float),
    )


def test_rows_that_cannot_be_read_are_named_and_the_others_classified(loans: StudyFolder, here: Path) -> None:
    (here / "new.csv").write_text(
        "job,income,owner\nnurse,1200,true\npilot,1200,TRUE\ncook,much,false\nclerk,,False\n,5,true\n"
    )
    done = predict(loans, "new.csv", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert [row["row"] for row in found] == [1, 4], "a missing number is filled, as in training"
    assert found[0]["confidence"] == max(found[0]["probabilities"].values())
    told = done.stderr.splitlines()
    assert told[-4:] == [
        "left out: column 'job': 'pilot' (row 2) is in no row of the training table. It has: clerk, cook, nurse",
        "left out: column 'income': 'much' (row 3) is no number",
        "left out: column 'job': a cell (row 5) is empty, as none of the training table is. It has: clerk, cook, nurse",
        "error: 3 of 5 rows could not be read",
    ]


def test_a_column_of_the_table_names_the_rows(loans: StudyFolder, here: Path) -> None:
    (here / "new.csv").write_text("job,income,owner,case\nnurse,1200,true,007\npilot,1,true,8\ncook,9,false,=1+1\n")
    done = predict(loans, "new.csv", "--id", "case")
    rows = list(csv.reader(done.stdout.splitlines()))
    assert rows[0][:3] == ["case", "row", "class"]
    assert [row[:2] for row in rows[1:]] == [["007", "1"], ["'=1+1", "3"]]
    assert [row["id"] for row in json.loads(predict(loans, "new.csv", "--id", "case", "--json").stdout)] == [
        "007",
        "=1+1",
    ]
    assert "Did you mean 'case'" in str(predict(loans, "new.csv", "--id", "cas").exception)


def test_all_columns_that_an_evaluation_lacks_are_named_at_once(loans: StudyFolder, here: Path) -> None:
    text = table_of(loans).read_text(encoding="utf-8")
    (here / "new.csv").write_text(text.replace("income,job,owner,repaid", "incme,job,ownr,repayed", 1))
    model = str(loans.model_description_file(0))
    done = CliRunner().invoke(app, ["evaluate", model, "new.csv", "--device", "cpu"])
    assert (
        "no column 'repaid' (did you mean 'repayed'?), 'income' (did you mean 'incme'?), 'owner' (did you mean 'ownr'?)"
    ) in str(done.exception)


def test_each_unknown_word_is_named_once_with_its_rows(loans: StudyFolder, here: Path) -> None:
    jobs = ["pilot"] * 13 + [f"job {n}" for n in range(40)]
    lines = [f"{job},{'much' if job == 'job 3' else 1200},true\n" for job in jobs]
    (here / "new.csv").write_text("job,income,owner\n" + "".join(lines))
    told = predict(loans, "new.csv").stderr.splitlines()
    words = next(line for line in told if "'job'" in line)
    assert words.startswith("left out: column 'job': 'pilot' (13 rows, first 1), 'job 0' (row 14), 'job 1' (row 15), ")
    assert len(words) < 500
    assert "left out: column 'income': 'much' (row 17) is no number" in told
    assert told[-1] == "error: 53 of 53 rows could not be read"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "incme,job\n1,cook\n",
            "no column 'income' (did you mean 'incme'?), 'owner'. It has: incme, job. The",
        ),
        ("income,job,owner\n", "has no rows"),
        ("income,job,owner,job\n1,cook,true,cook\n", "column 'job' is there 2 times"),
    ],
)
def test_a_table_of_another_kind_is_refused(loans: StudyFolder, here: Path, text: str, problem: str) -> None:
    (here / "new.csv").write_text(text)
    done = predict(loans, "new.csv")
    assert isinstance(done.exception, UserError)
    assert problem in str(done.exception)
    with pytest.raises(UserError, match="takes the rows of one table"):
        raise predict(loans, "new.csv", "new.csv").exception or AssertionError
    with pytest.raises(UserError, match="--file x: is for lists of images"):
        raise predict(loans, "new.csv", "--file", "x").exception or AssertionError


@pytest.mark.slow
def test_an_evaluation_names_the_rows_of_classes_that_the_model_does_not_know(loans: StudyFolder, here: Path) -> None:
    rows = list(csv.reader(table_of(loans).read_text().splitlines()))
    at = rows[0].index(str(loans.load_spec().base["data"]["target"]))
    for number, name in ((3, "maybe"), (5, "later"), (8, "maybe")):
        rows[number][at] = name
    with (here / "odd.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(UserError) as error:
        evaluate_model(Home(here / "home"), loans.model_description_file(0), "all", "odd.csv")
    told = str(error.value)
    assert "odd.csv: column " in told
    assert "'maybe' (2 rows, first 3), 'later' (row 5) are no class of the model. It has: 'no', 'yes'" in told


@pytest.mark.parametrize(("codes", "unknown"), [(["01", "02", "03"], "03"), ([1.0, 2.0, 3.0], "3")])
def test_rows_of_unknown_classes_are_found_by_the_names_that_training_gave_them(
    here: Path, codes: list[str] | list[float], unknown: str
) -> None:
    """pandas takes 01 for 1, and numbers of a Parquet file may be floats."""
    from study.trained.evaluate import _check_classes_of_table

    path = here / ("codes.csv" if unknown == "03" else "codes.parquet")
    frame = pd.DataFrame({"kind": codes})
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    facts = [Facts(2, None, (1,), class_names=names) for names in (("01", "02", unknown), ("01", "02", "1", "2"))]
    with pytest.raises(UserError, match=rf"column 'kind': '{unknown}' \(row 3\) is no class of the model"):
        _check_classes_of_table({"path": str(path), "target": "kind"}, *facts)


def test_other_rows_are_evaluated_with_the_encoding_of_training(loans: StudyFolder, here: Path) -> None:
    """Not with the mean of the other table's own rows; a value that training had not is refused."""
    home, model = Home(here / "home"), loans.model_description_file(0)
    own = evaluate_model(home, model, "train")
    text = table_of(loans).read_text()
    lines = text.splitlines()
    few = [line for number, line in enumerate(lines) if number % 3 or not number]
    people(here / "shifted.csv")
    (here / "shifted.csv").write_text("\n".join(few))
    assert own == evaluate_model(home, model, "train", assignments=[f"data.path={table_of(loans)}"])
    dataset = data.load_encoded(
        {**loans.load_spec().base["data"], "path": "shifted.csv"}, ModelDescription.read_file(model).encoding or ()
    )[0]
    classifier = TrainedClassifier.load_from_description(model, "cpu")
    expected = np.mean(
        classifier.predict_probabilities(dataset.splits["val"].inputs).argmax(1) == dataset.splits["val"].target
    )
    found = evaluate_model(home, model, "val", assignments=["data.path=shifted.csv"]).metrics
    assert found["val/accuracy"] == pytest.approx(expected)
    rows = pd.read_csv("shifted.csv")
    again = TrainedModel(classifier).predict(rows)
    assert len(again) == sum(len(split) for split in dataset.splits.values())
    (here / "other.csv").write_text(text.replace("cook", "pilot").replace("clerk", "pilot").replace("nurse", "pilot"))
    with pytest.raises(
        UserError, match=r"other\.csv: the model can take none of its rows: column 'job': 'pilot' \(\d+ ro"
    ):
        evaluate_model(home, model, "val", assignments=["data.path=other.csv"])


def test_rows_that_the_model_cannot_take_are_left_out_and_told_once(loans: StudyFolder, here: Path) -> None:
    """The others count as if those were not there."""
    rows = pd.read_csv(table_of(loans)).astype({"income": object})
    rows["part"] = "test"
    rows.loc[:2, "part"] = ("train", "val", "val")
    sound = rows.drop(index=[5, 6, 7, 30])
    sound.to_csv("sound.csv", index=False)
    rows.loc[[5, 6], "job"] = "pilot"
    rows.loc[7, "job"] = "diver"
    rows.loc[30, "income"] = "much"
    rows.to_csv("some.csv", index=False)
    home, model, split = Home(here / "home"), loans.model_description_file(0), ["data.split=part"]
    found = evaluate_model(home, model, "all", assignments=["data.path=some.csv", *split], device="cpu")
    expected = evaluate_model(home, model, "all", assignments=["data.path=sound.csv", *split], device="cpu")
    assert {**found.metrics} == pytest.approx({**expected.metrics}, nan_ok=True)
    assert found.samples == expected.samples == len(sound)
    assert sorted(found.left_out) == [5, 6, 7, 30]
    assert not expected.left_out
    words = ["--split", "all", "--device", "cpu", "--set", "data.path=some.csv", "--set", "data.split=part"]
    done = CliRunner().invoke(app, ["evaluate", str(model), *words])
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{len(sound)} samples; 4 rows of the table left out")
    assert len(told := done.stderr.splitlines()) == 2
    assert "left out: column 'job': 'pilot' (2 rows, first 6), 'diver' (row 8) are in no row" in "\n".join(told)
    assert "left out: column 'income': 'much' (row 31) is no number" in told
    assert json.loads(CliRunner().invoke(app, ["evaluate", str(model), *words, "--json"]).stdout)["left_out"] == 4
    strict = CliRunner().invoke(app, ["evaluate", str(model), *words, "--strict"])
    assert isinstance(strict.exception, UserError)
    assert strict.stdout == ""
    assert "'pilot' (2 rows, first 6)" in str(strict.exception)
    predicted = predict(loans, "some.csv")
    assert predicted.exit_code == 1
    assert [line for line in predicted.stderr.splitlines() if line.startswith("left out")] == told
    assert len(predicted.stdout.splitlines()) == len(sound) + 1
    assert isinstance(predict(loans, "some.csv", "--strict", "-o", "new.csv").exception, UserError)
    assert not Path("new.csv").exists()


def test_of_a_new_table_it_is_said_which_part_is_evaluated(loans: StudyFolder, here: Path) -> None:
    people(here / "new.csv", 90)
    words = ["evaluate", str(loans.model_description_file(0)), "--device", "cpu", "--set", "data.path=new.csv"]
    part = CliRunner().invoke(app, [*words, "--split", "test"]).stdout.splitlines()[0]
    assert part == "14 samples, the test split of these data; --split all takes every sample"
    every = CliRunner().invoke(app, [*words, "--split", "all"]).stdout.splitlines()
    assert every[0] == "90 samples"
    assert CliRunner().invoke(app, [*words[:-2], "--data", "new.csv"]).stdout.splitlines() == every


@pytest.mark.parametrize(
    "keys", [("val=biased",), ("val=unbiased",), ("val=unbiased", "group=household", "split=null")]
)
def test_all_rows_are_those_that_the_splits_would_leave_out_too(
    loans: StudyFolder, here: Path, keys: tuple[str, ...]
) -> None:
    """A given validation split that is not wanted, and what an unbiased one has too many of, are in no split."""
    rows = pd.read_csv(people(here / "new.csv", 90))
    parts = np.array(["train", "val", "test"])[np.arange(90) % 3]
    rows.assign(part=parts, household=np.arange(90) // 9).to_csv("new.csv", index=False)
    words = [word for key in ("split=part", *keys) for word in ("--set", f"data.{key}")]
    done = CliRunner().invoke(
        app, ["evaluate", str(loans.model_description_file(0)), "--device", "cpu", "--data", "new.csv", *words]
    )
    assert done.stdout.splitlines()[0] == "90 samples", done.exception


def test_a_few_rows_are_enough_to_evaluate(loans: StudyFolder, here: Path) -> None:
    """Nobody divides them: with two, a split for training, validation and test would not have a row each."""
    people(here / "many.csv", 90)
    lines = (here / "many.csv").read_text().splitlines(keepends=True)
    (here / "new.csv").write_text("".join(lines[:3]))
    words = ["evaluate", str(loans.model_description_file(0)), "--device", "cpu", "--data", "new.csv"]
    assert CliRunner().invoke(app, words).stdout.splitlines()[0] == "2 samples"
    one = CliRunner().invoke(app, [*words, "--split", "val"])
    assert str(one.exception) == "--split val: no sample is left for it; --split all takes every sample"


@pytest.mark.parametrize("missing", ["drop", "fill", "error"])
def test_rows_with_gaps_are_evaluated_as_they_were_trained(here: Path, missing: str) -> None:
    rows = pd.read_csv(people(here / "people.csv")).astype({"income": object})
    gaps = int(rows["income"].isna().sum())
    rows = rows if missing != "error" else rows.dropna()
    rows.to_csv("people.csv", index=False)
    Path("people.yaml").write_text(TABLE.replace("PATH", str(here / "people.csv")))
    spec = load_study("people.yaml", [f"data.missing={missing}"])
    home = Home(here / "home")
    model = train_study(home, final_training_spec(spec, [3], "gaps")).model_description_file(0)
    rows.loc[rows.index[11], "income"] = " "
    rows.iloc[::-1].to_csv("later.csv", index=False)
    found = evaluate_model(home, model, "all", assignments=["data.path=later.csv"], device="cpu")
    assert gaps
    assert found.samples == len(rows) - {"drop": gaps + 1, "fill": 0, "error": 1}[missing]
    assert len(found.left_out) == (missing == "error")


def test_a_table_that_changed_during_training_is_not_described(loans: StudyFolder, here: Path) -> None:
    """Its encoding would be another than the model's."""
    from study.trained.model_files import _table_encoding

    section, dataset = loans.load_spec().base["data"], data.load(loans.load_spec().base["data"])
    assert _table_encoding(section, dataset) == ModelDescription.read_file(loans.model_description_file(0)).encoding
    changed = people(here / "changed.csv", 90)
    assert _table_encoding({**section, "path": str(changed)}, dataset) is None
    assert _table_encoding({**section, "path": "nowhere.csv"}, dataset) is None


def test_rows_with_a_column_twice_are_refused(loans: StudyFolder) -> None:
    frame, classifier = (
        pd.read_csv(table_of(loans)),
        TrainedClassifier.load_from_description(loans.model_description_file(0), "cpu"),
    )
    name = next(column.name for column in classifier.description.encoding or ())
    twice = pd.concat([frame, frame[[name]]], axis=1)
    with pytest.raises(UserError, match=f"has more than one column '{name}'. Which one is meant?"):
        predict_rows(classifier, twice, "rows")


SPLITS = ("train", "val", "test")


def later(loans: StudyFolder, change: dict[str, str], keep: str = "") -> list[str]:
    """Settings for the training table with other words in the column `sex`, its first rows in another order."""
    frame = pd.read_csv(table_of(loans))
    frame = frame[frame["sex"] == keep] if keep else frame
    frame.iloc[::-1].assign(sex=frame["sex"].iloc[::-1].replace(change)).to_csv("later.csv", index=False)
    return [f"data.path={Path('later.csv').absolute()}"]


def test_other_rows_are_counted_in_the_models_groups(loans: StudyFolder, here: Path) -> None:
    """A table of one group alone gives the values of that group, wherever its name would stand among its own."""
    place = loans.model_description_file(0)
    home = Home(here / "home")
    only = evaluate_model(home, place, "train", assignments=later(loans, {}, keep="m"), device="cpu").metrics
    assert {name for name, value in only.items() if "group_" in name and "_1_" in name and value is not None}
    assert all(value is None for name, value in only.items() if name.endswith(("group_0_0_accuracy", "1_0_accuracy")))


def test_all_rows_of_another_table_are_measured_and_counted(loans: StudyFolder, here: Path) -> None:
    place, home, settings = loans.model_description_file(0), Home(here / "home"), later(loans, {})
    found = evaluate_model(home, place, "all", assignments=settings, device="cpu")
    parts = {split: evaluate_model(home, place, split, assignments=settings, device="cpu") for split in SPLITS}
    assert found.samples == len(pd.read_csv("later.csv")) == sum(part.samples for part in parts.values())
    right = sum((part.metrics[f"{split}/accuracy"] or 0) * part.samples for split, part in parts.items())
    assert found.metrics["all/accuracy"] == pytest.approx(right / found.samples)
    assert {name.partition("/")[2] for name in parts["val"].metrics} == {
        name.partition("/")[2] for name in found.metrics
    }
    share = (right + 0.5) / (found.samples + 1)
    assert found.metrics["all/accuracy_standard_error"] == pytest.approx((share * (1 - share) / found.samples) ** 0.5)
    with pytest.raises(UserError, match="the model's own data"):
        evaluate_model(home, place, "all", device="cpu")


def test_other_rows_without_a_test_split_are_not_the_models_own(loans: StudyFolder, here: Path) -> None:
    """Neither side has one: nothing is the same on both."""
    frame = pd.read_csv(table_of(loans)).iloc[::-1]
    frame.assign(part=[("train", "val")[row % 2] for row in range(len(frame))]).to_csv("parts.csv", index=False)
    place = loans.model_description_file(0)
    description = ModelDescription.read_file(place)
    replace(description, told={**description.told, "test_fingerprint": None}).write_file(place)
    settings = [f"data.path={Path('parts.csv').absolute()}", "data.split=part"]
    try:
        assert evaluate_model(Home(here / "home"), place, "all", assignments=settings, device="cpu").samples == len(
            frame
        )
    finally:
        description.write_file(place)


def test_figures_of_groups_have_their_names_beside_them(loans: StudyFolder) -> None:
    done = CliRunner().invoke(app, ["evaluate", str(loans.model_description_file(0)), "--device", "cpu"])
    assert done.exit_code == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["val/group_0_1_accuracy"].endswith("class 'no', bias class 'm'")
    assert lines["val/group_1_0_accuracy"].endswith("class 'yes', bias class 'f'")
    assert "class" not in lines["val/accuracy"]
    done = CliRunner().invoke(app, ["evaluate", str(loans.model_description_file(0)), "--device", "cpu", "--json"])
    assert json.loads(done.stdout)["groups"]["val/group_0_1_accuracy"] == "class 'no', bias class 'm'"


def test_data_without_bias_labels_are_said_to_have_no_groups_and_how_they_get_some(loans: StudyFolder) -> None:
    pd.read_csv(table_of(loans)).to_csv("new.csv", index=False)
    words = ["evaluate", str(loans.model_description_file(0)), "--device", "cpu", "--data", "new.csv", "--set"]
    assert "no groups" not in CliRunner().invoke(app, [*words, "data.bias=sex"]).stdout
    told = CliRunner().invoke(app, [*words, "data.bias=null"]).stdout
    assert "no groups: the data have no bias labels; --set data.bias=COLUMN takes a column of the table as bias" in told


def test_rows_of_a_bias_class_that_the_model_does_not_know_are_measured_by_class_alone(
    loans: StudyFolder, here: Path
) -> None:
    place, home = loans.model_description_file(0), Home(here / "home")
    known = evaluate_model(home, place, "all", assignments=later(loans, {}), device="cpu")
    some = evaluate_model(home, place, "all", assignments=later(loans, {"m": "x"}), device="cpu")
    assert (known.unknown_bias_classes, some.unknown_bias_classes) == ([], ["x"])
    by_class = ("all/accuracy", "all/balanced_accuracy", "all/log_loss")
    assert [some.metrics[name] for name in by_class] == pytest.approx([known.metrics[name] for name in by_class])
    assert some.metrics["all/group_0_0_accuracy"] == known.metrics["all/group_0_0_accuracy"]
    assert some.metrics["all/group_0_1_accuracy"] is None
    done = CliRunner().invoke(app, ["evaluate", str(place), "--device", "cpu", "--data", "later.csv"])
    assert done.exit_code == 0, done.stderr
    assert "'x'" in done.stdout
    short = CliRunner().invoke(app, ["evaluate", str(place), "later.csv", "--device", "cpu"])
    assert (short.exit_code, short.stdout) == (0, done.stdout)
    twice = CliRunner().invoke(app, ["evaluate", str(place), "later.csv", "--data", "later.csv"])
    assert "give the data once" in str(twice.exception)


@pytest.mark.parametrize("method", ["bias_balanced_cross_entropy", "group_dro", "fair_sup_con", "cross_entropy"])
def test_a_model_that_was_trained_with_bias_labels_is_measured_on_rows_without_them(here: Path, method: str) -> None:
    rows = pd.read_csv(people(here / "people.csv"))
    Path("people.yaml").write_text(TABLE.replace("PATH", str(here / "people.csv")))
    spec = load_study("people.yaml", ["data.bias=sex", f"method={{name: {method}}}"])
    model = train_study(Home(here / "home"), final_training_spec(spec, [3], "needing")).model_description_file(0)
    rows.iloc[::-1].to_csv("turned.csv", index=False)
    home, path = Home(here / "home"), f"data.path={Path('turned.csv').absolute()}"
    known = evaluate_model(home, model, "all", assignments=[path], device="cpu").metrics
    found = evaluate_model(home, model, "all", assignments=[path, "data.bias=null"], device="cpu").metrics
    assert found["all/accuracy"] == known["all/accuracy"]
    assert found["all/unbiased_accuracy"] is None


def test_other_rows_come_into_the_groups_of_numbers_that_the_model_has(here: Path) -> None:
    """Not into the quartiles of their own."""
    rows = pd.read_csv(people(here / "people.csv"))
    rows.assign(age=20 + np.arange(len(rows)) * 7 % 40).to_csv(here / "people.csv", index=False)
    Path("people.yaml").write_text(TABLE.replace("PATH", str(here / "people.csv")))
    spec = load_study("people.yaml", ["data.bias=age", "data.bias_bins=quartiles"])
    model = train_study(Home(here / "home"), final_training_spec(spec, [3], "binned")).model_description_file(0)
    facts = ModelDescription.read_file(model).facts
    assert facts.bias_names == ("under 29.75", "29.75 to under 39.5", "39.5 to under 49.25", "49.25 and over")
    low = pd.read_csv(here / "people.csv").query("age < 29")
    pd.concat([low] * 3).to_csv("low.csv", index=False)
    found = evaluate_model(Home(here / "home"), model, "train", assignments=["data.path=low.csv"], device="cpu").metrics
    assert found["train/group_0_0_accuracy"] >= 0
    assert found["train/group_0_1_accuracy"] is None
    other = evaluate_model(
        Home(here / "home"), model, "train", assignments=["data.path=low.csv", "data.bias_bins=[24]"]
    )
    assert set(other.unknown_bias_classes) == {"under 24", "24 and over"}


def test_texts_with_a_decimal_comma_are_numbers_where_training_said_so(loans: StudyFolder) -> None:
    """pandas leaves a column as text for the sake of one cell that is no number."""
    classifier = TrainedClassifier.load_from_description(loans.model_description_file(0), "cpu")
    section = {**classifier.description.config["data"], "decimal": ",", "missing_marks": ["-"]}
    told = replace(classifier.description, config={**classifier.description.config, "data": section})
    sound = pd.DataFrame({"income": [1200.5, None], "job": "cook", "owner": "true"})
    texts = pd.DataFrame({"income": ["1200,5", " - ", "much"], "job": "cook", "owner": "true"})
    plain = predict_rows(classifier, sound, "rows")
    found = predict_rows(TrainedClassifier(told, loans.model_description_file(0).parent, "cpu"), texts, "rows")
    assert found.probabilities.tolist() == plain.probabilities.tolist()
    assert list(found.unreadable) == [3]


def test_rows_that_pandas_labels_alike_are_classified_each(loans: StudyFolder) -> None:
    """Those of two frames that were joined, of which one had texts."""
    classifier = TrainedClassifier.load_from_description(loans.model_description_file(0), "cpu")
    incomes = ["1200.5", "900", 900.0, 1200.5]
    joined = pd.DataFrame({"income": incomes, "job": "cook", "owner": "true"}, index=[0, 0, 1, 1])
    one, two, three, four = predict_rows(classifier, joined, "rows").probabilities.tolist()
    assert one == four != two == three
