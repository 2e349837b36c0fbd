"""corrupted_cifar10: CIFAR-10 images under one of ten corruptions, which betrays the class in a share of training.

Corrupted CIFAR-10, type 0, of the LfF paper (Nam et al. 2020): built here from CIFAR-10, or read from the published
folder `cifar10c` of the DisEnt paper (Lee et al. 2021).
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import cifar, colour_bias
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Split
from study.data.holdout import Share
from study.data.images import decode
from study.data.sets import cifar10
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

VERSION = 1

FOLDER = "cifar10c"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    rho: Annotated[
        float,
        Range(low=0.0, high=1.0),
        Doc("share of training images under their class's own corruption: 0.95, 0.98, 0.99, 0.995 in the papers"),
    ] = 0.95
    severity: Annotated[
        int,
        Range(low=1, high=5),
        Doc("strength of the corruptions; 5 is what the published data calls Severity4. (A folder has its own.)"),
    ] = 5
    source: Annotated[
        Literal["auto", "official", "jpeg", "folder"],
        Doc("official, jpeg, auto: built from CIFAR-10, as `cifar10` names them; folder: the published folder"),
    ] = "auto"
    seed: Annotated[
        int, Range(low=0), Doc("seed of the validation split and the corruptions. (A folder has its own split.)")
    ] = 0
    val_share: Annotated[
        Share, Doc("share of the training images that is held out for validation, before corruption")
    ] = 0.1
    val: Annotated[
        Literal["unbiased", "biased"],
        Doc(
            "unbiased: validation images are corrupted like the test split, every way equally often; biased: "
            "like the training split"
        ),
    ] = "unbiased"


def describe(options: Options) -> Facts:
    """Ten classes, ten corruptions."""
    jpeg = options.source != "folder" and cifar10.is_jpeg(options.source)
    title = "Corrupted CIFAR-10 (from JPEG, q75)" if jpeg else "Corrupted CIFAR-10"
    return Facts(10, 10, cifar.SHAPE, mean=cifar.MEAN, deviation=cifar.DEVIATION, title=title)


def sources(options: Options) -> tuple[Source, ...]:
    """CIFAR-10's files, or the two folders of the published data."""
    if options.source != "folder":
        return cifar10.sources(_plain(options))
    note = "A folder of the published data cifar10c, see the DisEnt paper's repository."
    share = f"{100 * (1 - options.rho):g}pct"
    return tuple(Source(f"{FOLDER}/{part}", note=note) for part in (share, "test"))


def load(options: Options) -> Dataset:
    """Corrupt CIFAR-10, or read the folder."""
    key = asdict(options) | {"title": describe(options).title, "version": VERSION}
    build = _read if options.source == "folder" else _build
    return cached("corrupted_cifar10", key, describe(options), lambda: build(options), sources(options))


def _plain(options: Options) -> cifar10.Options:
    assert options.source != "folder"
    return cifar10.Options(options.source, options.val_share, options.seed)


def _build(options: Options) -> dict[str, Split]:
    from study.data import corruptions  # loads SciPy, which takes longer than all that only describes data

    shares = {
        "train": options.rho,
        "val": options.rho if options.val == "biased" else colour_bias.UNBIASED,
        "test": colour_bias.UNBIASED,
    }
    splits = {}
    for stream, (name, plain) in enumerate(cifar10.load(_plain(options)).splits.items()):
        random = np.random.default_rng((options.seed, stream))
        kinds = colour_bias.assign(plain.target, shares[name], random)
        images = corruptions.corrupt(plain.inputs, kinds, options.severity, random)
        splits[name] = Split(images, plain.target, kinds)
    return splits


def _read(options: Options) -> dict[str, Split]:
    """The published layout: PCT/{align,conflict}/CLASS, PCT/valid and test; files `INDEX_CLASS_CORRUPTION.png`."""
    share, test = (source.find() for source in sources(options))
    places = {"train": [share / "align", share / "conflict"], "val": [share / "valid"], "test": [test]}
    splits = {}
    for name, folders in places.items():
        paths = [path for folder in folders for path in sorted(folder.rglob("*.png"))]
        if not paths:
            raise UserError(f"{folders[-1]}: holds no .png files. Unpack the published archive again")
        labels = np.array([_labels(path.name, str(path)) for path in paths], np.int64)
        images: NDArray[np.uint8] = np.stack([decode(path.read_bytes(), str(path), cifar.SHAPE) for path in paths])
        splits[name] = Split(images, labels[:, 0].copy(), labels[:, 1].copy())
    return splits


def _labels(name: str, path: str) -> tuple[int, int]:
    try:
        _, target, bias = name.removesuffix(".png").rsplit("_", 2)
        labels = int(target), int(bias)
    except ValueError:
        raise UserError(f"{path}: its name is not INDEX_CLASS_CORRUPTION.png. Remove it") from None
    if not all(0 <= label <= 9 for label in labels):
        raise UserError(f"{path}: its name gives class {target} and corruption {bias}, allowed is 0 to 9. Remove it")
    return labels
