"""What `study models` does: list the networks with published weights, and get such weights onto disk."""

from collections.abc import Iterable, Mapping
from typing import Any

from study import data, files
from study.data.download import OnProgress, no_progress, obtain
from study.errors import UserError
from study.models import published

OF_THEIR_OWN = ("resnet18", "resnet50", *published.PACKAGED)
"""Architectures that are themselves a `model.name`; the others are `torchvision` with an `architecture`."""


def overview() -> list[dict[str, Any]]:
    """Return one row per architecture and published weights, the default ones first: their file and what they need."""
    return [
        _row(published.published(architecture, name), name == published.DEFAULT)
        for architecture in [*published.PACKAGED, *published.architectures()]
        for name in published.weights_of(architecture)
        if name == published.DEFAULT or not _is_default(architecture, name)
    ]


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Format the rows of `overview` as a table for people, with the default weights alone."""
    lines = [f"{'network':<20} {'weights':<16} {'MiB':>6} {'pixels':>6} {'least':>6}  files"]
    for row in rows:
        if row["default"]:
            there = "there" if row["there"] else "missing"
            lines.append(
                f"{row['architecture']:<20} {row['weights']:<16} {row['mib']:>6.0f} {row['side']:>6} {row['least']:>6}"
                f"  {there}"
            )
    get = f"files are looked for in {data.root() / published.FOLDER}; get one: study models prepare NETWORK"
    return "\n".join([*lines, "pixels: of the images that the weights were evaluated on; least: smallest side", get])


def prepare(architecture: str, weights: str = published.DEFAULT, progress: OnProgress = no_progress) -> dict[str, Any]:
    """Get a file of published weights, check it, and return its facts with the `model` section that begins from it.

    Args:
        progress: called during the download.

    Raises:
        UserError: a name is unknown, or the file cannot be got or is wrong.
    """
    if architecture not in published.PACKAGED and (problem := published.wrong_architecture(architecture)) is not None:
        raise UserError(f"{'timm' if architecture.startswith(published.TIMM) else 'torchvision'} {problem}")
    chosen = published.published(architecture, weights)
    file = obtain(chosen.source, progress)
    library, _, name = architecture.rpartition("/")
    own = architecture in OF_THEIR_OWN
    model = {"name": architecture} if own else {"name": library or "torchvision", "architecture": name}
    return {
        **_row(chosen, _is_default(architecture, chosen.name.partition(".")[2])),
        "path": str(file),
        "sha256": files.digest_of_file(file),
        "model": {**model, "weights": weights},
    }


def text(document: Mapping[str, Any]) -> str:
    """Return the document of `prepare` as text for people."""
    section = ", ".join(f"{key}: {value}" for key, value in document["model"].items())
    return "\n".join(
        [
            f"{document['name']}: {document['path']}, sha256 {document['sha256']}",
            f"evaluated on images of {document['side']} pixels, takes {document['least']} and more",
            f"in a study file: model: {{{section}}}",
        ]
    )


def _row(weights: published.Published, default: bool) -> dict[str, Any]:
    return {
        "architecture": weights.architecture,
        "weights": weights.name.partition(".")[2],
        "default": default,
        "name": weights.name,
        "url": weights.url,
        "mib": weights.mib,
        "side": weights.side,
        "least": weights.least,
        "there": weights.source.existing_path() is not None,
    }


def _is_default(architecture: str, name: str) -> bool:
    return published.published(architecture, published.DEFAULT).name.endswith(f".{name}")
