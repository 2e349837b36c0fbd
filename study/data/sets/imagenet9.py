"""imagenet9: 42 classes of ImageNet as nine kinds of animals (9-Class ImageNet), textures, and ImageNet-A.

FairKL paper section 4.2 and Table 5. The usual trees imagenet/train and imagenet/val (the biased test split), and
imagenet-a of Hendrycks et al. (2021), of whose classes those 42 that are there are a further split, `imagenet_a`. The
unbiased accuracy is the mean over the (class, texture) cells of the test split: texture labels of its images, from
clustering, three times, are in 9class_imagenet_val.csv of the ReBias repository (Bahng et al. 2020; it leaves out cells
of fewer than 10 images, and takes the mean over the three). Only the test split has bias labels. Validation is cut from
training. Photographs are cropped to the square in their middle.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from study.data import file_lists, holdout, label_files
from study.data.dataset import Facts, Split
from study.data.file_lists import IMAGENET_TRAIN_SOURCE, IMAGENET_VAL_SOURCE, FileListing
from study.data.image_decoding import SquareMode
from study.data.image_files import ImageSizeKey
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

CLASS_NAMES = ("dog", "cat", "frog", "turtle", "bird", "monkey", "fish", "crab", "insect")

FOLDERS_OF_CLASSES = (
    "n02085620 n02099601 n02106550 n02106662 n02110958",
    "n02123045 n02123159 n02123394 n02123597 n02124075",
    "n01641577 n01644373 n01644900",
    "n01664065 n01665541 n01667114 n01667778 n01669191",
    "n01819313 n01820546 n01833805 n01843383 n01847000",
    "n02486410 n02487347 n02488291 n02488702 n02492035",
    "n02607072 n02640242 n02641379 n02643566 n02655020",
    "n01978287 n01978455 n01980166 n01981276",
    "n02174001 n02177972 n02190166 n02206856 n02219486",
)
"""ImageNet's classes of each kind, as the ReBias code maps them."""

CLASS_OF_FOLDER = {folder: kind for kind, folders in enumerate(FOLDERS_OF_CLASSES) for folder in folders.split()}

TEXTURE_COUNT = 9
"""Number of clusters of each clustering."""

TEXTURE_SOURCE = Source(
    "imagenet/9class_imagenet_val.csv", note="From the folder `clusters` of the repository clovaai/rebias."
)
IMAGENET_A_SOURCE = Source("imagenet-a", note="The folder of the archive imagenet-a.tar of its authors.")

FRAME: SquareMode = "crop"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section.

    Attributes:
        clustering: which texture labels (1, 2 or 3) the test split has as bias labels; 0: none, no file needed.
        imagenet_a: add the split `imagenet_a`.
    """

    clustering: Annotated[int, Range(low=0, high=3)] = 0
    imagenet_a: bool = False
    size: ImageSizeKey = 224
    val_share: holdout.ValShareKey = 0.05
    split_seed: holdout.SplitSeedKey = 0


def describe(options: Options) -> Facts:
    """Return the facts: nine classes; nine textures, of the test split alone."""
    return Facts(
        classes=len(CLASS_NAMES),
        bias_classes=TEXTURE_COUNT if options.clustering else None,
        bias_splits=("test",) if options.clustering else None,
        shape=(3, options.size, options.size),
        mean=file_lists.IMAGENET_MEAN,
        deviation=file_lists.IMAGENET_STD,
        splits=("train", "val", "test", *(["imagenet_a"] if options.imagenet_a else [])),
    )


def sources(options: Options) -> tuple[Source, ...]:
    """Return two or three folders, and the list of textures where it is needed."""
    textures = [TEXTURE_SOURCE] if options.clustering else []
    return IMAGENET_TRAIN_SOURCE, IMAGENET_VAL_SOURCE, *textures, *([IMAGENET_A_SOURCE] if options.imagenet_a else [])


def paths_read_by_build(options: Options) -> list[Path]:
    """List the folders of its classes, and what else it needs."""
    trees = [source.find() for source in sources(options)]
    return [
        *(folder for tree in trees[:2] for folder in file_lists.find_class_folders(tree, CLASS_OF_FOLDER)),
        *trees[2:],
    ]


def build(options: Options) -> dict[str, Split]:
    """Decode the images of each split."""
    return file_lists.decode_images_of_splits(load_labels(options), options.size, FRAME)


def load_labels(options: Options) -> dict[str, FileListing]:
    """List the files of each split with their labels."""
    whole, test = (
        file_lists.list_images_of_class_folders(source.find(), CLASS_OF_FOLDER)
        for source in (IMAGENET_TRAIN_SOURCE, IMAGENET_VAL_SOURCE)
    )
    if options.clustering:
        test = _add_textures(test, TEXTURE_SOURCE.find(), options.clustering)
    splits = holdout.add_held_out_val({"train": whole, "test": test}, options.val_share, options.split_seed)
    if options.imagenet_a:
        splits["imagenet_a"] = file_lists.list_images_of_class_folders(IMAGENET_A_SOURCE.find(), CLASS_OF_FOLDER, False)
    return splits


def _add_textures(test: FileListing, path: Path, clustering: int) -> FileListing:
    """Add the texture of each image; the list's paths are as n01641577/ILSVRC2012_val_00001652.JPEG."""
    column = f"cluster{clustering}"
    table = label_files.read_table_as_text(path, ("path", "category", column))
    label_files.encode_classes(table["category"], path, "category", CLASS_NAMES)
    texture = label_files.encode_classes(table[column], path, column, [str(code) for code in range(TEXTURE_COUNT)])
    textures = dict(zip(table["path"], texture.tolist(), strict=True))
    names = [f"{file.parent.name}/{file.name}" for file in test.files]
    absent = [name for name in names if name not in textures]
    if absent:
        raise UserError(f"{path}: no texture of {len(absent)} test images, as {absent[0]}. Get it again")
    return FileListing(test.files, test.target, np.array([textures[name] for name in names], np.int64))
