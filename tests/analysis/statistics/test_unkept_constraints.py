"""Where nothing keeps the limits of a study, that is said, and to train it is not proposed."""

from pathlib import Path

import pytest
from helpers import Told, append_event, quickstart, write_ledger
from told_studies import LIMITED, ODDS, WHOLE, broken_anew, kept_in_search_alone, only, over, said

from study.analysis.statistics.next_step import next_steps
from study.analysis.statistics.unkept_constraints import NoConfigurationKeepsConstraints
from study.driver.session import RunEnd, run_end_lines
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results

TWO = quickstart(*WHOLE, f"search.constraints=[{ODDS} <= 0.1, val/accuracy >= 0.8]", "search.confirm={top: 0}")
PAIRS = [Told("baseline", [0.5], further={ODDS: 0.3}), Told("search", [0.75], further={ODDS: 0.2})]


def test_of_several_limits_those_are_named_that_the_nearest_misses() -> None:
    assert str(only(NoConfigurationKeepsConstraints, Results(TWO, over(*PAIRS)))) == (
        f"No configuration keeps {ODDS} <= 0.1 and val/accuracy >= 0.8; the nearest, trial 1, misses "
        f"{ODDS} <= 0.1 by 0.1 (it has 0.200) and val/accuracy >= 0.8 by 0.05 (it has 75.0%)."
    )


def test_nothing_is_said_where_one_keeps_them() -> None:
    kept = Told("search", [0.9], further={ODDS: 0.05}, params={"method.alpha": 0.5})
    assert not said(NoConfigurationKeepsConstraints, Results(TWO, over(*PAIRS, kept)))
    assert not said(NoConfigurationKeepsConstraints, Results(LIMITED, broken_anew()))


def test_those_that_kept_them_in_the_search_alone_are_confirmed_first() -> None:
    results = Results(LIMITED, kept_in_search_alone())
    assert not said(NoConfigurationKeepsConstraints, results)
    assert next_steps(results)[0].kind == "confirm"


def test_limits_that_were_kept_in_the_search_and_break_on_fresh_seeds_are_said_to_break_there() -> None:
    def told(stage: str, gap: float, seed: int = 0, repeats: int | None = None) -> Told:
        return Told(stage, [0.7], seed=seed, repeats=repeats, further={ODDS: gap})

    again = [told("confirm", gap, seed, repeats) for repeats, gap in ((0, 0.3), (1, 0.2)) for seed in (1, 2)]
    results = Results(LIMITED, over(told("baseline", 0.05), told("search", 0.04), *again))
    assert "keeps val/equalized_odds <= 0.1 on fresh seeds; the nearest, trial 1, has 0.200." in str(
        only(NoConfigurationKeepsConstraints, results)
    )


def test_the_end_of_a_run_proposes_to_loosen_the_limit_and_not_to_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    folder = Home(tmp_path).create_study(TWO)
    write_ledger(folder.ledger_file, *PAIRS)
    append_event(folder.ledger_file, "closed", state="complete")
    lines = run_end_lines(RunEnd(folder, TWO, StudyRecord.load(folder.ledger_file), None))
    assert next(line for line in lines if line.startswith("result ")).startswith("result    No configuration keeps")
    assert "Loosen the limits (search.constraints)" in " ".join(" ".join(lines).split())
    assert not [line for line in lines if "study train" in line]
