"""The report's section on what each rule would have picked: no more is said than the numbers support."""

from study.analysis.report.page_formats import ReportPage, page_to_markdown
from study.analysis.report.selection_rules_section import selection_rules_section
from study.ranking import Results
from study.spec import load_study

ASKED = load_study("fairkl_digits", ["search.early_stopping={}", "search.confirm={top: 1, seeds: 3, rules: true}"])
NOT_ASKED = load_study("fairkl_digits", ["search.early_stopping={}", "search.confirm={top: 1, seeds: 3}"])


def write(study, fresh=(), balanced=(0.3, 0.6, 0.7)):
    """A baseline and two searched trials, the first best by accuracy; then the test values of each by seed."""
    for number, (accuracy, other) in enumerate(zip((0.3, 0.9, 0.8), balanced, strict=True)):
        also = {"val/balanced_accuracy": other, "val/worst_class_accuracy": 0.0}
        study.trial("search" if number else "baseline", [accuracy], also=also)
    for number, tests in fresh:
        for seed, test in enumerate(tests, 1):
            study.trial(
                "confirm" if number < 2 else "rule", [0.8 if number else 0.3], seed=seed, repeats=number, test=test
            )
    return study.record()


FAR = ((0, (0.40, 0.42, 0.44)), (1, (0.50, 0.52, 0.54)), (2, (0.60, 0.62, 0.64)))


def said(spec, record):
    section = selection_rules_section(Results(spec, record))
    assert section is not None
    return page_to_markdown(ReportPage("page", [], [section]))


def test_before_the_picks_have_run(writer):
    text = said(NOT_ASKED, write(writer()))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[0].startswith("| rule | needs | pick | in the search | rank |")
    assert rows[2].startswith("| accuracy (this study's) | nothing | 1 | 90.0% | 1 |")
    assert rows[3].startswith("| worst_class_accuracy | classes | 0 (baseline), first of 3 that tie | 0.0% | 3 |")
    assert rows[4].startswith("| balanced_accuracy | classes | 2 | 70.0% | 2 |")
    assert "This study chose by val/accuracy: trial 1. What other rules pick changes nothing." in text
    assert "`study confirm fairkl_digits --rules` runs each of them on fresh seeds and reads test for it." in text
    assert "differ" not in text


def test_how_far_the_picks_are_apart(writer):
    text = said(ASKED, write(writer(), FAR))
    assert "| rule | needs | pick | in the search | rank | on fresh seeds | test/accuracy | regret |" in text
    assert "| 80.0 ± 0.0% | 52.0 ± 2.0% (3 seeds) | 10.0 points |" in text
    assert (
        "The rules' picks differ by 20.0 points on test/accuracy over 3 fresh seeds, between 62.0 ± 2.0% (trial 2) and "
        "42.0 ± 2.0% (trial 0). The pick of this study's own rule, trial 1, is 10.0 points behind the best in "
        "test/accuracy."
    ) in text
    assert "is not known" not in text


def test_where_there_is_but_one_rule_there_is_no_table(writer):
    study = writer()
    study.trial("baseline", [0.3])
    study.trial("search", [0.9])
    assert selection_rules_section(Results(ASKED, study.record())) is None


def test_nothing_to_choose_from_has_no_section(writer, final_spec):
    study = writer()
    study.trial("search", [0.3])
    assert selection_rules_section(Results(ASKED, study.record())) is None
    final = writer()
    final.trial("final", [0.3])
    final.trial("final", [0.4], seed=1)
    assert selection_rules_section(Results(final_spec, final.record())) is None
