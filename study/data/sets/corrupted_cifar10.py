"""corrupted_cifar10: CIFAR-10 images under one of ten corruptions, which betrays the class in a share of training.

Corrupted CIFAR-10, type 0, of the LfF paper (Nam et al. 2020): built here from CIFAR-10, or read from the published
folder `cifar10c` of the DisEnt paper (Lee et al. 2021).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import cifar, colour_bias, holdout, label_files
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Labels, Split
from study.data.pixels import decode
from study.data.sets import cifar10
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

VERSION = 1

FOLDER = "cifar10c"

SPLITS = ("train", "val", "test")
"""The place of a split is its generator's, beside the seed."""


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
        int, Range(low=0), Doc("seed of the validation split and the corruptions. (A folder has its own corruptions.)")
    ] = 0
    val_share: Annotated[
        holdout.Share, Doc("share of the training images that is held out for validation, where `val` is not given")
    ] = 0.1
    val: Annotated[
        holdout.Kind | None, Doc(f"{holdout.ABOUT}. null: given where a folder is read, unbiased otherwise")
    ] = None


def describe(options: Options) -> Facts:
    """Ten classes, ten corruptions."""
    if options.source != "folder":
        holdout.refuse_given(options.val, "corrupted_cifar10, unless data.source is folder,")
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
    facts = describe(options)
    key = asdict(options) | {"val": _val(options), "title": facts.title, "version": VERSION}
    build = _read if options.source == "folder" else _build
    return cached("corrupted_cifar10", key, facts, lambda: build(options), sources(options))


def labels(options: Options) -> dict[str, Labels]:
    """The classes and corruptions of each split: no image is decoded."""
    if options.source != "folder":
        plain = cifar10.labels(_plain(options)).items()
        return {name: Labels(one.target, _kinds(options, name, one.target)[0]) for name, one in plain}
    splits = {name: _labels(paths) for name, paths in _published(options).items()}
    if (kind := _val(options)) != "given":
        splits |= holdout.cut_labels(splits["train"], options.val_share, options.seed, kind)
    return splits


def _val(options: Options) -> holdout.Kind:
    """What `val` is, if it is left out, too."""
    return options.val or ("given" if options.source == "folder" else "unbiased")


def _plain(options: Options) -> cifar10.Options:
    assert options.source != "folder"
    return cifar10.Options(options.source, options.val_share, options.seed)


def _kinds(options: Options, name: str, target: NDArray[np.int64]) -> tuple[NDArray[np.int64], np.random.Generator]:
    """The corruption of each image of a split, (N,), and the generator that goes on to corrupt them."""
    random = np.random.default_rng((options.seed, SPLITS.index(name)))
    biased = name == "train" or (name == "val" and options.val == "biased")
    return colour_bias.assign(target, options.rho if biased else colour_bias.UNBIASED, random), random


def _build(options: Options) -> dict[str, Split]:
    """Whatever `val` is, the splits have the same images, and training and test the same corruptions."""
    from study.data import corruptions  # loads SciPy, which takes longer than all that only describes data

    splits = {}
    for name, plain in cifar10.load(_plain(options)).splits.items():
        kinds, random = _kinds(options, name, plain.target)
        splits[name] = Split(corruptions.corrupt(plain.inputs, kinds, options.severity, random), plain.target, kinds)
    return splits


def _published(options: Options) -> dict[str, list[Path]]:
    """The images of the published layout, PCT/{align,conflict}/CLASS, PCT/valid and test."""
    share, test = (source.find() for source in sources(options))
    places = {"train": [share / "align", share / "conflict"], "val": [share / "valid"], "test": [test]}
    found = {}
    for name, folders in places.items():
        found[name] = [path for folder in folders for path in label_files.shown(folder, "*.png")]
        if not found[name]:
            raise UserError(f"{folders[-1]}: holds no .png files. Unpack the published archive again")
    return found


def _read(options: Options) -> dict[str, Split]:
    splits = {}
    for name, paths in _published(options).items():
        labels = _labels(paths)
        images: NDArray[np.uint8] = np.stack([decode(path.read_bytes(), str(path), cifar.SHAPE) for path in paths])
        splits[name] = Split(images, labels.target, labels.bias)
    if (kind := _val(options)) != "given":
        splits["train"], splits["val"] = holdout.cut(splits["train"], options.val_share, options.seed, kind)
    return splits


def _labels(paths: Sequence[Path]) -> Labels:
    pairs = np.array([_label(path.name, str(path)) for path in paths], np.int64)
    return Labels(pairs[:, 0].copy(), pairs[:, 1].copy())


def _label(name: str, path: str) -> tuple[int, int]:
    """The class and the corruption of a file `INDEX_CLASS_CORRUPTION.png`."""
    try:
        _, target, bias = name.removesuffix(".png").rsplit("_", 2)
        labels = int(target), int(bias)
    except ValueError:
        raise UserError(f"{path}: its name is not INDEX_CLASS_CORRUPTION.png. Remove it") from None
    if not all(0 <= label <= 9 for label in labels):
        raise UserError(f"{path}: its name gives class {target} and corruption {bias}, allowed is 0 to 9. Remove it")
    return labels
