"""Tables of the frozen study. The expected numbers are worked out by hand."""

from study.analysis.report.page import markdown_table
from study.analysis.tables import report_tables


def test_best_configurations_as_printed(spec, frozen):
    assert markdown_table(report_tables.printed_configurations(spec, frozen)).splitlines() == [
        "| trial | val/accuracy in the search | confirmed on fresh seeds | seeds | method.alpha | method.lambda "
        "| method.epsilon |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 1 | 70.0% | 74.0 ± 4.0% | 1, 2, 3 | 0.01 | 1.5 | 0.25 |",
        "| 4 | 72.0% | 70.0 ± 10.0% | 1, 2, 3 | 0.1235 | 1.5 | 0.25 |",
        "| 0 (baseline) | 56.0% | 52.0 ± 2.0% | 1, 2, 3 | 1.0 | 0.0 | 0.0 |",
    ]


def test_summary_as_printed(spec, frozen):
    assert markdown_table(report_tables.printed_summary(spec, frozen)).splitlines() == [
        "| metric | baseline | best (trial 1) | difference | 95% interval | seeds |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| val/accuracy | 52.0 ± 2.0% | 74.0 ± 4.0% | +22.0 points | +15.2 to +28.8 | 1, 2, 3 |",
        "| test/accuracy | 50.0 ± 2.0% | 70.0 ± 2.0% | +20.0 points | +14.4 to +25.6 | 1, 2, 3 |",
    ]


def test_trial_counts(frozen):
    assert markdown_table(report_tables.printed_counts(frozen)).splitlines()[2:] == [
        "| baseline | 1 | 0 | 0 | 1 |",
        "| search | 2 | 1 | 1 | 4 |",
        "| confirm | 9 | 0 | 0 | 9 |",
    ]


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
