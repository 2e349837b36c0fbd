"""Image files become arrays: right pixels, right place, every bad file named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import colour, numbers, picture, truncate
from PIL import Image

from study.data import image_files
from study.errors import UserError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return tmp_path


def test_each_file_is_where_it_was_listed_however_many_threads_read(home):
    files = [picture(home / f"{index}.png", index) for index in range(150)]
    images = image_files.decode(files, 5, "crop")
    assert images.shape == (150, 3, 5, 5)
    assert images.dtype == np.uint8
    assert numbers(images) == list(range(150))
    assert images[77].reshape(3, -1).T.tolist() == [list(colour(77))] * 25


def striped(path, width: int, height: int):
    """Red left and right thirds, blue middle."""
    image = Image.new("RGB", (width, height), (255, 0, 0))
    image.paste((0, 0, 255), (width // 3, 0, width - width // 3, height))
    image.save(path)
    return path


def test_crop_keeps_the_middle_and_squash_everything(home):
    file = striped(home / "a.png", 30, 10)
    crop, squash = (image_files.decode([file], 10, frame)[0] for frame in ("crop", "squash"))
    assert (crop == np.array([0, 0, 255])[:, None, None]).all()
    assert squash[:, 5, 0].tolist() == squash[:, 5, 9].tolist() == [255, 0, 0]
    assert squash[:, 5, 5].tolist() == [0, 0, 255]


@given(
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    size=st.integers(4, 24),
    frame=st.sampled_from(["crop", "squash"]),
)
def test_any_size_gives_a_square_of_its_colour(width, height, size, frame, tmp_path_factory):
    file = picture(tmp_path_factory.getbasetemp() / "any.png", 291, (width, height))
    images = image_files.decode([file], size, frame)
    assert images.shape == (1, 3, size, size)
    assert numbers(images) == [291]


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_every_colour_mode_becomes_rgb(home, mode):
    file = home / f"a.{'tif' if mode == 'CMYK' else 'png'}"
    Image.new("RGB", (9, 9), (255, 255, 255)).convert(mode).save(file)
    assert (image_files.decode([file], 4, "crop") > 250).all()


def test_a_large_jpeg_is_close_to_the_plain_way(home):
    ramp = np.linspace(0, 255, 512).astype(np.uint8)
    pixels = np.stack([np.tile(ramp, (512, 1)), np.tile(ramp[:, None], (1, 512)), np.full((512, 512), 90, np.uint8)], 2)
    Image.fromarray(pixels).save(home / "a.jpg", quality=95)
    plain = np.asarray(Image.open(home / "a.jpg").resize((32, 32), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
    found = image_files.decode([home / "a.jpg"], 32, "crop")[0]
    assert np.abs(found.astype(int) - plain).mean() < 1.0


def test_all_bad_files_are_counted_and_the_first_named(home):
    files = [picture(home / f"{index}.jpg", index, (64, 64)) for index in range(9)]
    for file in files[1:8]:
        truncate(file)
    files[8].write_text("no image")
    with pytest.raises(UserError) as error:
        image_files.decode(files, 4, "crop")
    message = str(error.value)
    assert message.startswith(f"8 files are not readable as images: {files[1]} (")
    assert str(files[5]) in message
    assert str(files[6]) not in message
    assert "and 3 more" in message


def test_nothing_is_left_on_disk(home):
    image_files.decode([picture(home / "a.png")], 4, "crop")
    assert list((home / "prepared").iterdir()) == []
