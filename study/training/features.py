"""Features of images by a frozen network: computed once on a machine, kept as rows, and read by every trial.

Each row is kept by its image's content and by the network as soon as its batch is computed: a process that was ended
resumes there, and a changed image changes its row alone. The rows of a data set are then one prepared data set,
memory-mapped.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from study import models
from study.data.cache import PREPARED_FOLDER, load_or_build_dataset, open_one_table_database
from study.data.dataset import Dataset, Facts, Split
from study.data.folds import select_fold
from study.data.source import writable_data_folder
from study.models import published_weights
from study.models.backbone_network import Backbone
from study.models.frozen_networks import underlying_network_section
from study.models.network_keys import n_columns_before_features
from study.training.device import DeviceSplit, keep_freed_memory

FEATURE_BATCH_IMAGES = 64
"""Images that go through the network at a time."""

COST_MEASUREMENT_IMAGES = 16
"""Images of the batch whose pace predicts the time."""

FEATURE_STORES_FOLDER = "features"
"""Folder of the files with the rows of each network, in the folder of prepared data."""

FeatureProgressCallback = Callable[[int, int], object]
"""Function that is told how many of all images have their features."""


FeaturesBySplit = Mapping[str, NDArray[np.float16]]
"""Rows (N, E + L + F) by split."""


def data_key_with_features(model: Mapping[str, Any], data: str) -> str:
    """Return the key under which trials with a `model` section find their data: `data`, the data set's own.

    Where the network is frozen, a longer text, equal for sections with the same features.
    """
    return f"{data} {json.dumps(underlying_network_section(model), sort_keys=True)}" if model.get("frozen") else data


def replace_inputs_with_frozen_features(
    model: Mapping[str, Any],
    dataset: Dataset,
    device: torch.device,
    on_progress: FeatureProgressCallback = lambda done, total: None,
    compute_elsewhere: Callable[[Dataset], FeaturesBySplit] | None = None,
) -> Dataset:
    """Replace the inputs of a data set by a frozen network's features, float16 (N, E + L + F).

    See `study.models.backbone_network.Backbone.feature_rows`. The data set is returned as it is where no network is
    frozen, or where it has these features already. The state of torch's generators stays as it is.

    Args:
        on_progress: is called while they are computed.
        compute_elsewhere: computes them where none are kept on this machine; None: this process does.

    Raises:
        UserError: the weights are not there or do not fit, or no folder for data can be written.
    """
    if not model.get("frozen") or dataset.facts.is_table:
        return dataset
    if dataset.folds is not None:  # the features of all samples are kept once, each fold is a view
        of_all = replace(select_fold(dataset, None), folds=None)
        whole = replace_inputs_with_frozen_features(model, of_all, device, on_progress, compute_elsewhere)
        folds = replace(dataset.folds, non_test_samples=whole.splits["train"])
        parts = {name: "train" if name == "val" else name for name in dataset.splits}
        splits = {name: replace(dataset.splits[name], inputs=whole.splits[parts[name]].inputs) for name in parts}
        facts = replace(whole.facts, splits=tuple(splits))
        named = f"{whole.fingerprint}, {dataset.fingerprint}"
        return replace(whole, facts=facts, splits=splits, stored_fingerprint=named, folds=folds)

    def build() -> dict[str, Split]:
        inputs = (
            compute_elsewhere(dataset)
            if compute_elsewhere
            else load_or_compute_features(model, dataset, device, on_progress)
        )
        return {name: replace(split, inputs=inputs[name], rows=None) for name, split in dataset.splits.items()}

    options = {"network": _feature_network_key(model, dataset.facts), "data": dataset.fingerprint}
    return load_or_build_dataset("features", options, models.facts_of_network_inputs(model, dataset.facts), build)


def load_or_compute_features(
    model: Mapping[str, Any], dataset: Dataset, device: torch.device, on_progress: FeatureProgressCallback
) -> FeaturesBySplit:
    """Read the features of a data set's images that are kept, and compute and keep the others.

    Arguments and errors as of `replace_inputs_with_frozen_features`.
    """
    facts, width = dataset.facts, models.facts_of_network_inputs(model, dataset.facts).shape[0]
    total, done, inputs = sum(map(len, dataset.splits.values())), 0, {}
    forked = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
    with forked, closing(_open_feature_store(_feature_network_key(model, facts))) as database:
        encoder: Backbone | None = None
        for name, split in dataset.splits.items():
            pictures = map(np.ascontiguousarray, split.sample_inputs)
            keys = [hashlib.blake2b(picture.data, digest_size=16).digest() for picture in pictures]
            found = inputs[name] = np.empty((len(keys), width), np.float16)
            lacking = [at for at, key in enumerate(keys) if not _read_stored_row(database, key, found[at])]
            done += len(keys) - len(lacking)
            on_progress(done, total)
            if lacking:
                encoder = encoder or build_frozen_backbone(model, facts, device)
                for places, rows in compute_feature_batches(encoder, split.sample_inputs, lacking, facts, device):
                    found[places] = rows
                    _store_rows(database, ((keys[at], found[at].tobytes()) for at in places))
                    done += len(places)
                    on_progress(done, total)
    return inputs


def _open_feature_store(network: Mapping[str, Any]) -> sqlite3.Connection:
    """Open the file with the rows of features by images' content; `network`: all that a row depends on besides."""
    name = hashlib.sha256(json.dumps(network, sort_keys=True).encode()).hexdigest()[:16]
    place: Path = writable_data_folder(os.path.join(PREPARED_FOLDER, FEATURE_STORES_FOLDER)) / f"{name}.sqlite"
    return open_one_table_database(place, "rows (picture BLOB PRIMARY KEY, row BLOB)", 60)


def _feature_network_key(model: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Return all that features depend on besides the images."""
    section, begun = underlying_network_section(model), models.describe_weights(model)
    assert begun is not None  # a frozen network has weights
    network = {**section, "beside": n_columns_before_features(section), "weights": begun["sha256"]}
    return network | {"mean": facts.mean, "deviation": facts.deviation}


def describe_feature_cost(model: Mapping[str, Any], facts: Facts, pictures: int, device: torch.device) -> str:
    """Describe, for `study plan`, the cost of computing the features of so many images here, if none are kept.

    The seconds are those of one batch of noise, scaled up; the megabytes those of the rows on disk, which are kept by
    image and as a data set.

    Raises:
        UserError: the weights are not there or do not fit.
    """
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.inference_mode():
        encoder = build_frozen_backbone(model, facts, device)
        noise = torch.randn(COST_MEASUREMENT_IMAGES, *facts.shape)
        batch = noise.to(device).contiguous(memory_format=torch.channels_last)
        width = encoder.feature_rows(batch).shape[1]
        began = time.perf_counter()
        encoder.feature_rows(batch).cpu()  # which waits for the device
        seconds = (time.perf_counter() - began) * pictures / COST_MEASUREMENT_IMAGES
    network = published_weights.architecture_name(model)
    network += " with the maps of its trained stages" if models.has_trained_stages(model) else ""
    return (
        f"features: {pictures} pictures go through {network} once, in about {seconds:.0f} s here at the pace of one "
        f"batch, and take {2 * 2 * width * pictures / 1e6:.2g} MB; those that are kept already do not"
    )


def build_frozen_backbone(model: Mapping[str, Any], facts: Facts, device: torch.device) -> Backbone:
    """Build the frozen network of a `model` section with its weights.

    Raises:
        UserError: the weights are not there or do not fit.
    """
    if device.type == "cpu":
        keep_freed_memory()  # each batch needs the same large tensors
    encoder = models.build_encoder_without_head(underlying_network_section(model), facts).to(device)
    encoder = encoder.to(memory_format=torch.channels_last)
    assert isinstance(encoder, Backbone)  # no other network has the key
    return encoder.eval()


def compute_feature_batches(
    encoder: Backbone, pictures: NDArray[np.generic], places: Sequence[int], facts: Facts, device: torch.device
) -> Iterator[tuple[Sequence[int], NDArray[np.float16]]]:
    """Compute the rows (B, M + E + L + F) of the pictures (N, C, H, W) at these places, none infinite; yield batches.

    Args:
        facts: of the pictures.
    """
    resident = DeviceSplit(Split(pictures, np.zeros(len(pictures), np.int64)), facts, torch.device("cpu"))
    most = torch.finfo(torch.float16).max
    for start in range(0, len(places), FEATURE_BATCH_IMAGES):
        batch = places[start : start + FEATURE_BATCH_IMAGES]
        with torch.inference_mode():
            images = resident.normalise_pixels(resident.pixels_of_samples(torch.tensor(batch))).to(device)
            rows = encoder.feature_rows(images.contiguous(memory_format=torch.channels_last))
        yield batch, rows.float().clamp(-most, most).half().cpu().numpy()


def _read_stored_row(database: sqlite3.Connection, key: bytes, row: NDArray[np.float16]) -> bool:
    """Fill in a row that is kept; return whether it is."""
    found = database.execute("SELECT row FROM rows WHERE picture = ?", (key,)).fetchone()
    if found is None or len(found[0]) != row.nbytes:
        return False
    row[:] = np.frombuffer(found[0], np.float16)
    return True


def _store_rows(database: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes]]) -> None:
    with database:
        database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", rows)
