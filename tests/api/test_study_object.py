"""A study as a Python object: its tables, figures and files are those of the commands."""

import doctest
from pathlib import Path

import plotly.graph_objects as go
import pytest
from helpers import Told, append_event, quickstart, write_ledger
from matplotlib.figure import Figure

import study
from study import errors
from study.analysis import ablation, sensitivity, trials_frame
from study.api import run_study, study_object
from study.home.folder import Home
from study.ranking import Results
from study.spec import load_study


def params(alpha: float) -> dict[str, float]:
    return {"method.alpha": alpha, "method.lambda": 1.0, "method.epsilon": 0.25}


TRIALS = (
    Told("baseline", [0.3, 0.5], params={"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}),
    *(Told("search", [0.4, 0.6 + alpha], params=params(alpha)) for alpha in (0.01, 0.02, 0.05)),
    Told("search", [0.1], "pruned", params(0.09)),
    *(Told("confirm", [0.4, value], params=params(0.05), seed=seed, repeats=3) for seed, value in ((1, 0.6), (2, 0.7))),
)

ALPHAS = (0.01, 0.02, 0.03, 0.04, 0.05)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> study.Study:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    folder = Home.locate().create(quickstart("name=mine", "search.confirm.top=1", "search.confirm.seeds=2"))
    write_ledger(folder.ledger_file, *TRIALS)
    return study.load("mine")


def test_a_study_is_found_by_its_name_and_among_all(mine: study.Study) -> None:
    assert [one.name for one in study.studies()] == ["mine"]
    with pytest.raises(study.UserError, match=r"meine: no such study .* Did you mean 'mine'"):
        study.load("meine")


def test_the_documented_examples_are_right(mine: study.Study) -> None:
    tried = [doctest.testmod(module, optionflags=doctest.ELLIPSIS) for module in (study_object, errors)]
    assert [(one.failed, one.attempted) for one in tried] == [(0, 8), (0, 2)]


@pytest.mark.slow
def test_the_documented_example_of_run_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    (example,) = doctest.DocTestFinder().find(run_study.run, globs={})
    assert doctest.DocTestRunner().run(example).failed == 0
    assert study.load("mine").state == "complete"


def test_every_public_name_has_an_example() -> None:
    lacking = [name for name in study.__all__ if "Example:" not in (getattr(study, name).__doc__ or "")]
    assert lacking == []


def test_tables_are_those_of_the_analysis(mine: study.Study) -> None:
    frame = trials_frame(Results(mine.spec, mine.record))
    assert mine.trials.equals(frame)
    assert len(mine.epochs) == 13
    assert mine.table("method.alpha").equals(ablation(frame, "method.alpha", "val/accuracy"))
    two = mine.table("method.alpha", "method.epsilon", bins=None)
    assert two.equals(sensitivity(frame, "method.alpha", "method.epsilon", "val/accuracy", None))
    assert set(mine.picks["trial"]) == {3}


def test_curves_are_by_epoch_and_trial(mine: study.Study) -> None:
    curves = mine.curves()
    assert curves.shape == (2, 7)
    assert curves[3].tolist() == [0.4, 0.65]
    assert curves[4].isna().tolist() == [False, True]
    assert mine.curves("train/loss").loc[1].eq(1.0).all()
    with pytest.raises(study.UserError, match=r"'val/acuracy': .*Did you mean 'val/accuracy'"):
        mine.curves("val/acuracy")


def test_the_best_and_the_baseline_with_their_seeds(mine: study.Study) -> None:
    best, baseline = mine.best, mine.baseline
    assert best is not None
    assert baseline is not None
    assert (best.trial, best.params, best.seeds) == (3, params(0.05), (1, 2))
    assert best.metrics["val/accuracy"].mean == pytest.approx(0.65)
    assert (baseline.trial, baseline.seeds) == (0, (0,))


def test_a_failed_study_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    folder = Home.locate().create(quickstart("name=mine"))
    write_ledger(folder.ledger_file, Told("baseline", [], "running", params=dict(TRIALS[0].params)))
    append_event(folder.ledger_file, "ended", trial=0, state="failed", kind="BUG", reason="ValueError: singular")
    append_event(folder.ledger_file, "closed", state="failed")
    assert str(study.load("mine")).endswith("trial 0 failed: BUG: ValueError: singular")


def test_it_is_shown_as_study_status_shows_it_and_read_anew_when_asked(mine: study.Study) -> None:
    assert str(mine).startswith("study mine, of ada: ")
    assert repr([mine]) == f"[Study('mine', {mine.state})]"
    before = len(mine.trials)
    write_ledger(mine.folder.ledger_file)
    assert mine.refresh() is mine
    assert len(mine.trials) == before
    assert mine.state == "interrupted"


def test_figures_by_name_ours_and_optunas(mine: study.Study) -> None:
    assert mine.figures == ("seeds", "learning_curves")
    assert isinstance(mine.figure("learning_curves"), Figure)
    with pytest.raises(study.UserError, match=r"'slice': .*: 3 trials of the search have a value, 5 are needed"):
        mine.figure("slice")
    folder = Home.locate().create(quickstart("name=larger", "search.early_stopping={}"))
    write_ledger(folder.ledger_file, *(Told("search", [0.4, 0.6 + alpha], params=params(alpha)) for alpha in ALPHAS))
    larger = study.load("larger")
    assert larger.figures == ("learning_curves", "slice", "parallel_coordinate", "optimization_history")
    assert isinstance(larger.figure("optimization_history"), go.Figure)
    with pytest.raises(study.UserError, match=r"'curves': no such figure\. .*There are: seeds"):
        mine.figure("curves")
    with pytest.raises(study.UserError, match=r"'importance': there is nothing to draw in mine.*: .*needed"):
        mine.figure("importance")


@pytest.mark.slow
def test_an_exported_configuration_loads(mine: study.Study, tmp_path: Path) -> None:
    (file,) = mine.export(tmp_path / "best.yaml", trial=2)
    assert load_study(str(file)).base["method"]["alpha"] == 0.02
    assert mine.report(tmp_path / "report") == tmp_path / "report" / "report.html"


def test_what_cannot_be_used_is_told_before_anything_starts(mine: study.Study) -> None:
    with pytest.raises(study.UserError, match=r"serch\.trials"):
        study.run("quickstart", set={"serch.trials": 3})
    with pytest.raises(study.UserError, match="mine: exists already"):
        study.run("quickstart", name="mine", quiet=True)
    with pytest.raises(study.UserError, match="mine: is a search, models come from final trainings"):
        mine.model()
    assert [one.name for one in study.studies()] == ["mine"]


def test_a_number_of_seeds_is_no_list_of_them(mine: study.Study) -> None:
    with pytest.raises(study.UserError, match="seeds=3"):
        mine.train(seeds=3)  # type: ignore[arg-type]


def test_errors_name_arguments(mine: study.Study, tmp_path: Path) -> None:
    with pytest.raises(study.UserError, match=r"50 asked for \(top\)"):
        mine.export(tmp_path / "best.yaml", top=50)
    with pytest.raises(study.UserError, match=r"^trial=99: mine has 7 trials"):
        mine.export(tmp_path / "best.yaml", trial=99)
    with pytest.raises(study.UserError, match=r"^where: 'foo' given"):
        mine.export(tmp_path / "best.yaml", where=["foo"])
    with pytest.raises(study.UserError, match=r'^set=\{"search.trails": 3\}: search.trails: unknown key'):
        study.run("quickstart", name="other", set={"search.trails": 3}, quiet=True)
