"""imagenet100: 100 classes of ImageNet, which ones a list says (CCL-K and FairKL papers; their lists differ).

The usual tree imagenet/train/CLASS and imagenet/val/CLASS, and a text file with one WordNet number per line. The
official validation images are the test split; validation is cut from training. Photographs are cropped to the square
in their middle. At size 224 the prepared data takes 20 GB.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typing_extensions import Doc

from study.data import conditions, file_lists, holdout, label_files
from study.data.cache import load_cached
from study.data.dataset import Dataset, Facts
from study.data.file_lists import FileListing
from study.data.image_files import Frame, Size
from study.data.source import Source
from study.errors import UserError

CLASSES = 100
LIST = "A text file of 100 WordNet numbers, one per line, is needed: a paper's list is in its authors' repository."
VECTORS = (
    "In the CCL-K paper these are 512 features of each image by CLIP (github.com/openai/CLIP), which nobody "
    f"distributes: compute them from the images. {conditions.FILE_FORM}, with keys as "
    "train/n01440764/n01440764_10026.JPEG."
)

FRAME: Frame = "crop"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    class_file: Annotated[
        str,
        Doc("list of the 100 classes, one a line, relative to the current folder or to the folder of all data sets"),
    ] = "imagenet/imagenet100.txt"
    condition_file: Annotated[
        str | None,
        Doc(
            "file of continuous attributes, see `study.data.conditions`; its keys are like "
            "`train/n01440764/n01440764_10026.JPEG`"
        ),
    ] = None
    size: Size = 224
    val_share: holdout.Share = 0.05
    split_seed: holdout.SplitSeed = 0


def describe(options: Options) -> Facts:
    """Return the facts: 100 classes, no bias labels; a condition where a file of it is named."""
    width = conditions.expected_vector_width(options.condition_file) if options.condition_file else None
    shape = (3, options.size, options.size)
    return Facts(CLASSES, None, shape, condition=width, mean=file_lists.MEAN, deviation=file_lists.DEVIATION)


def sources(options: Options) -> tuple[Source, ...]:
    """Return the two folders; the files that keys name are the user's own."""
    return file_lists.TRAIN, file_lists.VAL


def load(options: Options) -> Dataset:
    """Read the class folders, cut the validation split."""
    trees = [source.find() for source in sources(options)]
    listed = label_files.find_path(options.class_file, LIST)
    vectors = label_files.find_path(options.condition_file, VECTORS) if options.condition_file else None
    facts, classes = describe(options), _class_codes(listed)
    used = [folder for tree in trees for folder in file_lists.class_folders(tree, classes)]
    places = [listed, *used, *([vectors] if vectors else [])]
    return load_cached(
        "imagenet100",
        options,
        facts,
        lambda: file_lists.decode_images_of_splits(labels(options), options.size, FRAME),
        places,
    )


def labels(options: Options) -> dict[str, FileListing]:
    """List the files of each split with their classes, and their vectors if there are any."""
    classes = _class_codes(label_files.find_path(options.class_file, LIST))
    vectors = label_files.find_path(options.condition_file, VECTORS) if options.condition_file else None
    trees = [source.find() for source in sources(options)]
    whole, test = (_conditioned(file_lists.list_class_folders(tree, classes), tree, vectors) for tree in trees)
    return holdout.cut_off_val({"train": whole, "test": test}, options.val_share, options.split_seed)


def _class_codes(path: Path) -> dict[str, int]:
    names = [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(names) != CLASSES or len(set(names)) != CLASSES:
        raise UserError(f"{path}: names {len(set(names))} classes in {len(names)} lines, {CLASSES} are needed")
    label_files.check_files(names, path, "class")
    return {name: index for index, name in enumerate(sorted(names))}


def _conditioned(listing: FileListing, tree: Path, vectors: Path | None) -> FileListing:
    if vectors is None:
        return listing
    names = [file.relative_to(tree.parent).as_posix() for file in listing.files]
    return FileListing(listing.files, listing.target, None, conditions.read_vectors(vectors, names))
