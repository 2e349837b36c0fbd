"""`study data export`: what it writes reads back as the same samples."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from study import data
from study.cli import app
from study.commands.data import export_images
from study.errors import UserError


@pytest.mark.slow
def test_the_folder_reads_back_as_the_same_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    done = CliRunner().invoke(app, ["data", "export", "biased_digits", str(tmp_path / "digits"), "--set", "rho=0.9"])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(tmp_path / "digits" / "labels.csv")
    table = pd.read_csv(tmp_path / "digits" / "labels.csv")
    splits = data.load({"name": "biased_digits", "rho": 0.9}).splits
    assert table.columns.tolist() == ["file", "class", "bias", "split"]
    for name, split in splits.items():
        rows = table[table["split"] == name]
        np.testing.assert_array_equal(rows["class"], split.target)
        np.testing.assert_array_equal(rows["bias"], split.bias)
        for place in (0, len(rows) - 1):
            pixels = np.asarray(Image.open(tmp_path / "digits" / rows["file"].iloc[place])).transpose(2, 0, 1)
            np.testing.assert_array_equal(pixels, split.inputs[place])
    own = {"name": "image_folder", "path": str(tmp_path / "digits"), "target": "class", "bias": "bias", "size": 8}
    assert {name: len(split) for name, split in data.load_labels({**own, "split": "split"}).items()} == {
        name: len(split) for name, split in splits.items()
    }


def test_what_cannot_be_written_is_refused_before_anything_is(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(UserError, match="full: is there already and not empty"):
        export_images("biased_digits", tmp_path / "full")
    with pytest.raises(UserError, match="full/file: is there already"):
        export_images("biased_digits", tmp_path / "full" / "file")
    with pytest.raises(UserError, match="'biased_digit': no such data set"):
        export_images("biased_digit", tmp_path / "new")
    with pytest.raises(UserError, match="adult: holds no images"):
        export_images("adult", tmp_path / "new")
    with pytest.raises(UserError, match="rhoo: unknown key"):
        export_images("biased_digits", tmp_path / "new", ["rhoo=1"])
    assert not (tmp_path / "new").exists()
