"""A model as MLflow has it: it predicts what `study predict` does, in an environment of its requirements alone."""

import csv
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from final_training import people, train, train_study, train_table
from fresh_environment import environment
from helpers import quickstart
from mlflow.models import Model as Form
from pictures import picture
from typer.testing import CliRunner

from study.cli import app
from study.commands.final_training import final_training_spec
from study.home.folder import Home, StudyFolder
from study.ranking import Results
from study.tracking import registry
from study.trained import ModelDescription
from study.trained.model_files import copy_frozen_weights, find_model
from study.upstream.environment import ProcessKind, variables_of_processes

pytestmark = pytest.mark.slow

SERVE = """
import importlib.util, sys
assert not [name for name in ("study", "ray", "optuna") if importlib.util.find_spec(name)]
import mlflow, pandas
model = mlflow.pyfunc.load_model(sys.argv[1])
found = model.predict(pandas.read_csv(sys.argv[2], dtype={"file": str}))
found.to_csv(sys.argv[3], index=False, float_format="%.6f")
"""

LATER = 'income,job,owner\n1200,nurse,true\n"",cook,false\n7,pilot,true\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def python(place: Path) -> Path:
    """Of the fresh environment."""
    return environment(place / "environment", registry.BASE_MODEL_REQUIREMENTS)


def of_images(place: Path) -> tuple[StudyFolder, Path]:
    """A model of images, and a list of them, one of which is none."""
    names = [picture(place / f"{number}.png", 300 * number, (9 + number, 12)).name for number in range(8)]
    (place / "no.png").write_text("no image")
    table = place / "list.csv"
    table.write_text("\n".join(["file", *(str(place / name) for name in (*names[:4], "no.png", *names[4:]))]))
    return train(Home(place / "home")), table


def of_rows(place: Path) -> tuple[StudyFolder, Path]:
    """A model of a table, and rows, one of which has an unknown word."""
    table = place / "later.csv"
    table.write_text(LATER)
    return train_table(Home(place / "home"), people(place / "people.csv")), table


def of_features(place: Path) -> tuple[StudyFolder, Path]:
    """A model on a frozen network's features with its weights inside, and a list of images."""
    _, table = of_images(place)
    model = "model={name: efficientnet_lite0, weights: imagenet, frozen: true}"
    spec = quickstart(model, "method={name: bias_balanced_cross_entropy}", "train.epochs=2", "search.early_stopping={}")
    folder = train_study(Home(place / "home"), final_training_spec(spec, [3], "features-final"))
    copy_frozen_weights(folder, folder.load_spec())
    return folder, table


@pytest.mark.parametrize("made", [of_images, of_rows, of_features])
def test_it_predicts_as_the_command_does_where_only_its_requirements_are(
    made: Callable[[Path], tuple[StudyFolder, Path]], python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    for name, value in variables_of_processes(ProcessKind.MLFLOW_CLIENT).items():
        monkeypatch.setenv(name, value)
    folder, table = made(tmp_path)
    model = find_model(folder, Results.load(folder))
    assert model is not None
    (tmp_path / "uv.lock").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*input example")  # it would be printed at the end of study train
        registry.save_pyfunc_model(tmp_path / "model", model, ModelDescription.read_file(model.description), Form())
    assert not (tmp_path / "model" / "uv.lock").exists()
    serve = [str(python), "-c", SERVE, "model", str(table), "found.csv"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(serve, cwd=tmp_path, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = list(csv.DictReader((tmp_path / "found.csv").read_text().splitlines()))
    by_row = "row" in found[0]
    images = [row["file"] for row in csv.DictReader(table.read_text().splitlines())] if not by_row else []
    told = CliRunner().invoke(app, ["predict", str(model.description), "--device", "cpu", *(images or [str(table)])])
    expected = list(csv.DictReader(told.stdout.splitlines()))
    assert len(expected) == len(found) - 1 > 1
    assert [{name: row[name] for name in expected[0]} for row in found if not row["problem"]] == expected
    (bad,) = (row for row in found if row["problem"])
    assert not bad["class"]
    assert ("'pilot' is in no row" if by_row else "is no image") in bad["problem"]
