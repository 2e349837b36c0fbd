"""`study predict`: what cannot be read is named and the rest classified, and its table is safe in a spreadsheet."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from answers import answer
from data_files import encoded
from file_mutations import mutate_folder
from pictures import picture, truncate
from PIL import Image
from typer.testing import CliRunner, Result

from study.cli import app
from study.data import label_files
from study.data.image_files import decode_readable_images
from study.errors import UserError
from study.home.folder import StudyFolder
from study.text import unescape_formula
from study.trained import ModelDescription


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path / "photos")
    return tmp_path / "photos"


def predict(folder: StudyFolder, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["predict", str(folder.model_description_file(0)), "--device", "cpu", *arguments])


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_rest_of_a_folder_is_classified_where_some_cannot_be_read(folder: StudyFolder, here: Path) -> None:
    for number in range(6):
        picture(here / f"{number}.png", number)
    expected = rows(predict(folder, ".").stdout)
    assert [row["file"] for row in expected] == [f"{number}.png" for number in range(6)]
    truncate(here / "1.png")
    (here / "3.png").write_text("no image")
    (here / "4.png").unlink()
    (here / "4.png").symlink_to("4.png")
    (here / "5.png").unlink()
    (here / "5.png").symlink_to("nowhere")
    done = predict(folder, ".", "-o", "classes.csv")
    assert done.exit_code == 1
    assert rows((here / "classes.csv").read_text()) == [expected[0], expected[2]]
    _, *told = done.stderr.splitlines()  # the first is of groups
    assert [line.partition(" (")[0] for line in told[:-1]] == [f"not readable: {n}.png" for n in (1, 3, 4, 5)]
    assert "3.png (is no image, or of a format that is not known)" in done.stderr
    assert "5.png (No such file or directory)" in done.stderr
    assert told[-1] == "error: 4 of 6 files could not be read as images"
    by_json = predict(folder, ".", "--json")
    assert by_json.exit_code == 1
    assert [row["file"] for row in json.loads(by_json.stdout)] == ["0.png", "2.png"]
    assert by_json.stderr == done.stderr


def test_one_of_several_paths_that_cannot_be_read_does_not_stop_the_others(folder: StudyFolder, here: Path) -> None:
    picture(here / "0.png")
    os.mkfifo(here / "pipe.png")
    (here / "empty").mkdir()
    (here / "list.csv").write_text("photo\n0.png\n")
    for path in ("nowhere.png", "pipe.png", "empty", "list.csv"):
        done = predict(folder, path, "0.png", "-o", "classes.csv")
        assert done.exit_code == 1
        assert f"\nnot readable: {path} (" in f"\n{done.stderr}"
        assert done.stderr.endswith("error: 1 of 2 files could not be read as images\n")
        assert [row["file"] for row in rows(Path("classes.csv").read_text())] == ["0.png"]
        Path("classes.csv").unlink()
        for refused in (predict(folder, path, "-o", "classes.csv"), predict(folder, path, "also-not.png")):
            assert isinstance(refused.exception, UserError)
            assert str(refused.exception).startswith(f"{path}: ")
        strict = predict(folder, path, "0.png", "--strict", "-o", "classes.csv")
        assert isinstance(strict.exception, UserError)
        assert f"not readable: {path} (" in str(strict.exception)
        assert not Path("classes.csv").exists()
    assert len(rows(predict(folder, ".").stdout)) == 1


def test_a_folder_without_images_is_refused(folder: StudyFolder, here: Path) -> None:
    (here / "album.jpg").mkdir()
    assert "photos: holds no images" in str(predict(folder, str(here)).exception)


def test_a_list_names_files_relative_to_itself(
    folder: StudyFolder, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        picture(here / "deep" / f"{number}.png", 500 * number)
    (here / "list.csv").write_text("photo,note\ndeep/2.png,a\ndeep/0.png,b\ndeep/9.png,c\n")
    monkeypatch.chdir(here.parent)
    done = predict(folder, "photos/list.csv", "--file", "photo")
    assert done.exit_code == 1
    assert [row["file"] for row in rows(done.stdout)] == [f"photos/deep/{number}.png" for number in (2, 0)]
    assert "photos/deep/9.png (No such file or directory)" in done.stderr
    alone = rows(predict(folder, "photos/deep/0.png").stdout)[0]
    assert alone == rows(done.stdout)[1]
    assert alone["confidence"] == max(alone[f"p({name})"] for name in range(10)) == alone[f"p({alone['class']})"]
    refused = predict(folder, "photos/list.csv")
    assert "list.csv: no column 'file'." in str(refused.exception)
    (here / "list.csv").write_text("file\n../secret.png\n")
    assert "allowed is a relative path without '..'" in str(predict(folder, "photos/list.csv").exception)


def test_a_column_of_a_list_names_its_files_however_the_training_table_is_written(
    folder: StudyFolder, here: Path, model: Path
) -> None:
    for number in range(2):
        picture(here / f"{number}.png", 500 * number)
    (here / "list.csv").write_text("file,case\n1.png,b7\n0.png,a3\n")
    description = ModelDescription.read_file(model)
    data = {"name": "image_folder", "path": str(here), "target": "kind", "size": 28, "separator": ";"}
    replace(description, config={**description.config, "data": data}).write_file(model)
    done = CliRunner().invoke(app, ["predict", str(model), "list.csv", "--id", "case", "--device", "cpu"])
    assert done.exit_code == 0, done.exception
    assert [row["case"] for row in rows(done.stdout)] == ["b7", "a3"]


def test_images_become_square_as_in_training(
    folder: StudyFolder, here: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut for a data set that cuts, and squashed for one that squashes."""
    Image.fromarray(np.repeat(np.repeat(np.uint8([[[255, 0, 0], [0, 255, 0], [0, 0, 255]]]), 8, 0), 8, 1)).save(
        "wide.png"
    )
    seen = []
    monkeypatch.setattr(
        "study.trained.prediction.decode_readable_images",
        lambda *given: seen.append(given) or decode_readable_images(*given),
    )
    description = ModelDescription.read_file(model)
    for section, frame in (({"name": "waterbirds"}, "squash"), ({"name": "cub"}, "crop")):
        replace(description, config={**description.config, "data": section}).write_file(model)
        assert CliRunner().invoke(app, ["predict", str(model), "wide.png", "--device", "cpu"]).exit_code == 0
        assert seen[-1][1:] == (8, frame)


def test_the_worst_group_is_one_line_and_the_card_says_which_are_too_small_to_tell(
    folder: StudyFolder, here: Path
) -> None:
    """98 groups of 1 to 4 digits: what one of them says is luck."""
    picture(here / "0.png")
    said = "none of the 98 groups has 10 samples or more, too few to judge one by one"
    assert said in folder.model_card_file.read_text()
    (line,) = predict(folder, "0.png").stderr.splitlines()
    assert said in line
    assert len(line) < 220


@pytest.mark.slow
def test_a_folder_in_any_state_is_answered(folder: StudyFolder, here: Path) -> None:
    """Each file in it has a row or a line that says why not."""
    for seed in range(40):
        random, images = Random(seed), here / f"{seed}"
        names = [picture(images / f"{number}.png", number).name for number in range(6)]
        for _ in range(random.choice([1, 2, 5])):
            mutate_folder(random, images, names)
        done = answer("predict", str(folder.model_description_file(0)), str(images), "--device", "cpu", "--json")
        told = f"seed {seed}: {done}"
        assert done.status in (0, 1, 2), told
        assert "Traceback" not in done.err, told
        if done.status == 2:
            assert "holds no images" in done.err, told
            continue
        unread = [line for line in done.err.splitlines() if line.startswith("not readable: ")]
        assert (len(unread) > 0) == (done.status == 1), told
        assert len(json.loads(done.out)) + len(unread) <= 11, told


def test_no_name_is_a_formula(folder: StudyFolder, here: Path) -> None:
    """As a spreadsheet would read it; the path still leads to the file."""
    names = ["=1+2.png", "+1.png", "-1.png", "@a.png", "\t=1.png", "plain.png"]
    for name in names:
        picture(here / name)
    found = [row["file"] for row in csv.DictReader(predict(folder, ".").stdout.splitlines())]
    assert not [name for name in found if name[0] in "=+-@\t\r"]
    assert sorted(map(Path, found)) == sorted(map(Path, names))
    assert {row["file"] for row in json.loads(predict(folder, ".", "--json").stdout)} == set(names)


def test_names_that_are_no_text_are_written_as_they_are(folder: StudyFolder, here: Path) -> None:
    name = os.fsdecode(b"caf\xe9.png")
    (here / name).write_bytes(encoded(np.zeros((4, 4, 3), np.uint8), "PNG"))
    done = predict(folder, ".", "-o", "classes.csv")
    assert done.exit_code == 0
    assert b"\ncaf\xe9.png," in (here / "classes.csv").read_bytes()
    assert "caf\\xe9.png," in predict(folder, ".").stdout
    truncate(here / name)
    assert "caf\\xe9.png (" in predict(folder, ".").stderr


def test_class_names_are_no_formulas(folder: StudyFolder, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("=cmd()", "-1", "-0.5", "@x", "'=y", "f", "g", "h", "i", "j")
    monkeypatch.setattr("study.trained.classifier.TrainedClassifier.class_names", names)
    for number in range(20):
        picture(here / f"{number}.png", 200 * number)
    assert predict(folder, ".", "-o", "classes.csv").exit_code == 0
    (header, *lines) = csv.reader((here / "classes.csv").read_text().splitlines())
    assert header[3:] == [f"p({name})" for name in names]
    exact = [row["class"] for row in json.loads(predict(folder, ".", "--json").stdout)]
    assert [unescape_formula(line[1]) for line in lines] == exact
    assert not [line[1] for line in lines if line[1][0] in "=@"]
    table = label_files.read_table_as_text(here / "classes.csv", ("file", "class"))
    assert label_files.distinct_classes(table["class"]) == sorted(set(exact)), "it is a table of labels, too"
