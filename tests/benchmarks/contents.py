"""Seconds that knowing data by their content adds to a start: `python tests/benchmarks/contents.py [FILES] [BYTES]`.

Writes that many small files (10,000 of 4,096 bytes unless told), then prints the seconds of their hashes: first, when
every file is read; second, when all are known by path and state; and with one file changed in between. Wanted for
10,000 files: at most 0.3 s the second time.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from study.data import contents


def main(count: int, size: int) -> None:
    """Print one line for each start."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["STUDY_DATA"] = str(Path(place) / "data")
        folder = Path(place) / "photos"
        folder.mkdir()
        files = [folder / f"{number:06}.bin" for number in range(count)]
        for file in files:
            file.write_bytes(os.urandom(size))
        time.sleep(contents.RACY + 0.5)  # younger files are not kept
        print(f"{count} files of {size} bytes")
        first = told("first start", files)
        again = told("second start", files)
        files[count // 2].write_bytes(os.urandom(size))
        other = told("one file changed", files)
        if not first == again != other:
            raise SystemExit("wrong: equal content must have equal stamps, other content another")


def told(what: str, files: list[Path]) -> str:
    """The stamp of the files, after a line with the seconds that it took."""
    began = time.perf_counter()
    stamp = contents.stamp(files)
    print(f"{what:<17} {time.perf_counter() - began:6.3f} s")
    return stamp


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(*numbers, *(10_000, 4096)[len(numbers) :])
