"""What a search bought. The expected numbers are worked out by hand."""

import math

import pandas as pd
import pytest
from helpers import Told, quickstart, record

from study.analysis.statistics.search_efficiency import best_so_far, budget


def test_best_so_far(spec, frozen):
    """Every trial starts 10 s after the end of the one before it and runs 2 s per epoch."""
    found = best_so_far(spec, frozen)
    expected = {
        "seconds": [8.0 + 10 + 8, 8.0 + 10 + 8 + 10 + 2 + 10 + 10 + 8],
        "busy_seconds": [16.0, 16.0 + 2 + 8],
        "epochs": [8, 13],
        "value": [0.70, 0.72],
        "best": [0.70, 0.72],
    }
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected, index=pd.Index([1, 4], name="trial")))


def test_the_best_never_becomes_worse_and_keeps_the_constraints():
    odds = quickstart("search.metric=val/equalized_odds")
    values = [0.3, 0.4, 0.1, 0.2]
    found = best_so_far(odds, record(*(Told("search", [value], metric="val/equalized_odds") for value in values)))
    assert list(found["best"]) == [0.3, 0.3, 0.1, 0.1]
    limited = quickstart("search.constraints=['val/accuracy <= 0.5']")
    found = best_so_far(limited, record(*(Told("search", [value]) for value in (0.6, 0.3, 0.7, 0.4))))
    assert math.isnan(found["best"].iloc[0])
    assert list(found["best"])[1:] == [0.3, 0.3, 0.4]


def test_a_configuration_of_several_seeds_is_there_when_the_last_has_ended():
    spec = quickstart("search.replicates=2")
    trials = [Told("search", [0.8]), Told("search", [0.5]), Told("replicate", [0.6], seed=1, repeats=0)]
    found = best_so_far(spec, record(*trials, Told("replicate", [0.7], seed=1, repeats=1)))
    assert list(found["value"]) == [pytest.approx(0.7), pytest.approx(0.6)]
    assert list(found["epochs"]) == [3, 4]


def test_budget(spec, frozen):
    found = budget(spec, frozen)
    assert found.loc["complete"].to_list() == [3, 12, 12, 0.0, 24.0, 24.0]
    assert found.loc["pruned"].to_list() == [1, 1, 4, 0.75, 2.0, 8.0]
    assert found.loc["all"].to_list() == [4, 13, 16, pytest.approx(3 / 16), 26.0, 32.0]


def test_a_study_without_trials(spec, writer):
    empty = writer().record()
    assert best_so_far(spec, empty).empty
    assert budget(spec, empty).loc["all", "trials"] == 0
