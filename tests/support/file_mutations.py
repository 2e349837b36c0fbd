"""Changes of a user's table and image files, as hands, programs, spreadsheets and broken disks make them."""

import gzip
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

CELLS = [
    *("", " ", "nan", "NaN", "NA", "None", "null", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400", "9" * 400),
    *("-5", "0.5", "1e12", "-0", "+1", "1_000", "1,5", "0x1F", "1e5", "true", "False", "2001-13-45", "12:30", "1+2j"),
    *(
        "=1+2",
        "'=1",
        "@x",
        "#REF!",
        "\t1",
        "a\nb",
        '"',
        "'",
        "\0",
        "\x1b[2J",
        "\u202e",
        "\ufeff",
        "\u0663",
        "caf\u00e9",
    ),
    *("\U0001f600", "../x", "/etc/passwd", "~", "x" * 5000, "train", "val", "test", "a", "b", "0", "1", "y", "file"),
]
"""What a cell or a column's name can become."""

ENCODINGS = ["utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "cp037"]

Rows = list[list[str]]


def mutated_table(random: Random, text: str) -> bytes:
    """A CSV after some changes of its cells, lines or bytes."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        random.choice(OF_CELLS)(random, rows)
    return random.choice(OF_BYTES)(random, _joined(random, rows))


def _joined(random: Random, rows: Rows) -> str:
    separator = random.choice([*[","] * 9, ";", "\t", ", ", "|"])
    end = random.choice([*["\n"] * 9, "\r\n", "\r", "\n\n"])
    return end.join(separator.join(row) for row in rows) + random.choice(["", end])


def _place(random: Random, rows: Rows) -> tuple[int, int]:
    """A row, often the header, and a column of it."""
    row = random.choice([0, random.randrange(len(rows))])
    return row, random.randrange(max(1, len(rows[row])))


def replace_cell(random: Random, rows: Rows) -> None:
    row, column = _place(random, rows)
    rows[row][column : column + 1] = [random.choice(CELLS)]


def replace_in_column(random: Random, rows: Rows) -> None:
    column, value = random.randrange(len(rows[0]) or 1), random.choice(CELLS)
    for row in random.sample(range(1, len(rows)), k=min(len(rows) - 1, random.choice([2, 5, 30]))):
        rows[row][column : column + 1] = [value]


def quote_cell(random: Random, rows: Rows) -> None:
    row, column = _place(random, rows)
    rows[row][column : column + 1] = [
        random.choice(['"{}"', '"{}', '{}"', '"{}""', "'{}'"]).format(random.choice(CELLS))
    ]


def copy_cell(random: Random, rows: Rows) -> None:
    (row, column), (other, place) = _place(random, rows), _place(random, rows)
    rows[row][column : column + 1] = rows[other][place : place + 1]


def case_or_spaces(random: Random, rows: Rows) -> None:
    row, column = _place(random, rows)
    change = random.choice([str.upper, str.title, lambda text: f" {text}", lambda text: f"{text} "])
    rows[row][column : column + 1] = [change(cell) for cell in rows[row][column : column + 1]]


def delete_cell(random: Random, rows: Rows) -> None:
    row, column = _place(random, rows)
    del rows[row][column : column + 1]


def insert_cell(random: Random, rows: Rows) -> None:
    row, column = _place(random, rows)
    rows[row].insert(column, random.choice(CELLS))


def copy_column(random: Random, rows: Rows) -> None:
    """With its name, or under another."""
    column, name = random.randrange(len(rows[0]) or 1), random.choice(CELLS)
    for row in rows:
        row.extend(row[column : column + 1])
    rows[0][-1:] = random.choice([rows[0][-1:], [name]])


def delete_column(random: Random, rows: Rows) -> None:
    column = random.randrange(len(rows[0]) or 1)
    for row in rows:
        del row[column : column + 1]


def delete_rows(random: Random, rows: Rows) -> None:
    start = random.randrange(len(rows))
    del rows[start : start + random.choice([1, 1, 5, 60])]
    rows.append(rows.pop() if rows else [""])


def copy_row(random: Random, rows: Rows) -> None:
    rows.insert(random.randrange(len(rows) + 1), list(random.choice(rows)))


def many_rows(random: Random, rows: Rows) -> None:
    rows.extend([list(rows[-1]) for _ in range(3000)])


def wide_row(random: Random, rows: Rows) -> None:
    random.choice(rows).extend(random.choice(CELLS) for _ in range(300))


OF_CELLS: list[Callable[[Random, Rows], None]] = [
    *[replace_cell] * 4,
    *[replace_in_column] * 3,
    *(quote_cell, copy_cell, case_or_spaces, delete_cell, insert_cell, copy_column, copy_column),
    *(delete_column, delete_rows, copy_row, many_rows, wide_row),
]


def as_it_is(random: Random, text: str) -> bytes:
    return text.encode("utf-8")


def otherwise_encoded(random: Random, text: str) -> bytes:
    return text.encode(random.choice(ENCODINGS), "replace")


def truncated(random: Random, text: str) -> bytes:
    return text.encode()[: random.randrange(len(text) + 1)]


def packed(random: Random, text: str) -> bytes:
    return gzip.compress(text.encode())


def changed_bytes(random: Random, content: str | bytes) -> bytes:
    changed = bytearray(content.encode() if isinstance(content, str) else content)
    for _ in range(random.choice([1, 3, 20])):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


OF_BYTES: list[Callable[[Random, str], bytes]] = [*[as_it_is] * 9, otherwise_encoded, truncated, packed, changed_bytes]


def mutate_folder(random: Random, folder: Path, names: list[str]) -> None:
    """Change one of these files in a folder, or what is around it."""
    path = folder / random.choice(names)
    random.choice(OF_FILES)(random, path)


def truncate_file(random: Random, path: Path) -> None:
    content = path.read_bytes() if path.is_file() else b""
    path.is_file() and path.write_bytes(content[: random.randrange(len(content) + 1)])


def change_bytes(random: Random, path: Path) -> None:
    if path.is_file():
        path.write_bytes(changed_bytes(random, path.read_bytes()))


def other_content(random: Random, path: Path) -> None:
    _gone(path)
    path.write_bytes(random.choice([b"", b"no image", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", bytes(1000)]))


def other_mode(random: Random, path: Path) -> None:
    """Another depth, palette or transparency, in any format that can hold it."""
    _gone(path)
    image = Image.fromarray(np.random.default_rng(random.randrange(2**32)).integers(0, 256, (9, 7, 3), np.uint8))
    mode = random.choice(["1", "L", "LA", "P", "PA", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16", "I;16B"])
    image = image.convert("L").convert("I").convert(mode) if mode.startswith("I;16") else image.convert(mode)
    kind = random.choice(["PNG", "TIFF", "GIF", "WEBP", "PPM", "BMP", "ICO", "JPEG", "JPEG2000", "TGA", "PCX"])
    extras: dict[str, Any] = random.choice([{}, {"transparency": 0}, {"progressive": True}, {"lossless": True}])
    try:
        image.save(path, kind, **extras)
    except (OSError, ValueError, KeyError, TypeError):  # not of this mode
        image.convert("RGB").save(path, "PNG")


def several_frames(random: Random, path: Path) -> None:
    _gone(path)
    frames = [Image.new("P", (random.choice([1, 8]), 8), shade) for shade in range(3)]
    frames[0].save(path, random.choice(["GIF", "TIFF", "PNG"]), save_all=True, append_images=frames[1:])


def odd_size(random: Random, path: Path) -> None:
    _gone(path)
    Image.new("1", random.choice([(1, 1), (1, 3000), (5000, 2), (3, 1)])).save(
        path, random.choice(["PNG", "GIF", "TIFF"])
    )


def claimed_size(random: Random, path: Path) -> None:
    """A header that says another size, up to a bomb."""
    _gone(path)
    width, height = (random.choice([0, 1, 7, 9000, 30000, 65535, 2**31 - 1, 2**32 - 1]) for _ in range(2))
    Image.new("RGB", (8, 8)).save(path, kind := random.choice(["PNG", "BMP", "GIF", "JPEG"]))
    content = bytearray(path.read_bytes())
    if kind == "PNG":
        content[16:24] = struct.pack(">II", width, height)
    elif kind == "BMP":
        content[18:26] = struct.pack("<II", width, height)
    elif kind == "GIF":
        content[6:10] = struct.pack("<HH", width & 0xFFFF, height & 0xFFFF)
    else:
        place = content.index(b"\xff\xc0") + 5
        content[place : place + 4] = struct.pack(">HH", height & 0xFFFF, width & 0xFFFF)
    path.write_bytes(content)


def gone(random: Random, path: Path) -> None:
    _gone(path)


def linked(random: Random, path: Path) -> None:
    """To itself, the folder, what is above, another file, a device, or nowhere."""
    _gone(path)
    path.symlink_to(
        random.choice([path.name, ".", "..", "../..", "0.png", "/dev/zero", "/dev/null", "nowhere", str(path.parent)])
    )


def pipe(random: Random, path: Path) -> None:
    _gone(path)
    os.mkfifo(path)


def folder_instead(random: Random, path: Path) -> None:
    _gone(path)
    path.mkdir()


def more_beside(random: Random, path: Path) -> None:
    """Something that nobody listed."""
    name = random.choice(["train", "test", "a\nb.png", os.fsdecode(b"caf\xe9.png"), "=1.png", "x" * 250, ".hidden.png"])
    beside = path.parent / name
    if not os.path.lexists(beside):
        random.choice([folder_instead, linked, other_content, other_mode, pipe])(random, beside)


def other_name(random: Random, path: Path) -> None:
    target = path.with_name(random.choice(["other.png", path.stem, path.name.upper(), path.stem + ".txt"]))
    if os.path.lexists(path) and not os.path.lexists(target):
        path.rename(target)


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


OF_FILES: list[Callable[[Random, Path], None]] = [
    *[change_bytes] * 3,
    *[other_mode] * 4,
    *(truncate_file, other_content, several_frames, odd_size, claimed_size, claimed_size, gone, linked, linked),
    *(pipe, folder_instead, more_beside, more_beside, other_name),
]
