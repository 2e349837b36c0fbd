"""Every sentence that says on which seeds a number stands, for studies with and without replicates and fresh seeds."""

import pytest

from study.analysis.report.caveats import caveat_statements
from study.analysis.report.report_page import build_report_page
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.json_documents import join_statements
from study.spec import StudySpec, load_study


@pytest.fixture(scope="module")
def replicated() -> StudySpec:
    """Three seeds for each configuration, none of them fresh."""
    return load_study(
        "quickstart",
        ["train.epochs=4", "search.early_stopping.grace=1", "search.replicates=3", "search.confirm={top: 0}"],
    )


@pytest.fixture(scope="module")
def record(writer) -> StudyRecord:
    """A baseline and two configurations, on seeds 0, 1 and 2."""
    study = writer()
    for stage, alpha, values in (("baseline", 1.0, (0.5, 0.52, 0.54)), ("search", 0.1, (0.6, 0.65, 0.7)),
                                 ("search", 0.2, (0.5, 0.55, 0.57))):  # fmt: skip
        first = study.trial(stage, [0.3, values[0]], params={"method.alpha": alpha})
        for seed, value in enumerate(values[1:], 1):
            study.trial("replicate", [0.3, value], seed=seed, repeats=first, params={"method.alpha": alpha})
    return study.record()


def said(spec: StudySpec, record: StudyRecord) -> str:
    """All of the report, with the caption of the learning curves."""
    page = build_report_page(Results(spec, record), ("learning_curves",))
    return f"{page} {join_statements(caveat_statements(Results(spec, record)))}"


def test_replicates_are_not_called_fresh_or_one_seed(replicated, record):
    text = said(replicated, record)
    assert "The seeds are fresh" not in text
    assert "one seed" not in text
    assert "The search saw these seeds and chose by them: by the luck of that choice" in text
    assert "widened because the best was chosen among 2 configurations by the same trials" in text


def test_fresh_seeds_are_said_to_be_fresh(spec, frozen):
    text = said(spec, frozen)
    assert "The seeds are fresh" in text
    assert "chosen among 2 configurations by the same trials" in text


def test_one_seed_that_chose_is_said_to_have_chosen(spec, writer):
    study = writer()
    study.trial("baseline", [0.5])
    study.trial("search", [0.7])
    text = said(spec, study.record())
    assert "The search saw this seed and chose by it" in text
    assert "fresh: the trial" not in text
