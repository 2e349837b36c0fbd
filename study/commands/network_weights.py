"""What `study models` does: list the networks with published weights, and get such weights onto disk."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from study import data, files
from study.data.download import ProgressCallback, find_or_download, ignore_progress
from study.errors import UserError
from study.models import published_weights
from study.models.published_weights import DEFAULT_WEIGHTS_NAME, PACKAGED_WEIGHTS, PublishedWeights

ARCHITECTURES_AS_MODEL_NAMES = ("resnet18", "resnet50", *PACKAGED_WEIGHTS)
"""Architectures that are themselves a `model.name`; the others are `torchvision` with an `architecture`."""


@dataclass(frozen=True)
class WeightsRow:
    """Published weights of an architecture, and whether their file is there; see `study.models.published_weights`."""

    architecture: str
    weights: str
    default: bool
    name: str
    url: str
    mib: float
    side: int
    least: int
    there: bool


@dataclass(frozen=True)
class PreparedWeights(WeightsRow):
    """Weights whose file is there: its path and digest, and the `model` section that begins from it."""

    path: str
    sha256: str
    model: Mapping[str, str]


def list_weights() -> list[WeightsRow]:
    """Return one row per architecture and published weights, the default ones first: their file and what they need."""
    return [
        _weights_row(published_weights.find_published_weights(architecture, name))
        for architecture in [*PACKAGED_WEIGHTS, *published_weights.list_architectures()]
        for name in published_weights.weights_names_of(architecture)
        if name == DEFAULT_WEIGHTS_NAME or not _are_default_weights(architecture, name)
    ]


def weights_table(rows: Iterable[WeightsRow]) -> str:
    """Format the rows of `list_weights` as a table for people, with the default weights alone."""
    lines = [f"{'network':<20} {'weights':<16} {'MiB':>6} {'pixels':>6} {'least':>6}  files"]
    for row in rows:
        if row.default:
            name, there = f"{row.architecture:<20} {row.weights:<16}", "there" if row.there else "missing"
            lines.append(f"{name} {row.mib:>6.0f} {row.side:>6} {row.least:>6}  {there}")
    folder = data.data_root() / published_weights.WEIGHTS_FOLDER
    get = f"files are looked for in {folder}; get one: study models prepare NETWORK"
    return "\n".join([*lines, "pixels: of the images that the weights were evaluated on; least: smallest side", get])


def prepare_weights(
    architecture: str, weights: str = DEFAULT_WEIGHTS_NAME, progress: ProgressCallback = ignore_progress
) -> PreparedWeights:
    """Get a file of published weights, check it, and return its facts with the `model` section that begins from it.

    Args:
        progress: called during the download.

    Raises:
        UserError: a name is unknown, or the file cannot be got or is wrong.
    """
    if architecture not in PACKAGED_WEIGHTS and (problem := published_weights.why_wrong_architecture(architecture)):
        raise UserError(f"torchvision {problem}")
    chosen = published_weights.find_published_weights(architecture, weights)
    file = find_or_download(chosen.source, progress)
    own = architecture in ARCHITECTURES_AS_MODEL_NAMES
    model = {"name": architecture} if own else {"name": "torchvision", "architecture": architecture}
    row, digest = _weights_row(chosen), files.sha256_of_file(file)
    return PreparedWeights(**vars(row), path=str(file), sha256=digest, model=model | {"weights": weights})


def prepared_weights_text(prepared: PreparedWeights) -> str:
    """Return the document of `prepare_weights` as text for people."""
    section = ", ".join(f"{key}: {value}" for key, value in prepared.model.items())
    file = f"{prepared.name}: {prepared.path}, sha256 {prepared.sha256}"
    sides = f"evaluated on images of {prepared.side} pixels, takes {prepared.least} and more"
    return f"{file}\n{sides}\nin a study file: model: {{{section}}}"


def _weights_row(found: PublishedWeights) -> WeightsRow:
    weights, there = found.name.partition(".")[2], found.source.path_or_none() is not None
    default, pixels = _are_default_weights(found.architecture, weights), (found.side, found.min_side)
    return WeightsRow(found.architecture, weights, default, found.name, found.url, found.mib, *pixels, there)


def _are_default_weights(architecture: str, name: str) -> bool:
    return published_weights.find_published_weights(architecture, DEFAULT_WEIGHTS_NAME).name.endswith(f".{name}")
