"""What the data sets made from ImageNet share: its folder tree and the usual normalisation."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from study.data.listings import Listing, images_in
from study.data.source import Source
from study.errors import UserError

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's pixels; the papers' code normalises all photographs with them."""

NOTE = "Of ILSVRC 2012, from image-net.org: a folder per class, named by its WordNet number as n01440764."
TRAIN = Source("imagenet/train", note=NOTE)
VAL = Source("imagenet/val", note=NOTE)


def folders(parent: Path, classes: Mapping[str, int], all_needed: bool = True) -> list[Path]:
    """The folders of these classes in a tree.

    Raises:
        UserError: some are missing; names them.
    """
    absent = [name for name in classes if not (parent / name).is_dir()]
    if absent and (all_needed or len(absent) == len(classes)):
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        raise UserError(f"{parent}: no folder {', '.join(absent[:5])}{more}, {len(classes)} are needed. {NOTE}")
    return [parent / name for name in classes if name not in absent]


def tree(parent: Path, classes: Mapping[str, int], all_needed: bool = True) -> Listing:
    """Every image of these class folders, by name; `classes` gives the class of each folder."""
    files, target = [], []
    for folder in folders(parent, classes, all_needed):
        images = images_in(folder)
        files += images
        target += [classes[folder.name]] * len(images)
    return Listing(files, np.array(target, np.int64))
