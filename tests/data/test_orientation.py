"""A picture is what a person sees: stored turned, with EXIF data that say so, it is the same picture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ExifTags, Image

from study.data import image_files

Turn = Image.Transpose
STORED = {
    1: None,
    2: Turn.FLIP_LEFT_RIGHT,
    3: Turn.ROTATE_180,
    4: Turn.FLIP_TOP_BOTTOM,
    5: Turn.TRANSPOSE,
    6: Turn.ROTATE_90,
    7: Turn.TRANSVERSE,
    8: Turn.ROTATE_270,
}
"""How the pixels of an upright picture are stored under each orientation."""

LOSSLESS = {"png": {}, "webp": {"lossless": True, "exact": True}, "tif": {}, "tiff": {"compression": "tiff_lzw"}}


def stored(image, file, orientation, **options):
    """The picture as a camera held in another way writes it."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    turn = STORED[orientation]
    (image if turn is None else image.transpose(turn)).save(file, exif=exif, **options)
    return file


@given(
    seed=st.integers(0, 99),
    sides=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    orientation=st.sampled_from(list(STORED)),
    kind=st.sampled_from(list(LOSSLESS)),
    mode=st.sampled_from(["RGB", "RGBA", "L", "P", "1", "I;16"]),
    size=st.integers(4, 24),
    frame=st.sampled_from(["crop", "squash"]),
)
def test_a_turned_picture_is_the_same(tmp_path_factory, seed, sides, orientation, kind, mode, size, frame):
    draw, folder = np.random.default_rng(seed), tmp_path_factory.getbasetemp()
    if mode == "I;16":
        image = Image.fromarray(draw.integers(0, 1 << 16, sides[::-1], np.uint16))
        kind = "png" if kind == "webp" else kind
    else:
        image = Image.fromarray(draw.integers(0, 256, (*sides[::-1], 4), np.uint8)).convert(
            mode if mode == "RGBA" else "RGB"
        )
        image = image.convert("RGB" if mode == "P" and kind == "webp" else mode)
    upright, turned = folder / f"upright.{kind}", folder / f"turned.{kind}"
    image.save(upright, **LOSSLESS[kind])
    stored(image, turned, orientation, **LOSSLESS[kind])
    first, second = image_files.decode_images([upright, turned], size, frame)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("orientation", STORED)
def test_a_large_jpeg_is_shrunk_then_turned(tmp_path, orientation):
    across, down = np.meshgrid(np.linspace(0, 255, 600), np.linspace(0, 255, 400))
    image = Image.fromarray(np.stack([across, down, 0 * down + 90], 2).astype(np.uint8))
    upright, turned = tmp_path / "upright.jpg", tmp_path / "turned.jpg"
    image.save(upright, quality=95)
    stored(image, turned, orientation, quality=95)
    first, second = image_files.decode_images([upright, turned], 32, "squash").astype(int)
    assert np.abs(first - second).max() <= 3


@pytest.mark.parametrize(
    "exif", [b"", b"Exif\0\0", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff", b"Exif\0\0II*\0" + b"\xff" * 60]
)
@pytest.mark.parametrize("kind", ["jpg", "png", "webp"])
def test_damaged_exif_data_leave_the_picture(tmp_path, kind, exif):
    image = Image.new("RGB", (8, 8), (200, 10, 90))
    image.save(tmp_path / f"a.{kind}", exif=exif)
    assert image_files.decode_images([tmp_path / f"a.{kind}"], 8, "crop").std(axis=(2, 3)).max() < 3
