"""Tables of the frozen study. The expected numbers are worked out by hand."""

import pandas as pd
import pytest

from study.analysis.report.page import markdown_table
from study.analysis.tables import report_tables


def test_best_configurations(spec, frozen):
    found = report_tables.best_configurations(spec, frozen)
    assert list(found.index) == [1, 4, 0]
    assert list(found["stage"]) == ["search", "search", "baseline"]
    assert list(found["val/accuracy"]) == [0.70, 0.72, 0.56]
    assert list(found["mean"]) == pytest.approx([0.74, 0.70, 0.52])
    assert list(found["sd"]) == pytest.approx([0.04, 0.10, 0.02])
    assert list(found["n"]) == [3, 3, 3]
    assert set(found["seeds"]) == {(1, 2, 3)}
    assert list(found["method.alpha"]) == [0.01, 0.123456, 1.0]


def test_best_configurations_as_printed(spec, frozen):
    assert markdown_table(report_tables.printed_configurations(spec, frozen)).splitlines() == [
        "| trial | val/accuracy in the search | confirmed on fresh seeds | seeds | method.alpha | method.lambda "
        "| method.epsilon |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 1 | 70.0% | 74.0 ± 4.0% | 1, 2, 3 | 0.01 | 1.5 | 0.25 |",
        "| 4 | 72.0% | 70.0 ± 10.0% | 1, 2, 3 | 0.1235 | 1.5 | 0.25 |",
        "| 0 (baseline) | 56.0% | 52.0 ± 2.0% | 1, 2, 3 | 1.0 | 0.0 | 0.0 |",
    ]


def test_summary(spec, frozen):
    found = report_tables.summary(spec, frozen)
    test = found.loc["test/accuracy"]
    assert test[["baseline mean", "baseline sd", "best mean", "best sd", "difference"]].to_list() == pytest.approx(
        [0.50, 0.02, 0.70, 0.02, 0.20]
    )
    assert (test["baseline n"], test["baseline seeds"], test["best seeds"]) == (3, (1, 2, 3), (1, 2, 3))
    reach = 5.897842 * 0.02 / 3**0.5  # the best of 2: by the pairs of 3 seeds, which differ by 0.20, 0.22 and 0.24
    val = found.loc["val/accuracy"]
    assert val[["low", "high"]].to_list() == pytest.approx([0.22 - reach, 0.22 + reach], abs=1e-6)


def test_summary_as_printed(spec, frozen):
    assert markdown_table(report_tables.printed_summary(spec, frozen)).splitlines() == [
        "| metric | baseline | best (trial 1) | difference | 95% interval | seeds |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| val/accuracy | 52.0 ± 2.0% | 74.0 ± 4.0% | +22.0 points | +15.2 to +28.8 | 1, 2, 3 |",
        "| test/accuracy | 50.0 ± 2.0% | 70.0 ± 2.0% | +20.0 points | +14.4 to +25.6 | 1, 2, 3 |",
    ]


def test_trial_counts(frozen):
    expected = {"complete": [1, 2, 9], "pruned": [0, 1, 0], "failed": [0, 1, 0], "all": [1, 4, 9]}
    index = pd.Index(["baseline", "search", "confirm"], name="stage")
    pd.testing.assert_frame_equal(report_tables.trial_counts(frozen), pd.DataFrame(expected, index=index))
    assert "pruned" in report_tables.printed_counts(frozen).columns


def test_final_training_has_one_side(final_spec, writer):
    study = writer()
    for seed, value, test in ((0, 0.6, 0.5), (1, 0.8, 0.6)):
        study.trial("final", [0.1, value], seed=seed, params={}, test=test)
    rows = markdown_table(report_tables.printed_summary(final_spec, study.record())).splitlines()
    assert rows[0] == "| metric | final | seeds |"
    assert rows[2:] == ["| val/accuracy | 70.0 ± 14.1% | 0, 1 |", "| test/accuracy | 55.0 ± 7.1% | 0, 1 |"]


def test_one_seed_has_no_spread_and_no_interval(spec, writer):
    study = writer()
    study.trial("baseline", [0.5])
    study.trial("search", [0.7])
    rows = markdown_table(report_tables.printed_summary(spec, study.record())).splitlines()
    assert rows[2] == "| val/accuracy | 50.0% | 70.0% | +20.0 points | - | 0 |"
    assert rows[3] == "| test/accuracy | - | - | - | - | none |"
