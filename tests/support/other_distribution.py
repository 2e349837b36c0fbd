"""A distribution of somebody else, with a data set, a network and a loss of its own, some of them not right."""

from pathlib import Path

DATA = '''"""stripes: images of one row each, light or dark, some with a bright edge."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from study.data import Dataset, Facts, Split
from study.knobs import Range


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section, whose owner says nothing of them."""

    size: Annotated[int, Range(low=4)] = 8


def describe(options):
    """Two classes, two biases."""
    return Facts(classes=2, bias_classes=2, shape=(3, options.size, options.size), splits=("train", "val"))


def load(options):
    """Drawn."""
    number = np.arange(48)
    shape = (48, 3, options.size, options.size)
    images = np.random.default_rng(0).integers(0, 99, shape, dtype=np.uint8) + (number % 2 * 120)[:, None, None, None]
    split = Split(images.astype(np.uint8), number % 2, number // 2 % 2)
    return Dataset(describe(options), {"train": split, "val": split})
'''

MODEL = '''"""average: the mean of each channel, and a layer."""

from dataclasses import dataclass

from torch import nn

from study.models import Encoder


@dataclass(frozen=True)
class Options:
    """It has no keys."""


class Average(Encoder):
    features = 4

    def __init__(self, channels):
        super().__init__()
        self.layer = nn.Linear(channels, 4)

    def forward(self, images):
        return self.layer(images.mean((2, 3)))


def why_unsuited(options, facts):
    """Images."""
    return "takes images" if facts.is_table else None


def build(options, facts):
    """The network."""
    return Average(facts.shape[0])
'''

METHOD = '''"""A loss of our own, with all that a contrastive loss can have added."""

from torch import Tensor

from study.losses.loss_catalogue import loss
from study.losses.hyperparameter_types import Temperature
from study.losses.pairs import cosine_matrix, log_sum_exp
from study.methods.contrastive import build, knobs, needs

__all__ = ["NAMES", "build", "knobs", "needs"]

NAMES = ["spread"]


@loss
def spread(
    views: Tensor,
    *,
    similarity: Tensor | None = None,
    temperature: Temperature = 0.1,
) -> Tensor:
    """Spread: all rows away from each other."""
    return log_sum_exp(cosine_matrix(views, similarity), 1 / temperature).mean()
'''

ENTRIES = """
[study.data]
stripes = others.stripes
biased_digits = others.stripes
torn = others.torn

[study.models]
average = others.average

[study.methods]
spread = others.spread
unlike = others.spread
half = others.half
"""


def install(site: Path) -> None:
    """Put it into a folder, as an installer puts one into `site-packages`."""
    package, told = site / "others", site / "stripes_and_more-0.3.dist-info"
    package.mkdir(parents=True)
    told.mkdir()
    (package / "__init__.py").touch()
    (package / "stripes.py").write_text(DATA)
    (package / "average.py").write_text(MODEL)
    (package / "spread.py").write_text(METHOD)
    (package / "torn.py").write_text("raise RuntimeError('torn in two')\n")
    (package / "half.py").write_text("NAMES = ['half']\n")
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: stripes-and-more\nVersion: 0.3\n")
    (told / "entry_points.txt").write_text(ENTRIES)
