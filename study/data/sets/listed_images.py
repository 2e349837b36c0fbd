"""Data sets of listed images: folders of pictures, and lists or file names that say their labels.

Each is a row of `SETS`: its keys, its files, how many classes it has, and a function that lists the files of each split
with their labels, whose name and docstring are those of the data set.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from study.data import file_lists, holdout, label_files
from study.data.dataset import Facts, Split
from study.data.file_lists import IMAGENET_MEAN, IMAGENET_STD, DrawnSplitOptions, FileListing, PublishedSplitOptions
from study.data.image_decoding import SquareMode
from study.data.image_files import ImageSizeKey
from study.data.source import Source
from study.errors import UserError, suggest_or_list
from study.knobs import Range

if TYPE_CHECKING:
    import pandas as pd


OptionsType = TypeVar("OptionsType", bound="PublishedSplitOptions | DrawnSplitOptions | UtZapposOptions | CubOptions")


@dataclass(frozen=True)
class ListedImages(Generic[OptionsType]):
    """A data set of listed images, of the form that `study.data` asks of a module.

    Attributes:
        load_labels: lists the files of each split with their labels, for these options.
        Options: its keys.
        FRAME: how images become square.
        SOURCES: its files; all are part of its fingerprint.
        n_classes_and_bias_classes: number of classes and bias classes, for these options.
        condition: width of its condition.
        is_imagenet_normalised: whether pixels are normalised as ImageNet's, else with 0.5.
        aligned: class of each bias class for these options, see `Facts`.
    """

    load_labels: Callable[[OptionsType], dict[str, FileListing]]
    Options: type[OptionsType]
    FRAME: SquareMode
    SOURCES: tuple[Source, ...]
    n_classes_and_bias_classes: Callable[[OptionsType], tuple[int, int | None]] = lambda _: (2, 2)
    condition: int | None = None
    is_imagenet_normalised: bool = False
    aligned: Callable[[OptionsType], tuple[int, ...] | None] = lambda options: None

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.load_labels.__doc__)

    @property
    def name(self) -> str:
        """Name of the data set in a study file."""
        return self.load_labels.__name__

    def describe(self, options: OptionsType) -> Facts:
        """Return its facts, without reading it."""
        shape, own = (3, options.size, options.size), self.aligned(options)
        facts = Facts(*self.n_classes_and_bias_classes(options), shape, condition=self.condition, aligned=own)
        return replace(facts, mean=IMAGENET_MEAN, deviation=IMAGENET_STD) if self.is_imagenet_normalised else facts

    def build(self, options: OptionsType) -> dict[str, Split]:
        """Decode the images of its splits."""
        return file_lists.decode_images_of_splits(self.load_labels(options), options.size, self.FRAME)


BFFHQ_SOURCE = Source(
    "bffhq", note="The folder bffhq of the DisEnt authors' data (kakaoenterprise/Learning-Debiased-...)."
)

BFFHQ_FOLDERS = {
    "train": (("0.5pct/align", "0.5pct/conflict"), ("train/align", "train/conflict")),
    "val": (("0.5pct/valid",), ("valid",)),
    "test": (("test",),),
}
"""Folders in which each split may lie: the first alternative that is there is read."""


def bffhq(options: PublishedSplitOptions) -> dict[str, FileListing]:
    """bffhq: young and old faces, most young ones of women, most old ones of men (bFFHQ of Lee et al. 2021, DisEnt).

    The published folder `bffhq`: training images in 0.5pct/align/CLASS and 0.5pct/conflict/CLASS (or train/align,
    train/conflict, as it is often repacked), validation in 0.5pct/valid (or valid), test in test; the file names are
    ID_TARGET_BIAS.png. The layout is taken from public loaders of the data set, the official archive was not at hand.
    Images are square; they are resized.
    """
    return file_lists.add_val_split({name: _bffhq_split(BFFHQ_SOURCE.find(), name) for name in BFFHQ_FOLDERS}, options)


def _bffhq_split(parent: Path, split: str) -> FileListing:
    for folders in BFFHQ_FOLDERS[split]:
        if all((parent / folder).is_dir() for folder in folders):
            files = [file for folder in folders for file in file_lists.list_images(parent / folder)]
            labels = file_lists.labels_from_file_names(files)
            return FileListing(files, labels.target, labels.bias)
    places = " or ".join(", ".join(folders) for folders in BFFHQ_FOLDERS[split])
    raise UserError(f"{parent}: no images for split {split}: needs the folders {places}. Unpack the archive again")


WATERBIRDS_SOURCE = Source(
    "waterbird_complete95_forest2water2",
    note="The folder of the authors' archive waterbird_complete95_forest2water2.tar.gz (group_DRO repository).",
)

WATERBIRDS_COLUMNS = ("img_filename", "y", "split", "place")


def waterbirds(options: PublishedSplitOptions) -> dict[str, FileListing]:
    """waterbirds: land and water birds on land or water (Sagawa et al. 2020); the background betrays the class.

    The official folder waterbird_complete95_forest2water2 with its metadata.csv, official splits. Images are squashed
    to a square, as in the authors' code: no bird and no background is cut off.
    """
    folder = WATERBIRDS_SOURCE.find()
    path = folder / "metadata.csv"
    table = label_files.read_table_as_text(path, WATERBIRDS_COLUMNS)
    target, bias = (label_files.encode_classes(table[column], path, column, ("0", "1")) for column in ("y", "place"))
    codes = label_files.encode_classes(table["split"], path, "split", ("0", "1", "2"))
    label_files.check_file_names(table["img_filename"], path, "img_filename")
    everything = FileListing([folder / name for name in table["img_filename"]], target, bias)
    return file_lists.add_val_split(
        file_lists.split_listing_by_code(everything, codes, ("train", "val", "test")), options
    )


_CELEBA_ATTRIBUTE_NAMES = (
    "5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose Black_Hair Blond_Hair "
    "Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee Gray_Hair Heavy_Makeup High_Cheekbones Male "
    "Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks "
    "Sideburns Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace "
    "Wearing_Necktie Young"
)
CELEBA_ATTRIBUTES = _CELEBA_ATTRIBUTE_NAMES.split()

CELEBA_HINT = "From the CelebA page of its authors (Align&Cropped Images, Anno, Eval); its terms forbid passing it on."
CELEBA_LABELS_SOURCE = Source("celeba/list_attr_celeba.txt", note=CELEBA_HINT)
CELEBA_PARTITION_SOURCE = Source("celeba/list_eval_partition.txt", note=CELEBA_HINT)
CELEBA_IMAGES_SOURCE = Source("celeba/img_align_celeba", note=CELEBA_HINT)


@dataclass(frozen=True)
class CelebaOptions(PublishedSplitOptions):
    """Keys of the `data` section of celeba.

    Attributes:
        target: attribute that is the class, such as `Attractive`; several as one label: `Male+Young` is Male + 2 Young,
            four values (FSCL paper section 4.1 and its code).
        sensitive: attribute that is the bias, such as `Male`; `Male+Young` makes one label of both: Male + 2 Young.
    """

    target: str = "Attractive"
    sensitive: str = "Male"
    size: ImageSizeKey = 128


def celeba(options: CelebaOptions) -> dict[str, FileListing]:
    """celeba: 202,599 faces with 40 binary attributes (Liu et al. 2015), of which any is the class and any the bias.

    The official files: list_attr_celeba.txt, list_eval_partition.txt and the folder img_align_celeba, in `celeba`. An
    image is cropped to the square in its middle, where the aligned face is: faces keep their proportions.
    """
    attributes, partition, images = (
        source.find() for source in (CELEBA_LABELS_SOURCE, CELEBA_PARTITION_SOURCE, CELEBA_IMAGES_SOURCE)
    )
    table = label_files.read_table_as_text(attributes, sep=r"\s+", skiprows=1, index_col=0)
    target, bias = (_celeba_label(table, _celeba_attributes(options, key)) for key in ("target", "sensitive"))
    splits = label_files.read_table_as_text(
        partition, sep=r"\s+", header=None, names=["file", "split"], index_col="file"
    )
    if not splits.index.equals(table.index):
        counts = f"{len(splits)} and {len(table)} images"
        raise UserError(
            f"{partition}: does not list the images of {attributes} in their order ({counts}). Get both again"
        )
    codes = label_files.encode_classes(splits["split"], partition, "split", ("0", "1", "2"))
    label_files.check_file_names(table.index, attributes, "file")
    everything = FileListing([images / name for name in table.index], target, bias)
    return file_lists.add_val_split(
        file_lists.split_listing_by_code(everything, codes, ("train", "val", "test")), options
    )


def _n_celeba_classes_and_bias_classes(options: CelebaOptions) -> tuple[int, int]:
    target, sensitive = (_celeba_attributes(options, key) for key in ("target", "sensitive"))
    if shared := [name for name in sensitive if name in target]:
        raise UserError(f"data.sensitive: {shared[0]!r} given, allowed is another attribute than data.target")
    return 2 ** len(target), 2 ** len(sensitive)


def _celeba_attributes(options: CelebaOptions, key: str) -> list[str]:
    names = str(getattr(options, key)).split("+")
    for name in names:
        if name not in CELEBA_ATTRIBUTES:
            raise UserError(f"data.{key}: {name!r} given. {suggest_or_list(name, CELEBA_ATTRIBUTES)}")
    if len(set(names)) < len(names):
        raise UserError(f"data.{key}: {'+'.join(names)!r} names an attribute twice")
    return names


def _celeba_label(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.int64]:
    path = CELEBA_LABELS_SOURCE.find()
    label_files.check_columns_exist(table.columns, names, path)
    parts = [label_files.encode_classes(table[name], path, name, ("-1", "1")) for name in names]
    return label_files.combine_label_codes(parts, [2] * len(parts))


UTKFACE_SOURCE = Source(
    "UTKFace",
    note="The folder of the aligned and cropped faces from the UTKFace page of its authors, parts put together.",
)

FaceAttribute = Literal["age", "gender", "ethnicity"]

UTKFACE_NAME_PATTERN = re.compile(
    r"(\d{1,3})_([01])_([0-4])_\d+ ?(?:\.?jpg)?(?:\.chip)?\.(?:jpg|jpeg|png)", re.IGNORECASE
)
"""Names of the files, even those with a space or no dot before the first `jpg`."""

MAX_UTKFACE_UNNAMED_SHARE = 0.01
"""Share of the files that may lack a field of their name: three or so are known of 23,708. Those are left out."""


@dataclass(frozen=True)
class UtkfaceOptions(DrawnSplitOptions):
    """Keys of the `data` section of utkface.

    Attributes:
        target: attribute that is the class: gender (1: male), ethnicity (1: Caucasian) or age (1: below 35), as in the
            FSCL code.
        sensitive: attribute that is the bias: gender (1: male), ethnicity (1: Caucasian) or age (1: below 35).
        severity: the FSCL paper's alpha (2, 3, 4): how many times as many men as women one group has; 1: balanced.
    """

    target: FaceAttribute = "gender"
    sensitive: FaceAttribute = "ethnicity"
    severity: Annotated[int, Range(low=1, high=100)] = 2


def utkface(options: UtkfaceOptions) -> dict[str, FileListing]:
    """utkface: about 23,700 faces whose file names say age, gender, ethnicity, drawn as biased as wanted (FSCL paper).

    The folder UTKFace of aligned and cropped faces, named age_gender_race_datetime.jpg.chip.jpg. FSCL paper section
    4.1 and Table 9: 10,000 training images in which one sensitive group has `severity` times as many men as women and
    the other the opposite; 2,400 validation and 2,400 test images, every (class, sensitive value) equally often. Which
    images those were is not published: here a seed draws them. Images are square; they are resized.
    """
    return file_lists.draw_biased_splits(
        _utkface_listing(options), options, options.severity, _utkface_common_cells(options), "utkface"
    )


def parse_utkface_name(name: str) -> dict[str, int] | None:
    """Read the three attributes from a file's name; None where a field is missing, so that none can be trusted."""
    match = UTKFACE_NAME_PATTERN.fullmatch(name)
    if not match:
        return None
    age, gender, race = (int(field) for field in match.groups())
    return {"age": int(age < 35), "gender": int(gender == 0), "ethnicity": int(race == 0)}


def _utkface_common_cells(options: UtkfaceOptions) -> frozenset[file_lists.ClassAndBias]:
    """Return the two common cells (Table 9): more men among Caucasians and among those of 35 or more."""
    opposite = "age" in (options.target, options.sensitive)
    return frozenset({(0, 1), (1, 0)} if opposite else {(0, 0), (1, 1)})


def _utkface_aligned_classes(options: UtkfaceOptions) -> tuple[int, ...] | None:
    return (
        tuple(y for _, y in sorted((s, y) for y, s in _utkface_common_cells(options))) if options.severity > 1 else None
    )


def _utkface_listing(options: UtkfaceOptions) -> FileListing:
    files = file_lists.list_images(UTKFACE_SOURCE.find())
    named: list[tuple[Path, dict[str, int]]] = []
    for file in files:
        if attributes := parse_utkface_name(file.name):
            named.append((file, attributes))
    nameless = len(files) - len(named)
    if nameless > max(3, MAX_UTKFACE_UNNAMED_SHARE * len(files)):
        raise UserError(
            f"{UTKFACE_SOURCE.find()}: {nameless} of {len(files)} file names are not "
            "age_gender_race_datetime.jpg.chip.jpg "
            "(race 0 to 4, gender 0 or 1). Is this the folder of aligned and cropped faces?"
        )
    target, bias = (
        np.array([attributes[key] for _, attributes in named], np.int64) for key in (options.target, options.sensitive)
    )
    return FileListing([file for file, _ in named], target, bias)


ANIMAL_COLOUR_RATIO = 5
"""Ratio of dark to bright cats, and of bright to dark dogs."""

ANIMAL_SPECIES, ANIMAL_COLOURS = ("cat", "dog"), ("bright", "dark")

ANIMALS_SOURCE = Source("dogs_and_cats/train", note="The folder `train` of Kaggle's competition Dogs vs. Cats.")
ANIMAL_LIST_SOURCES = tuple(
    Source(f"dogs_and_cats/list_{colour}.txt", note="From the repository learning-not-to-learn of the LNL paper.")
    for colour in ANIMAL_COLOURS
)


@dataclass(frozen=True)
class DogsAndCatsOptions(DrawnSplitOptions):
    """Keys of the `data` section of dogs_and_cats.

    Attributes:
        train_samples: number of images in the training split.
    """

    train_samples: Annotated[int, Range(low=12)] = 8_220


def dogs_and_cats(options: DogsAndCatsOptions) -> dict[str, FileListing]:
    """dogs_and_cats: cats most of which are dark, dogs most of which are bright (FSCL paper section 4.5, appendix H.2).

    The training images of Kaggle's Dogs vs. Cats (`train/cat.0.jpg`) and the lists of bright and dark animals of the
    LNL paper's repository, list_bright.txt and list_dark.txt; images on neither list are not used. Training has 3,425
    dark cats and as many bright dogs, 685 bright cats and as many dark dogs; the test split has 600 of each. The paper
    says nothing of a validation split: here it is as large and as balanced as the test split. Which images those were
    is not published: here a seed draws them. Photographs are cropped to the square in their middle: animals keep their
    shape.
    """
    animals = _animal_listing(*(source.find() for source in (ANIMALS_SOURCE, *ANIMAL_LIST_SOURCES)))
    return file_lists.draw_biased_splits(
        animals, options, ANIMAL_COLOUR_RATIO, frozenset({(0, 1), (1, 0)}), "dogs_and_cats"
    )


def _animal_listing(images: Path, *lists: Path) -> FileListing:
    names: dict[str, tuple[int, int]] = {}
    for colour, path in enumerate(lists):
        for line, name in enumerate(path.read_text(encoding="utf-8").split(), 1):
            species = name.partition(".")[0]
            if species not in ANIMAL_SPECIES:
                raise UserError(f"{path}: entry {line}: {name!r} begins neither with 'cat.' nor with 'dog.'")
            if label_files.is_outside_folder(name):
                raise UserError(f"{path}: entry {line}: {name!r} given, {label_files.INSIDE_FOLDER_HINT}")
            if names.setdefault(name, (ANIMAL_SPECIES.index(species), colour))[1] != colour:
                raise UserError(f"{path}: entry {line}: {name!r} is on the other list, too")
    labels = np.array(list(names.values()), np.int64).reshape(-1, 2)
    return FileListing([images / name for name in names], labels[:, 0].copy(), labels[:, 1].copy())


SHOE_CLASS_NAMES = (
    *("Ankle", "Athletic", "Boat Shoes", "Boot", "Clogs and Mules", "Crib Shoes", "Firstwalker", "Flat", "Flats"),
    *("Heel", "Heels", "Knee High", "Loafers", "Mid-Calf", "Over the Knee", "Oxfords", "Prewalker"),
    *("Prewalker Boots", "Slipper Flats", "Slipper Heels", "Sneakers and Athletic Shoes"),
)
SHOE_ATTRIBUTE_COUNT = 126

SHOE_TEST_SHARE = 0.3

SHOE_HINT = "From the UT Zappos50K page of its authors."
SHOE_DATA_SOURCE = Source("ut-zap50k-data", note=SHOE_HINT)
SHOE_IMAGES_SOURCE = Source("ut-zap50k-images", note=SHOE_HINT)


@dataclass(frozen=True)
class UtZapposOptions:
    """Keys of the `data` section of ut_zappos."""

    size: ImageSizeKey = 32
    val_share: holdout.ValShareKey = 0.1
    split_seed: holdout.SplitSeedKey = 0


def ut_zappos(options: UtZapposOptions) -> dict[str, FileListing]:
    """ut_zappos: 50,025 shoes of 21 kinds with 126 binary attributes (UT-Zap50K), CCL-K paper section 3.2.

    The official folders ut-zap50k-images and ut-zap50k-data. As in appendix F.1: the 21 subcategories are the classes,
    the attributes the condition, 70% of the images training and 30% test, drawn here by a seed (theirs is not given).
    Validation is cut from training. Shoes are wider than high: images are squashed, so that no toe or heel is cut off.
    """
    rest, test = holdout.hold_out(
        _shoe_listing(SHOE_DATA_SOURCE.find(), SHOE_IMAGES_SOURCE.find()), SHOE_TEST_SHARE, options.split_seed
    )
    return holdout.add_held_out_val({"train": rest, "test": test}, options.val_share, options.split_seed)


def _shoe_listing(data: Path, images: Path) -> FileListing:
    """List every shoe of both tables, with its image: `100627-72` is the file 100627.72.jpg."""
    kinds, attributes = data / "meta-data.csv", data / "meta-data-bin.csv"
    table = label_files.read_table_as_text(kinds, ("CID", "SubCategory"))
    binary = label_files.read_table_as_text(attributes, ("CID",))
    columns = [str(name) for name in binary if not str(name).startswith(("CID", "Category", "SubCategory"))]
    if len(columns) != SHOE_ATTRIBUTE_COUNT:
        raise UserError(f"{attributes}: has {len(columns)} attributes, {SHOE_ATTRIBUTE_COUNT} are needed. Get it again")
    if list(binary["CID"]) != list(table["CID"]):
        raise UserError(f"{attributes}: its CIDs are not those of {kinds.name} in their order. Get both again")
    files = {file.stem.replace(".", "-"): file for file in file_lists.list_images(images)}
    absent = [cid for cid in table["CID"] if cid not in files]
    if absent:
        raise UserError(f"{images}: no image of {len(absent)} shoes, as {absent[0]}. Unpack the archive again")
    target = label_files.encode_classes(table["SubCategory"], kinds, "SubCategory", SHOE_CLASS_NAMES)
    vectors = label_files.columns_to_numbers(binary, columns, attributes)
    if not np.isin(vectors, (0.0, 1.0)).all():
        raise UserError(f"{attributes}: its attributes are not 0 or 1 everywhere. Get it again")
    return FileListing([files[cid] for cid in table["CID"]], target, None, vectors)


BIRD_SPECIES_COUNT, BIRD_ATTRIBUTE_COUNT = 200, 312

CUB_SOURCE = Source("CUB_200_2011", note="The folder of the archive CUB_200_2011.tgz from the CUB-200-2011 page.")


@dataclass(frozen=True)
class CubOptions:
    """Keys of the `data` section of cub.

    Attributes:
        condition: binary: which attributes were seen in the image; continuous: the share of people who see each
            attribute in the image's species, 0 to 1.
    """

    condition: Literal["binary", "continuous"] = "binary"
    size: ImageSizeKey = 224
    val_share: holdout.ValShareKey = 0.1
    split_seed: holdout.SplitSeedKey = 0


def cub(options: CubOptions) -> dict[str, FileListing]:
    """cub: 11,788 birds of 200 species with 312 attributes (CUB-200-2011), for the CCL-K paper's weak supervision.

    The official folder CUB_200_2011 with its split of 5,994 training and 5,794 test images. (Appendix F.2 of the paper
    goes on to 6,871 and 6,918 images, more than there are.) Validation is cut from training. Photographs are cropped
    to the square in their middle, as is usual for this data set.
    """
    return holdout.add_held_out_val(
        _bird_splits(CUB_SOURCE.find(), options.condition), options.val_share, options.split_seed
    )


def _bird_splits(folder: Path, condition: str) -> dict[str, FileListing]:
    names, classes, training = (
        _read_bird_list(folder / file, "image")
        for file in ("images.txt", "image_class_labels.txt", "train_test_split.txt")
    )
    if not list(names) == list(classes) == list(training):
        raise UserError(f"{folder}: its three lists of images name different images. Unpack the archive again")
    label_files.check_file_names(names.values(), folder / "images.txt", "file")
    path = folder / "image_class_labels.txt"
    target = label_files.encode_classes(
        classes.values(), path, "class", [str(1 + index) for index in range(BIRD_SPECIES_COUNT)]
    )
    split = label_files.encode_classes(training.values(), folder / "train_test_split.txt", "is_training", ("1", "0"))
    attributes = folder / "attributes"
    is_binary = condition == "binary"
    vectors = (
        _read_attributes_of_images(attributes, list(names))
        if is_binary
        else _read_attributes_of_species(attributes)[target]
    )
    everything = FileListing([folder / "images" / name for name in names.values()], target, None, vectors)
    return file_lists.split_listing_by_code(everything, split, ("train", "test"))


def _read_bird_list(path: Path, what: str) -> dict[str, str]:
    """Read a list of two columns: number and value."""
    table = label_files.read_table_as_text(path, sep=" ", header=None, names=[what, "value"])
    return dict(zip(table[what], table["value"], strict=True))


def _read_attributes_of_images(folder: Path, images: list[str]) -> NDArray[np.float32]:
    """Read the attributes seen in each image.

    Rows are `image attribute present certainty time`, some with extra fields.
    """
    path = folder / "image_attribute_labels.txt"
    if not path.is_file():
        raise UserError(f"{path}: not found")
    fields = ["image", "attribute", "present", *(f"other {number}" for number in range(5))]
    table = label_files.read_table_as_text(path, sep=r"\s+", header=None, names=fields)
    attributes = [str(1 + index) for index in range(BIRD_ATTRIBUTE_COUNT)]
    place, column, present = (
        label_files.encode_classes(table[field], path, field, allowed)
        for field, allowed in (("image", images), ("attribute", attributes), ("present", ("0", "1")))
    )
    seen = np.full((len(images), BIRD_ATTRIBUTE_COUNT), np.nan, np.float32)
    seen[place, column] = present
    if lacking := np.isnan(seen).sum():
        raise UserError(f"{path}: lacks {lacking} of {seen.size} rows: cut short?")
    return seen


def _read_attributes_of_species(folder: Path) -> NDArray[np.float32]:
    """Read the share of people who see each attribute in each species, (200, 312); the file has percentages."""
    path = folder / "class_attribute_labels_continuous.txt"
    table = label_files.read_table_as_text(path, sep=" ", header=None)
    if table.shape != (BIRD_SPECIES_COUNT, BIRD_ATTRIBUTE_COUNT):
        raise UserError(
            f"{path}: has {table.shape[0]} x {table.shape[1]} numbers, {BIRD_SPECIES_COUNT} x "
            f"{BIRD_ATTRIBUTE_COUNT} are needed"
        )
    return label_files.columns_to_numbers(table, list(table.columns), path) / np.float32(100)


def _n_utkface_classes_and_bias_classes(options: UtkfaceOptions) -> tuple[int, int]:
    if options.target == options.sensitive:
        raise UserError(f"data.sensitive: {options.sensitive!r} given, allowed is another attribute than data.target")
    return 2, 2


LISTED_IMAGE_SETS: tuple[ListedImages[Any], ...] = (
    ListedImages(
        bffhq, PublishedSplitOptions, "squash", (BFFHQ_SOURCE,), is_imagenet_normalised=True, aligned=lambda _: (0, 1)
    ),
    ListedImages(
        waterbirds,
        PublishedSplitOptions,
        "squash",
        (WATERBIRDS_SOURCE,),
        is_imagenet_normalised=True,
        aligned=lambda _: (0, 1),
    ),
    ListedImages(
        celeba,
        CelebaOptions,
        "crop",
        (CELEBA_LABELS_SOURCE, CELEBA_PARTITION_SOURCE, CELEBA_IMAGES_SOURCE),
        _n_celeba_classes_and_bias_classes,
    ),
    ListedImages(
        utkface,
        UtkfaceOptions,
        "squash",
        (UTKFACE_SOURCE,),
        _n_utkface_classes_and_bias_classes,
        aligned=_utkface_aligned_classes,
    ),
    ListedImages(
        dogs_and_cats,
        DogsAndCatsOptions,
        "crop",
        (ANIMALS_SOURCE, *ANIMAL_LIST_SOURCES),
        aligned=lambda _: (1, 0),
    ),
    ListedImages(
        ut_zappos,
        UtZapposOptions,
        "squash",
        (SHOE_DATA_SOURCE, SHOE_IMAGES_SOURCE),
        lambda _: (len(SHOE_CLASS_NAMES), None),
        condition=SHOE_ATTRIBUTE_COUNT,
    ),
    ListedImages(
        cub,
        CubOptions,
        "crop",
        (CUB_SOURCE,),
        lambda _: (BIRD_SPECIES_COUNT, None),
        condition=BIRD_ATTRIBUTE_COUNT,
        is_imagenet_normalised=True,
    ),
)

SETS = {row.name: row for row in LISTED_IMAGE_SETS}
"""Data sets by name."""
