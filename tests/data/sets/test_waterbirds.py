"""waterbirds: the official layout with generated images, and the real metadata where it is at hand."""

import numpy as np
import pandas as pd
import pytest
from pictures import SHARED, numbers, picture

from study import data
from study.errors import UserError

METADATA = SHARED / "waterbirds" / "metadata.csv"
HEADER = "img_id,img_filename,y,split,place,place_filename"
LAYOUT = [(y, split, place) for split in (0, 1, 2) for y in (0, 1) for place in (0, 1)]


@pytest.fixture
def folder(home):
    folder = home / "waterbird_complete95_forest2water2"
    rows = [HEADER]
    for number, (y, split, place) in enumerate(LAYOUT):
        name = f"001.Bird/Bird_{number:04d}.jpg"
        picture(folder / name, number)
        rows.append(f'{number + 1},{name},{y},{split},{place},"/o/ocean/{number}.jpg"')
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return folder


def load(**options):
    return data.load({"name": "waterbirds", "size": 6, **options})


def test_splits_and_labels(folder):
    dataset = load()
    for code, split in enumerate(dataset.splits.values()):
        found = [LAYOUT[number] for number in numbers(split.inputs)]
        assert found == list(zip(split.target, [code] * 4, split.bias, strict=True))


def test_prepared_again_only_where_something_changed(folder):
    first = load().splits["train"].inputs.base.filename
    assert load().splits["train"].inputs.base.filename == first
    picture(folder / "001.Bird/Bird_0000.jpg", 9, (30, 20))
    assert load().splits["train"].inputs.base.filename != first


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Bird_0002.jpg,1,", "Bird_0002.jpg,2,", r"column 'y', row 3: the value is '2', allowed: 0, 1"),
        ("Bird_0002.jpg,1,0,", "Bird_0002.jpg,1,5,", r"column 'split', row 3: the value is '5'"),
        ("Bird_0002.jpg,1,0,0", "Bird_0002.jpg,1,0,", r"column 'place', row 3: the value is empty"),
        (",place,", ",ground,", r"metadata.csv: no column 'place'\. It has: img_id, img_filename, y, split, ground"),
        ("001.Bird/Bird_0002", "/001.Bird/Bird_0002", r"column 'img_filename', row 3: '/001\.Bird/Bird_0002"),
        ("Bird_0002.jpg", "Bird_9999.jpg", r"1 file is listed but missing: .*Bird_9999.jpg"),
    ],
)
def test_bad_metadata(folder, old, new, message):
    path = folder / "metadata.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=message):
        load()


@pytest.mark.skipif(not METADATA.exists(), reason="the real metadata is not at hand")
def test_the_real_metadata(home):
    """Of its 11,788 rows 600 get an image; their groups are those of the file."""
    folder = home / "waterbird_complete95_forest2water2"
    whole = pd.read_csv(METADATA)
    groups = whole.groupby(["split", "y", "place"]).size().to_numpy()
    assert groups.tolist() == [3498, 184, 56, 1057, 467, 466, 133, 133, 2255, 2255, 642, 642]
    some = whole.iloc[::20]
    for name in some["img_filename"]:
        picture(folder / name, size=(4, 4))
    some.to_csv(folder / "metadata.csv", index=False)
    dataset = load(size=4)
    for code, split in enumerate(dataset.splits.values()):
        rows = some[some["split"] == code]
        assert np.array_equal(split.target, rows["y"])
        assert np.array_equal(split.bias, rows["place"])
