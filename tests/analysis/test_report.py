"""What the report says of a fixed set of trials, worked out by hand, and of studies that are not whole."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st

from study.analysis import epochs_frame, trials_frame, write_report
from study.analysis.compare import difference
from study.analysis.message import caveats, headline
from study.analysis.tables import best_configurations, printed_configurations, summary, trial_counts
from study.errors import UserError
from study.ranking import Spread
from study.record import StudyRecord

SPEC = quickstart("train.epochs=2", "search.early_stopping.grace=1", "search.confirm.top=1", "search.confirm.seeds=2")
BASELINE = {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}
GOOD = {"method.alpha": 0.01, "method.lambda": 1.5, "method.epsilon": 0.25}
OTHER = {"method.alpha": 0.5, "method.lambda": 0.5, "method.epsilon": 0.0}


def whole() -> StudyRecord:
    """A baseline, three searched trials (one stopped, one failed), both configurations confirmed and tested."""
    return record(
        Told("baseline", [0.4, 0.5], params=BASELINE),
        Told("search", [0.6, 0.7], params=GOOD),
        Told("search", [0.2], state="pruned", params=OTHER),
        Told("search", [], state="failed", params=OTHER),
        Told("confirm", [0.3, 0.50], params=BASELINE, seed=1, repeats=0, tested={"test/accuracy": 0.48}),
        Told("confirm", [0.3, 0.54], params=BASELINE, seed=2, repeats=0, tested={"test/accuracy": 0.52}),
        Told("confirm", [0.5, 0.70], params=GOOD, seed=1, repeats=1, tested={"test/accuracy": 0.69}),
        Told("confirm", [0.5, 0.78], params=GOOD, seed=2, repeats=1, tested={"test/accuracy": 0.75}),
    )


def test_one_row_per_trial() -> None:
    frame = trials_frame(SPEC, whole())
    assert list(frame.index) == list(range(8))
    assert list(frame["state"]) == ["complete", "complete", "pruned", "failed", *["complete"] * 4]
    assert list(frame["epochs"]) == [2, 2, 1, 0, 2, 2, 2, 2]
    assert list(frame["val/accuracy"].fillna(-1)) == [0.5, 0.7, 0.2, -1, 0.50, 0.54, 0.70, 0.78]
    assert list(frame["method.lambda"]) == [0.0, 1.5, 0.5, 0.5, 0.0, 0.0, 1.5, 1.5]
    assert list(frame["repeats"].fillna(-1)) == [-1, -1, -1, -1, 0, 0, 1, 1]


def test_one_row_per_epoch() -> None:
    frame = epochs_frame(whole())
    assert len(frame) == 13
    assert list(frame.loc[frame["trial"] == 1, "val/accuracy"]) == [0.6, 0.7]


def test_summary_is_that_of_the_fresh_seeds() -> None:
    """Means 0.52 and 0.74; sample deviations 0.02 * sqrt 2 and 0.04 * sqrt 2; Welch's interval with 1.4706 freedom."""
    row = summary(SPEC, whole()).loc["val/accuracy"]
    assert row["baseline mean"] == pytest.approx(0.52)
    assert row["baseline sd"] == pytest.approx(0.02 * math.sqrt(2))
    assert row["best mean"] == pytest.approx(0.74)
    assert row["best sd"] == pytest.approx(0.04 * math.sqrt(2))
    assert (row["best n"], row["best seeds"]) == (2, (1, 2))
    assert row["difference"] == pytest.approx(0.22)
    # variance of the difference 0.0004 + 0.0016 = 0.002; freedom 0.002^2 / (0.0004^2 + 0.0016^2) = 25/17;
    # the 97.5% point of Student's t at 25/17 is 6.1864
    assert row["high"] - row["difference"] == pytest.approx(6.1864 * math.sqrt(0.002), rel=1e-3)


def test_best_configurations_show_search_and_confirmation() -> None:
    frame = best_configurations(SPEC, whole())
    assert list(frame.index) == [1, 0]
    assert list(frame["val/accuracy"]) == [0.7, 0.5]
    assert frame.loc[1, "mean"] == pytest.approx(0.74)
    assert list(frame["n"]) == [2, 2]
    printed = printed_configurations(SPEC, whole())
    assert printed.loc[0, "confirmed on fresh seeds"] == "74.0 ± 5.7%"
    assert printed.loc[1, "trial"] == "0 (baseline)"


def test_counts_by_stage_and_state() -> None:
    counts = trial_counts(whole())
    assert counts.loc["search"].to_dict() == {"complete": 1, "pruned": 1, "failed": 1, "all": 3}
    assert counts["all"].sum() == 8


def test_message_says_what_was_gained_and_how_sure() -> None:
    lines = list(headline(SPEC, whole()))
    assert "74.0 ± 5.7% val/accuracy and 72.0 ± 4.2% test/accuracy (2 seeds (1, 2))" in lines[0]
    assert "gained 22.0 points; but the 95% interval" in lines[2]
    assert "more seeds are needed" in lines[2]


def test_message_when_nothing_was_gained() -> None:
    lost = record(Told("baseline", [0.4, 0.8], params=BASELINE), Told("search", [0.6, 0.7], params=GOOD))
    assert "the search lost 10.0 points; one seed each" in " ".join(headline(SPEC, lost))


def test_what_is_missing_is_said() -> None:
    text = " ".join(caveats(SPEC, whole()))
    for expected in ("1 trial failed", "Stopped early: 1 trial of the search", "read for trial 0 and trial 1 only"):
        assert expected in text


PARTIAL = {
    "nothing": record(),
    "only waiting": record(Told("baseline", [], state="waiting", params=BASELINE)),
    "only failed": record(Told("baseline", [], state="failed", params=BASELINE)),
    "one trial": record(Told("search", [0.5, 0.6], params=GOOD)),
    "baseline alone": record(Told("baseline", [0.5, 0.6], params=BASELINE)),
    "only stopped": record(Told("search", [0.5], state="pruned", params=GOOD)),
    "no number": record(Told("search", [None, None], state="failed", params=GOOD)),
    "confirming": record(
        Told("baseline", [0.4, 0.5], params=BASELINE),
        Told("search", [0.6, 0.7], params=GOOD),
        Told("confirm", [0.3], state="running", params=BASELINE, seed=1, repeats=0),
    ),
    "final": record(
        Told("final", [0.6, 0.7], seed=0, tested={"test/accuracy": 0.7}), Told("final", [0.5], state="running", seed=1)
    ),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_study_that_is_not_whole_has_a_report(name: str, tmp_path: Path) -> None:
    spec = quickstart("train.epochs=2", "search.early_stopping.grace=1", *(["final_seeds=[0,1]"] * (name == "final")))
    page = write_report(spec, PARTIAL[name], tmp_path)
    assert "What came out" in page.read_text()
    assert (tmp_path / "report.md").read_text().startswith("# Study quickstart")


def test_the_page_needs_no_network_and_trusts_nobody(tmp_path: Path) -> None:
    """Figures are inlined; a failure's text, which is the user's, is shown as text."""
    trials = whole()
    trials.trials[3].reason = "<script>alert(1)</script>"
    html = write_report(SPEC, trials, tmp_path).read_text()
    assert not re.search(r"(src|href)=.?(https?:|//)", html)
    assert html.count('<img src="data:image/png;base64,') == 4
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<script" not in (tmp_path / "report.md").read_text()


def test_the_same_trials_give_the_same_files(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_report(SPEC, whole(), tmp_path / folder)
    names = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert {path.name for path in names} >= {"report.md", "report.html", "trials.csv", "learning_curves.png"}
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_folder_that_cannot_be_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="the report cannot be written there"):
        write_report(SPEC, whole(), tmp_path / "file" / "report")


def test_csv_is_read_back(tmp_path: Path) -> None:
    write_report(SPEC, whole(), tmp_path)
    frame = pd.read_csv(tmp_path / "trials.csv", index_col="trial")
    assert list(frame["method.alpha"]) == list(trials_frame(SPEC, whole())["method.alpha"])


spreads = st.builds(Spread, st.floats(0, 1), st.none() | st.floats(0, 0.5), st.integers(2, 9))


@given(spreads, spreads)
def test_a_difference_is_antisymmetric_and_in_its_interval(one: Spread, other: Spread) -> None:
    there, back = difference(one, other), difference(other, one)
    assert there is not None
    assert back is not None
    assert there.value == -back.value
    assert (there.interval is None) == (one.deviation is None or other.deviation is None)
    if there.interval is not None and back.interval is not None:
        assert there.interval[0] <= there.value <= there.interval[1]
        assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]), rel=1e-6, abs=1e-12)
