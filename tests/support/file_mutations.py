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
    text = _joined(random, rows)
    kind = random.choice([*["as it is"] * 9, "encoding", "cut off", "packed", "bytes"])
    if kind == "encoding":
        return text.encode(random.choice(ENCODINGS), "replace")
    content = text.encode()[: random.randrange(len(text) + 1) if kind == "cut off" else None]
    if kind == "bytes":
        return changed_bytes(random, content)
    return gzip.compress(content) if kind == "packed" else content


def _joined(random: Random, rows: Rows) -> str:
    separator = random.choice([*[","] * 9, ";", "\t", ", ", "|"])
    end = random.choice([*["\n"] * 9, "\r\n", "\r", "\n\n"])
    return end.join(separator.join(row) for row in rows) + random.choice(["", end])


def _place(random: Random, rows: Rows) -> tuple[int, int]:
    """A row, often the header, and a column of it."""
    row = random.choice([0, random.randrange(len(rows))])
    return row, random.randrange(max(1, len(rows[row])))


def change_cell(random: Random, rows: Rows) -> None:
    """Another value, none, one more, quotes, blanks, capitals, or what another cell has."""
    (row, column), (other, place) = _place(random, rows), _place(random, rows)
    cells, value = rows[row][column : column + 1], random.choice(CELLS)
    quoted = random.choice(['"{}"', '"{}', '{}"', '"{}""', "'{}'"]).format(value)
    spelled = [random.choice([str.upper, str.title, " {}".format, "{} ".format])(cell) for cell in cells]
    elsewhere = rows[other][place : place + 1]
    rows[row][column : column + 1] = random.choice([*[[value]] * 4, [quoted], spelled, elsewhere, [], [value, *cells]])


def change_column(random: Random, rows: Rows) -> None:
    """Gone, or there once more, with its name or under another."""
    column, name = random.randrange(len(rows[0]) or 1), random.choice(CELLS)
    copies = random.choice([True, True, False])
    for row in rows:
        cells = row[column : column + 1]
        row[column : column + 1] = [] if not copies else cells
        row.extend(cells if copies else [])
    rows[0][-1:] = random.choice([rows[0][-1:], [name]]) if copies else rows[0][-1:]


def replace_in_column(random: Random, rows: Rows) -> None:
    column, value = random.randrange(len(rows[0]) or 1), random.choice(CELLS)
    for row in random.sample(range(1, len(rows)), k=min(len(rows) - 1, random.choice([2, 5, 30]))):
        rows[row][column : column + 1] = [value]


def change_rows(random: Random, rows: Rows) -> None:
    """Some gone, one there twice, the last one thousands of times, or one with hundreds of cells more."""
    start, kind = random.randrange(len(rows)), random.choice(["gone", "twice", "many", "wide"])
    if kind == "gone":
        del rows[start : start + random.choice([1, 1, 5, 60])]
        rows.append(rows.pop() if rows else [""])
    elif kind == "twice":
        rows.insert(random.randrange(len(rows) + 1), list(rows[start]))
    elif kind == "many":
        rows.extend([list(rows[-1]) for _ in range(3000)])
    else:
        rows[start].extend(random.choice(CELLS) for _ in range(300))


OF_CELLS: list[Callable[[Random, Rows], None]] = [
    *[change_cell] * 9,
    *[replace_in_column] * 3,
    *[change_column] * 3,
    *[change_rows] * 4,
]


def changed_bytes(random: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice([1, 3, 20])):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def mutate_folder(random: Random, folder: Path, names: list[str]) -> None:
    """Change one of these files in a folder, or what is around it."""
    path = folder / random.choice(names)
    random.choice(OF_FILES)(random, path)


def change_bytes(random: Random, path: Path) -> None:
    """Some of them, or all behind a place."""
    if path.is_file():
        content = path.read_bytes()
        cut = content[: random.randrange(len(content) + 1)]
        path.write_bytes(random.choice([cut, *[changed_bytes(random, content)] * 3]))


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


def odd_form(random: Random, path: Path) -> None:
    """Of several frames, or of a side that is far longer than the other."""
    _gone(path)
    sides = random.choice([(1, 1), (1, 3000), (5000, 2), (3, 1), (1, 8), (8, 8)])
    frames = [Image.new("P", sides, shade) for shade in range(random.choice([1, 3]))]
    frames[0].save(path, random.choice(["GIF", "TIFF", "PNG"]), save_all=True, append_images=frames[1:])


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
    *[change_bytes] * 4,
    *[other_mode] * 4,
    *(other_content, odd_form, odd_form, claimed_size, claimed_size, lambda random, path: _gone(path), linked, linked),
    *(pipe, folder_instead, more_beside, more_beside, other_name),
]
