"""Where configurations ran on folds, sentences speak of folds, and of the samples of all folds together."""

import pytest
from course import Course
from folded import Judges, folded
from told_studies import only, statements

from study.analysis.figures import FIGURES
from study.analysis.report.caveats import Gain
from study.analysis.report.page import to_markdown
from study.analysis.report.sections import report_page
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.difference import side_of
from study.spec import StudySpec


@pytest.fixture(scope="module")
def confirmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudySpec, StudyRecord]:
    spec = folded()
    judges = Judges(spec)
    path = tmp_path_factory.mktemp("folds") / "ledger.jsonl"
    return spec, Course(path, spec, joins=judges.joins, predict=judges).play().record


def test_conclusions_name_folds_and_give_the_value_of_all_samples(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    results = Results(spec, record)
    gain = only(Gain, results)
    assert gain.best.spread("val/accuracy").mean == results.candidates[0].joined.metrics["val/accuracy"]
    assert (gain.best.seeds("val/accuracy"), gain.best.over) == ([1, 2, 3], "folds and seeds")
    assert not any("over seeds" in str(one) for one in statements(results))


def test_the_difference_of_two_is_that_of_the_same_samples(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    reference, best = Results(spec, record).sides
    gain = best.against(reference, spec.metric)
    ours, theirs = best.joined, reference.joined
    assert gain.value == pytest.approx(ours.metrics[spec.metric] - theirs.metrics[spec.metric])
    assert gain.paired
    low, high = gain.interval
    assert low < gain.value < high
    assert side_of(spec, Results(spec, record).baseline).over == "folds and seeds"
    # two independent networks: the error is about that of two binomials
    assert gain.error == pytest.approx((2 * 0.25 / 1438) ** 0.5, rel=0.3)


def test_no_section_of_the_report_speaks_of_fresh_seeds(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    text = to_markdown(report_page(Results(*confirmed), FIGURES))
    assert "confirmed on all folds" in text
    assert "fresh seeds" not in text
