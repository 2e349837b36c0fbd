"""Seconds that knowing data by their content adds: `python tests/benchmarks/contents.py [FILES] [BYTES]`, and of
preparing images: `python tests/benchmarks/contents.py prepare FILES [TREE ...]`.

The first writes that many small files (10,000 of 4,096 bytes unless told), then prints the seconds of their hashes:
first, when every file is read; second, when all are known by path and state; and with one file changed in between.
Wanted for 10,000 files: at most 0.3 s the second time.

The second writes that many PNGs of 28 pixels and prepares them as an `image_folder` with the code of each TREE in turn,
three times, each time in a fresh process and a fresh folder of data: this checkout, and another of an earlier commit
for comparison. Wanted: at most 1.1 times the CPU seconds of before data were known by content (commit edf7013).
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3
PREPARE = "from study import data; data.load({'name': 'image_folder', 'path': 'photos', 'size': 28})"


def main(count: int, size: int) -> None:
    """Print one line for each start."""
    from study.data import cache

    with tempfile.TemporaryDirectory() as place:
        os.environ["STUDY_DATA"] = str(Path(place) / "data")
        folder = Path(place) / "photos"
        folder.mkdir()
        files = [folder / f"{number:06}.bin" for number in range(count)]
        for file in files:
            file.write_bytes(os.urandom(size))
        time.sleep(cache.FILE_TIME_RESOLUTION_S + 0.5)  # younger files are not kept
        print(f"{count} files of {size} bytes")
        first = told("first start", files)
        again = told("second start", files)
        files[count // 2].write_bytes(os.urandom(size))
        other = told("one file changed", files)
        if not first == again != other:
            raise SystemExit("wrong: equal content must have equal stamps, other content another")


def told(what: str, files: list[Path]) -> str:
    """The stamp of the files, after a line with the seconds that it took."""
    from study.data import cache

    began = time.perf_counter()
    stamp = cache.hash_file_or_folder(files)
    print(f"{what:<17} {time.perf_counter() - began:6.3f} s")
    return stamp


def prepare(count: int, trees: list[str]) -> None:
    """Print a line for each tree and round: seconds of preparing, then of the start after it."""
    import numpy as np
    from PIL import Image

    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        photos = Path(place) / "photos"
        photos.mkdir()
        rows = ["file,target"]
        for number in range(count):
            Image.fromarray(draw.integers(0, 256, (28, 28, 3), np.uint8)).save(photos / f"{number:06}.png")
            rows.append(f"{number:06}.png,{number % 2}")
        (photos / "labels.csv").write_text("\n".join(rows))
        time.sleep(3)  # hashes of files that were just written are not kept
        print(f"{count} images, seconds on the clock and of CPU: preparing, then another start")
        for turn in range(ROUNDS):
            for tree in trees:
                data = f"{place}/data-{turn}-{trees.index(tree)}"
                environment = {**os.environ, "STUDY_DATA": data, "PYTHONPATH": tree}
                both = [run(place, environment) for _ in range(2)]
                print(
                    f"{tree:<40} {both[0][0]:7.2f} {both[0][1]:7.2f}   {both[1][0]:6.2f} {both[1][1]:6.2f}", flush=True
                )


def run(place: str, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds on the clock and of CPU of loading the images in a process of its own."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", PREPARE], cwd=place, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


if __name__ == "__main__":
    if sys.argv[1:2] == ["prepare"]:
        prepare(int(sys.argv[2]), sys.argv[3:] or [str(Path(__file__).parents[2])])
    else:
        numbers = [int(text) for text in sys.argv[1:]]
        main(*numbers, *(10_000, 4096)[len(numbers) :])
