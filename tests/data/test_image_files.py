"""Image files become arrays: right pixels, right place, every bad file named."""

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import colour, numbers, picture, truncate
from PIL import Image, ImageOps
from sklearn.datasets import load_sample_images

from study.data import image_decoding, image_files
from study.errors import UserError

pytestmark = pytest.mark.usefixtures("home")


def test_each_file_is_where_it_was_listed_however_many_threads_read(home):
    files = [picture(home / f"{index}.png", index) for index in range(150)]
    images = image_files.decode_images(files, 5, "crop")
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
    crop, squash = (image_files.decode_images([file], 10, frame)[0] for frame in ("crop", "squash"))
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
    images = image_files.decode_images([file], size, frame)
    assert images.shape == (1, 3, size, size)
    assert numbers(images) == [291]


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_every_colour_mode_becomes_rgb(home, mode):
    file = home / f"a.{'tif' if mode == 'CMYK' else 'png'}"
    Image.new("RGB", (9, 9), (255, 255, 255)).convert(mode).save(file)
    assert (image_files.decode_images([file], 4, "crop") > 250).all()


def test_a_large_jpeg_is_close_to_the_plain_way(home):
    ramp = np.linspace(0, 255, 512).astype(np.uint8)
    pixels = np.stack([np.tile(ramp, (512, 1)), np.tile(ramp[:, None], (1, 512)), np.full((512, 512), 90, np.uint8)], 2)
    Image.fromarray(pixels).save(home / "a.jpg", quality=95)
    plain = np.asarray(Image.open(home / "a.jpg").resize((32, 32), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
    found = image_files.decode_images([home / "a.jpg"], 32, "crop")[0]
    assert np.abs(found.astype(int) - plain).mean() < 1.0


def test_all_bad_files_are_counted_and_the_first_named(home):
    files = [picture(home / f"{index}.jpg", index, (64, 64)) for index in range(9)]
    for file in files[1:8]:
        truncate(file)
    files[8].write_text("no image")
    with pytest.raises(UserError) as error:
        image_files.decode_images(files, 4, "crop")
    message = str(error.value)
    assert message.startswith(f"8 files are not readable as images: {files[1]} (")
    assert str(files[5]) in message
    assert str(files[6]) not in message
    assert "and 3 more" in message


def test_what_is_no_file_is_named_and_not_waited_for(home):
    os.mkfifo(home / "pipe.png")
    (home / "folder.png").mkdir()
    (home / "itself.png").symlink_to("itself.png")
    files = [home / name for name in ("pipe.png", "folder.png", "itself.png", "no\0name.png", "x" * 300)]
    with pytest.raises(UserError, match=r"5 files are .*pipe\.png \(is no file\).*folder\.png \(is no file\).*itself"):
        image_files.decode_images(files, 4, "crop")


def grey_ramp(path, highest: int, dtype=np.uint16):
    """A grey image that rises from 0 on the left to the highest value on the right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.tile(np.linspace(0, highest, 32).astype(dtype), (32, 1))).save(path)
    return path


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_grey_images_of_16_bits_keep_their_shades(home, name):
    deep, plain = grey_ramp(home / name, 65535), grey_ramp(home / "plain.png", 255, np.uint8)
    found = image_files.decode_images([deep, plain], 8, "crop").astype(int)
    assert np.abs(found[0] - found[1]).max() <= 1
    assert found[1].min() < 20
    assert found[1].max() > 235


def tiff(path, kind: dict[int, int], strip: bytes):
    """A TIFF of 4 x 4 pixels, with these tags besides those that every TIFF needs."""
    tags = {256: 4, 257: 4, 259: 1, 262: 1, 273: 8, 277: 1, 278: 4, 279: len(strip), **kind}
    start = 8 + len(strip)
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, tags[tag]) for tag in sorted(tags))
    path.write_bytes(struct.pack("<2sHI", b"II", 42, start) + strip + struct.pack("<H", len(tags)) + entries + bytes(4))
    return path


def test_other_depths_of_a_tiff(home):
    """Twelve bits, packed, and white where the value is 0: as bright as they are in a viewer."""
    twelve = tiff(home / "twelve.tif", {258: 12}, b"\xff\xff\xff" * 8)
    inverted = tiff(home / "inverted.tif", {258: 16, 262: 0}, b"\xff\xff" * 16)
    found = image_files.decode_images([twelve, inverted], 4, "crop")
    assert (found[0] == 255).all()
    assert (found[1] == 0).all()


@pytest.mark.parametrize(("dtype", "highest"), [(np.int32, 1 << 24), (np.float32, 1.0)])
def test_numbers_without_a_fixed_range_are_refused(home, dtype, highest):
    """Nobody can know which of them is white."""
    file = grey_ramp(home / "a.tif", highest, dtype)
    with pytest.raises(UserError, match=r"a\.tif \(pixels of 32 bits, .*; save it with 8 or 16 bits\)"):
        image_files.decode_images([file], 8, "crop")


@pytest.mark.parametrize("mode", ["LA", "RGBA", "PA", "P"])
@pytest.mark.parametrize("ink", [0, 255])
def test_a_drawing_on_a_transparent_ground_stays_visible(home, mode, ink):
    """Whatever colour is stored under the transparent part: it is grey."""
    drawing = Image.new("RGBA", (20, 20), (ink, ink, ink, 0))
    drawing.paste((ink, ink, ink, 255), (0, 0, 10, 20))
    file = home / ("a.tif" if mode == "PA" else "a.png")
    (drawing.quantize(4) if mode == "P" else drawing.convert(mode)).save(file)
    (found,) = image_files.decode_images([file], 20, "crop")
    assert (found[:, :, :8] == ink).all()
    assert (found[:, :, 12:] == 128).all()


@pytest.mark.slow
def test_a_huge_jpeg_is_shrunk_while_it_is_decoded(home):
    """Of more pixels than Pillow opens by itself; 200 million would take 800 MB."""
    Image.new("L", (20000, 10000), 90).save(home / "a.jpg")
    code = (
        "import resource, sys; from pathlib import Path; from study.data import image_files\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak(); images = image_files.decode_images([Path(sys.argv[1])], 32, 'crop')\n"
        "print((peak() - before) // 1024, images.min(), images.max())"
    )
    command = [sys.executable, "-c", code, str(home / "a.jpg")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    megabytes, darkest, brightest = map(int, done.stdout.split())
    assert megabytes < 100
    assert darkest == brightest == 90


def with_size(file, width: int, height: int):
    """The file of a progressive JPEG, which now says that it is of this size."""
    content = bytearray(file.read_bytes())
    place = content.index(b"\xff\xc2") + 5
    content[place : place + 4] = struct.pack(">HH", height, width)
    file.write_bytes(content)


@pytest.mark.slow
def test_a_huge_image_that_cannot_be_shrunk_is_refused_with_the_limit(home):
    Image.new("1", (13000, 13000)).save(home / "a.png")
    Image.new("L", (8, 8)).save(home / "a.jpg", progressive=True)
    with_size(home / "a.jpg", 13000, 13000)
    for name in ("a.png", "a.jpg"):
        with pytest.raises(UserError, match=r"\(13000 x 13000 pixels, at most 67,108,864 \(as 8192 x 8192\) can be d"):
            image_files.decode_images([home / name], 32, "crop")


def test_large_images_are_in_memory_one_after_the_other(home, monkeypatch):
    """Small ones together, in as many threads as there are."""
    monkeypatch.setattr(image_files, "LARGE_IMAGE_PIXELS", 200)
    monkeypatch.setattr(image_files, "FILES_PER_TASK", 1)
    monkeypatch.setattr(image_files.os, "cpu_count", lambda: 4)
    at_work, seen = [], []

    def square(image, size, frame):
        at_work.append(image.width * image.height)
        seen.append(list(at_work))
        until = time.monotonic() + (0.005 if image.width > 10 else 10)  # threads may start late
        while time.monotonic() < until and max(map(len, list(seen))) < 3:
            time.sleep(0.001)
        at_work.remove(image.width * image.height)
        return np.zeros((3, size, size), np.uint8)

    monkeypatch.setattr(image_decoding, "to_square_pixels", square)
    files = [picture(home / f"{side}-{copy}.png", 0, (side, side)) for side in (31, 20, 10) for copy in range(12)]
    image_files.decode_images(files, 4, "crop")
    assert len(seen) == 36
    assert max(sum(work > 200 for work in together) for together in seen) == 1
    assert max(map(len, seen)) > 2


def test_the_usual_side_is_that_of_most_readable_images_and_reads_headers_alone(home):
    files = [picture(home / f"{index}.png", index, (40, 30 + index % 2)) for index in range(400)]
    files[0] = home / "absent.png"
    files[8].write_bytes(b"no image")
    striped(files[16], 900, 800)
    truncate(files[24])
    os.mkfifo(home / "pipe.png")
    assert image_files.median_image_side([*files, home / "pipe.png"]) == 30
    assert image_files.median_image_side([home / "pipe.png", home / "absent.png"]) is None
    assert image_files.median_image_side([]) is None
    assert image_files.median_image_side([striped(home / "wide.png", 3000, 2000)]) == image_files.MAX_SIDE_PIXELS


def test_photographs_are_told_from_drawings_grey_pictures_and_small_ones(home):
    shots = [Image.fromarray(photograph) for photograph in load_sample_images().images]
    grey = [shot.convert("L") for shot in shots]
    framed = [ImageOps.expand(shot.resize((48, 32)), 8, "red") for shot in shots]
    kinds = {"shots": shots, "small": [shot.resize((28, 28)) for shot in shots], "grey": grey, "framed": framed}
    found = {}
    for kind, images in kinds.items():
        files = [home / f"{kind}{number}.png" for number in range(len(images))]
        for image, file in zip(images, files, strict=True):
            image.save(file)
        found[kind] = image_files.reason_not_photographs(files)
    found["drawn"] = image_files.reason_not_photographs([striped(home / "drawn.png", 90, 60)])
    assert found["shots"] is found["framed"] is None
    assert "28 pixels" in found["small"]
    assert found["grey"] == "no colours"
    assert found["drawn"] is not None
    assert image_files.reason_not_photographs([]) == "none can be read"
