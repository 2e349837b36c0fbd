"""What a ledger says of a study's data sets."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import quickstart

from study import data
from study.data import Dataset, Facts, Split, summarise_datasets
from study.home.events import entry_to_event

FACTS = Facts(2, None, (1, 2, 2), title="Squares")


def small() -> Dataset:
    parts = {name: Split(np.zeros((n, 1, 2, 2), np.uint8), np.zeros(n, np.int64)) for name, n in SIZES.items()}
    return Dataset(FACTS, parts)


SIZES = {"train": 5, "val": 3, "test": 2}


@pytest.mark.parametrize(
    ("section", "sources"),
    [
        ({"name": "biased_digits"}, []),
        ({"name": "image_folder", "path": "photos"}, ["photos"]),
        ({"name": "compas"}, [source.url for source in data.sources({"name": "compas"})]),
    ],
)
def test_it_names_each_split_and_where_the_data_come_from(section: dict[str, str], sources: list[str]) -> None:
    dataset = small()
    told = summarise_datasets({data.section_key(section): dataset})
    expected = {"title": "Squares", "digest": dataset.fingerprint, "shape": [1, 2, 2], "rows": SIZES}
    assert told == {data.section_key(section): {**expected, "sources": sources}}
    event = {"event": "opened", "time": 1.0, "owner": "ada", "datasets": told}
    assert entry_to_event(event)
    for wrong in (["squares"], {"k": "squares"}, {"k": {**expected, "sources": sources, "rows": {"train": -1}}}):
        with pytest.raises(ValueError, match="its datasets is"):
            entry_to_event({**event, "datasets": wrong})


def test_without_a_title_it_has_the_name_that_the_study_file_gives() -> None:
    section = quickstart().trial_data_sections[0]
    untitled = replace(small(), facts=replace(FACTS, title=""))
    assert (
        summarise_datasets({data.section_key(section): untitled})[data.section_key(section)]["title"] == "biased_digits"
    )
