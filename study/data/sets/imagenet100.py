"""imagenet100: 100 classes of ImageNet, which ones a list says (CCL-K and FairKL papers; their lists differ).

The usual tree imagenet/train/CLASS and imagenet/val/CLASS, and a text file with one WordNet number per line. The
official validation images are the test split; validation is cut from training. Photographs are cropped to the square
in their middle. At size 224 the prepared data takes 20 GB.
"""

from dataclasses import dataclass
from pathlib import Path

from study.data import conditions, file_lists, holdout, label_files
from study.data.dataset import Facts, Split
from study.data.file_lists import FileListing
from study.data.image_decoding import SquareMode
from study.data.image_files import ImageSizeKey
from study.data.source import Source
from study.errors import UserError

CLASS_COUNT = 100
CLASS_LIST_HINT = (
    "A text file of 100 WordNet numbers, one per line, is needed: a paper's list is in its authors' repository."
)
CONDITION_VECTORS_HINT = (
    "In the CCL-K paper these are 512 features of each image by CLIP (github.com/openai/CLIP), which nobody "
    f"distributes: compute them from the images. {conditions.CONDITION_FILE_HINT}, with keys as "
    "train/n01440764/n01440764_10026.JPEG."
)

FRAME: SquareMode = "crop"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section.

    Attributes:
        class_file: list of the 100 classes, one a line, relative to the current folder or to the folder of all data
            sets.
        condition_file: file of continuous attributes, see `study.data.conditions`; its keys are like
            `train/n01440764/n01440764_10026.JPEG`.
    """

    class_file: str = "imagenet/imagenet100.txt"
    condition_file: str | None = None
    size: ImageSizeKey = 224
    val_share: holdout.ValShareKey = 0.05
    split_seed: holdout.SplitSeedKey = 0


def describe(options: Options) -> Facts:
    """Return the facts: 100 classes, no bias labels; a condition where a file of it is named."""
    width = conditions.expected_vector_width(options.condition_file) if options.condition_file else None
    shape = (3, options.size, options.size)
    return Facts(
        CLASS_COUNT, None, shape, condition=width, mean=file_lists.IMAGENET_MEAN, deviation=file_lists.IMAGENET_STD
    )


def sources(options: Options) -> tuple[Source, ...]:
    """Return the two folders; the files that keys name are the user's own."""
    return file_lists.IMAGENET_TRAIN_SOURCE, file_lists.IMAGENET_VAL_SOURCE


def paths_read_by_build(options: Options) -> list[Path]:
    """List the class list, the folders of its classes, and the vectors if there are any."""
    trees, listed, vectors = _find_image_and_user_files(options)
    classes = _read_class_codes(listed)
    used = [folder for tree in trees for folder in file_lists.find_class_folders(tree, classes)]
    return [listed, *used, *([vectors] if vectors else [])]


def build(options: Options) -> dict[str, Split]:
    """Decode the images of each split."""
    return file_lists.decode_images_of_splits(load_labels(options), options.size, FRAME)


def load_labels(options: Options) -> dict[str, FileListing]:
    """List the files of each split with their classes, and their vectors if there are any."""
    trees, listed, vectors = _find_image_and_user_files(options)
    classes = _read_class_codes(listed)
    whole, test = (
        _add_condition_vectors(file_lists.list_images_of_class_folders(tree, classes), tree, vectors) for tree in trees
    )
    return holdout.add_held_out_val({"train": whole, "test": test}, options.val_share, options.split_seed)


def _find_image_and_user_files(options: Options) -> tuple[list[Path], Path, Path | None]:
    """Find the two folders, the class list, and the vectors if there are any."""
    trees = [source.find() for source in sources(options)]
    listed = label_files.find_user_path(options.class_file, CLASS_LIST_HINT)
    return (
        trees,
        listed,
        label_files.find_user_path(options.condition_file, CONDITION_VECTORS_HINT) if options.condition_file else None,
    )


def _read_class_codes(path: Path) -> dict[str, int]:
    names = [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(names) != CLASS_COUNT or len(set(names)) != CLASS_COUNT:
        raise UserError(f"{path}: names {len(set(names))} classes in {len(names)} lines, {CLASS_COUNT} are needed")
    label_files.check_file_names(names, path, "class")
    return {name: index for index, name in enumerate(sorted(names))}


def _add_condition_vectors(listing: FileListing, tree: Path, vectors: Path | None) -> FileListing:
    if vectors is None:
        return listing
    names = [file.relative_to(tree.parent).as_posix() for file in listing.files]
    return FileListing(listing.files, listing.target, None, conditions.read_condition_vectors(vectors, names))
