"""Small files in exactly the layouts that data sets are distributed in."""

import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

TRAIN, TEST = 20, 10
"""Images per class."""


def write_idx(path: Path, array: np.ndarray) -> None:
    """An IDX file of unsigned bytes, gzipped."""
    header = bytes((0, 0, 8, array.ndim)) + b"".join(struct.pack(">I", size) for size in array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes(), 1))


def write_mnist(root: Path, train: int = TRAIN, test: int = TEST) -> None:
    """Four files of noise; the first pixel is the digit, so that each image tells its label; the second is 0."""
    random = np.random.default_rng(0)
    for name, count in {"train": train, "t10k": test}.items():
        labels = random.permutation(np.repeat(np.arange(10), count))
        images = random.integers(0, 256, (len(labels), 28, 28)) * (random.random((len(labels), 28, 28)) < 0.3)
        images[:, 0, 0], images[:, 0, 1] = labels, 0
        write_idx(root / f"MNIST/raw/{name}-images-idx3-ubyte.gz", images)
        write_idx(root / f"MNIST/raw/{name}-labels-idx1-ubyte.gz", labels)


class Python2Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes byte strings as Python 2 wrote its strings, as CIFAR's files have them."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_bytes(self, content: bytes) -> None:
        self.write(b"T" + struct.pack("<i", len(content)) + content)
        self.memoize(content)

    dispatch[bytes] = save_bytes


def write_batch(path: Path, content: dict[bytes, Any]) -> None:
    """A pickle of the time: protocol 2, numpy's old module names, numbers where there are truth values now."""
    stream = io.BytesIO()
    Python2Pickler(stream, 2).dump(content)
    data = stream.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.replace(b"\x89\x88\x87", b"K\x00K\x01\x87"))


def cifar_images(labels: np.ndarray) -> np.ndarray:
    """Images (N, 3072) of one grey each that tells the label."""
    return np.repeat((labels * 20).astype(np.uint8)[:, None], 3072, axis=1)


def write_cifar10(root: Path, per_class: int = 4) -> None:
    """Five training batches and a test batch."""
    for number, name in enumerate([*(f"data_batch_{index}" for index in range(1, 6)), "test_batch"]):
        labels = np.random.default_rng(number).permutation(np.repeat(np.arange(10), per_class))
        content = {b"batch_label": name.encode(), b"labels": labels.tolist(), b"data": cifar_images(labels)}
        write_batch(root / "cifar-10-batches-py" / name, content)


def write_cifar100(root: Path, per_class: int = 4) -> None:
    """A training and a test file."""
    for name in ("train", "test"):
        labels = np.repeat(np.arange(100), per_class)
        content = {b"coarse_labels": (labels // 5).tolist(), b"fine_labels": labels.tolist()}
        write_batch(root / "cifar-100-python" / name, content | {b"data": cifar_images(labels)})


def encoded(image: np.ndarray, kind: str = "JPEG") -> bytes:
    """An image (H, W, 3) as a file's bytes."""
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, kind, quality=75)
    return stream.getvalue()


def write_tar(path: Path, members: dict[str, bytes]) -> None:
    """A .tar.gz without folders of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as packed:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))


def write_cifar10_jpeg(root: Path, per_class: int = 4) -> None:
    """The two archives of the JPEG copy; an image's grey tells its class."""
    names = "airplane automobile bird cat deer dog frog horse ship truck".split()  # noqa: SIM905
    for split in ("train", "test"):
        members = {
            f"{split}/{name}/{index:04}.jpg": encoded(np.full((32, 32, 3), 20 * label, np.uint8))
            for label, name in enumerate(names)
            for index in range(per_class)
        }
        write_tar(root / f"cifar10-jpeg/{split}.tar.gz", members)


def write_stl10(root: Path, per_class: int = 4, unlabelled: int = 6) -> None:
    """The binary files, columns first; an image is black but for row 1, column 2, which tells the class."""
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    labels = np.repeat(np.arange(10), per_class)
    for name, classes in {"train": labels, "test": labels, "unlabeled": np.arange(unlabelled)}.items():
        images = np.zeros((len(classes), 3, 96, 96), np.uint8)
        images[:, 0, 1, 2] = 100 + classes
        images.transpose(0, 1, 3, 2).tofile(folder / f"{name}_X.bin")
        if name != "unlabeled":
            (classes + 1).astype(np.uint8).tofile(folder / f"{name}_y.bin")


ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, {hours}, "
    "United-States, <=50K{stop}\n"
    "37, ?, 284582, Masters, 14, Married-civ-spouse, ?, Wife, Black, Female, 0, 0, {hours}, Cuba, >50K{stop}\n"
)


def write_adult(root: Path, pairs: int = 20) -> None:
    """Both files, with what is odd about each: a first line that is no row, full stops, empty last lines."""
    folder = root / "adult"
    folder.mkdir(parents=True)
    rows = [ADULT.format(hours=30 + index, stop="{stop}") for index in range(pairs)]
    (folder / "adult.data").write_text("".join(rows).replace("{stop}", "") + "\n")
    (folder / "adult.test").write_text("|1x3 Cross validator\n" + "".join(rows).replace("{stop}", ".") + "\n")


COMPAS_COLUMNS = (
    "id,name,first,last,sex,dob,age,race,juv_fel_count,decile_score,juv_misd_count,juv_other_count,priors_count,"
    "days_b_screening_arrest,c_case_number,c_charge_degree,is_recid,score_text,decile_score,priors_count,two_year_recid"
)


def compas_row(race: str, index: int, days: str = "0", recid: int = 0, charge: str = "F", score: str = "Low") -> str:
    """A made-up row; whoever reads it must not find the name in what is made of it."""
    identity = f"{index},Jo Secret{index},Jo,Secret{index}"
    return (
        f"{identity},Male,1980-01-01,{20 + index},{race},0,5,0,0,{index % 7},{days},17-{index},{charge},{recid},"
        f"{score},5,99,{index % 2}"
    )


def write_compas(root: Path, rows: list[str]) -> None:
    """The table of these rows."""
    path = root / "compas/compas-scores-two-years.csv"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join([COMPAS_COLUMNS, *rows]) + "\n")
