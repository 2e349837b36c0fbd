"""A study as a Python object: its tables, figures and files are those of the commands."""

import doctest
import random
from pathlib import Path
from typing import Any

import own_functions
import pytest
from helpers import Told, append_event, quickstart, write_ledger
from matplotlib.figure import Figure

import study
from study import errors
from study.analysis import ablation, sensitivity, trials_frame
from study.api import run_study, study_object
from study.api.study_object import warn_if_failed
from study.commands.final_training import final_training_spec
from study.home.folder import Home, StudyFolder
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


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> study.Study:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    folder = Home.locate().create_study(quickstart("name=mine", "search.confirm.top=1", "search.confirm.seeds=2"))
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
    whole = ablation(frame, "method.alpha", "val/accuracy")
    assert mine.table("method.alpha").equals(whole[["mean", "sd", "n", "over", "pruned", "failed"]])
    counted = mine.table("method.alpha", bins=None)
    assert counted.loc[0.05, ["n", "over"]].tolist() == [2, "seeds"]
    assert mine.table("method.lambda", bins=None).loc[1.0, ["n", "over"]].tolist() == [3, "configurations"]
    two = mine.table("method.alpha", "method.epsilon", bins=None)
    pairs = sensitivity(frame, "method.alpha", "method.epsilon", "val/accuracy", None)
    with pytest.raises(study.UserError, match=r"Did you mean 'method.alpha'"):
        mine.table("alpha")
    assert two.equals(pairs["mean"])
    assert set(mine.picks["trial"]) == {3}


def test_a_front_is_a_list_that_is_printed_as_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one metric it is the best and what ties with it."""
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    folder = Home.locate().create_study(quickstart("name=tied"))
    assert (study.load("tied").front, repr(study.load("tied").front)) == ([], "[]")
    write_ledger(folder.ledger_file, *(Told("search", [0.6 if at < 2 else 0.4], params=params(at)) for at in range(3)))
    front = study.load("tied").front
    assert isinstance(front, list)
    assert [one.trial for one in front] == [0, 1]
    assert front.frame.columns.tolist() == [*params(0), "val/accuracy", "seeds"]
    assert front.frame["val/accuracy"].tolist() == [0.6, 0.6]
    head, index, first, second = str(front).splitlines()
    assert head.split() == front.frame.columns.tolist()
    assert (index.strip(), first.split(), second.split()[:2]) == (
        "trial",
        ["0", "0", "1", "0.25", "0.6", "1"],
        ["1", "1"],
    )
    assert repr(front[0]) == str(front[0])
    assert repr(front[0]).startswith("trial 0, method.alpha = 0")


def test_a_table_of_two_ranges_is_a_matrix_that_is_printed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had a column for each statistic and bin, of which pandas shows the first and the last."""
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    spec = quickstart("name=ranges")
    luck = random.Random(1)
    tried = [{"method.alpha": luck.uniform(0, 1), "method.lambda": luck.uniform(0, 2)} for _ in range(14)]
    folder = Home.locate().create_study(spec)
    write_ledger(folder.ledger_file, *(Told("search", [0.5], params=params) for params in tried))
    table = study.load(spec.name).table("method.alpha", "method.lambda")
    assert table.shape == (3, 3)
    assert "..." not in str(table)
    assert table.notna().to_numpy().sum() >= 6
    assert len(study.load(spec.name).table(["method.alpha", "method.lambda"])) > 9


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
    assert best.params["alpha"] == best.params["method.alpha"], "as tables take it"
    for error in (KeyError, study.UserError):
        with pytest.raises(error, match=r"'alpa': not there. Did you mean 'method.alpha'\? There are: method.alpha, "):
            best.params["alpa"]
    with pytest.raises(AttributeError, match=r"study has no compare\. There are: Study, UserError, load, loss, run"):
        study.compare  # noqa: B018
    with pytest.raises(KeyError, match="Did you mean 'val/accuracy'"):
        best.metrics["accuracy"]


def test_a_configuration_is_printed_a_line_for_each_metric(mine: study.Study) -> None:
    first, *others = str(mine.best).splitlines()
    assert first == "trial 3, method.alpha = 0.05, method.lambda = 1.0, method.epsilon = 0.25"
    assert others[0].split(maxsplit=1) == ["val/accuracy", "65.0 ± 7.1% (2 seeds)"]


def test_only_the_metrics_of_status_are_printed_and_folds_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All were, some 60 lines by the alphabet, and 2 folds were "2 seeds"."""
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    folder = Home.locate().create_study(quickstart("name=many", "data.val=biased", "data.folds=2"))
    groups = {f"val/group_0_{s}_accuracy": 0.5 for s in range(5)}
    runs = [
        Told("confirm", [0.5], params=params(0.01), seed=2 + fold, fold=fold, repeats=0, further=groups)
        for fold in (0, 1)
    ]
    write_ledger(folder.ledger_file, Told("search", [0.6], params=params(0.01), fold=0, further=groups), *runs)
    best = study.load("many").best
    assert best is not None
    assert best.folds == (0, 1)
    first, *others, last = str(best).splitlines()
    assert first.startswith("trial 0, method.alpha = 0.01")
    assert others[0].split(maxsplit=1) == ["val/accuracy", "50.0 ± 0.0% (2 folds, 2 seeds)"]
    assert len(others) == 1
    assert last == f"... and {len(best.metrics) - 1} more in .metrics"
    assert "val/group_0_3_accuracy" in best.metrics


def final(*trials: Told) -> StudyFolder:
    folder = Home.locate().create_study(final_training_spec(quickstart(), [6, 7], "mine-final"))
    write_ledger(folder.ledger_file, *trials)
    return folder


def test_the_best_of_a_final_training_is_its_model(mine: study.Study) -> None:
    """It was None, as no trial was of a search."""
    folder = final(*(Told("final", [0.5 + seed / 100], seed=seed, tested={"test/accuracy": 0.4}) for seed in (6, 7)))
    trained = study.load("mine-final")
    assert trained.best is not None
    assert (trained.best.trial, trained.best.seeds, trained.best.params) == (1, (7,), {})
    assert trained.best.metrics["val/accuracy"].mean == pytest.approx(0.57)
    assert trained.front == [trained.best]
    assert trained.front.frame.loc[1, "test/accuracy"] == 0.4
    append_event(folder.ledger_file, "ensemble", trials=[0, 1], metrics={"val/accuracy": 0.7, "test/accuracy": 0.6})
    (ensemble,) = trained.refresh().front
    assert (ensemble.trial, ensemble.reference, ensemble.seeds) == (None, None, (6, 7))
    assert ensemble.metrics["test/accuracy"].mean == 0.6
    assert str(ensemble).splitlines()[0] == "ensemble of 2 networks"
    assert "0.7" in str(trained.front)


def test_the_best_of_a_final_training_that_has_no_model_is_none(mine: study.Study) -> None:
    final(Told("final", [0.5], "running", seed=6))
    assert (study.load("mine-final").best, study.load("mine-final").front) == (None, [])


def test_what_is_more_may_be_given_as_text_and_what_cannot_be_is_told(mine: study.Study) -> None:
    with pytest.raises(study.UserError, match=r"trials='more': a number of additional trials is needed"):
        mine.resume("more", quiet=True)  # type: ignore[arg-type]
    with pytest.raises(study.UserError, match=r"^seeds='1,2': allowed is a list of seeds, as \[6, 7, 8\]"):
        mine.train("1,2")  # type: ignore[arg-type]


def test_a_failed_study_says_why_and_how_to_read_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    folder = Home.locate().create_study(quickstart("name=mine"))
    write_ledger(folder.ledger_file, Told("baseline", [], "running", params=dict(TRIALS[0].params)))
    append_event(folder.ledger_file, "ended", trial=0, state="failed", kind="BUG", reason="ValueError: singular")
    append_event(folder.ledger_file, "closed", state="failed")
    why = "trial 0 failed: ValueError: singular. study logs mine --trial 0"
    assert str(failed := study.load("mine")).endswith(why)
    assert failed.best is None
    assert warn_if_failed(failed) is failed
    assert capsys.readouterr().err.endswith(f"{why}\n")


def test_a_study_that_did_not_fail_is_not_warned_of(mine: study.Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert warn_if_failed(mine) is mine
    assert capsys.readouterr().err == ""


def test_it_is_shown_as_study_status_shows_it_and_read_anew_when_asked(mine: study.Study) -> None:
    assert str(mine).startswith("study mine, of ada: ")
    assert repr([mine]) == f"[Study('mine', {mine.state})]"
    assert "study mine, of ada: " in mine._repr_html_()
    assert repr(mine.best) == str(mine.best)
    assert "65.0 ± 7.1% (2 seeds)" in repr(mine.best)
    before = len(mine.trials)
    write_ledger(mine.folder.ledger_file)
    assert mine.refresh() is mine
    assert len(mine.trials) == before
    assert mine.state == "interrupted"


def test_figures_by_name(mine: study.Study) -> None:
    assert mine.figures == ("seeds", "learning_curves")
    assert isinstance(mine.figure("learning_curves"), Figure)
    with pytest.raises(study.UserError, match=r"'curves': no such figure\. .*There are: seeds, learning_curves$"):
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


@pytest.mark.parametrize("given", [3, ["a"], [0, True]])
def test_what_is_no_list_of_seeds_is_told(mine: study.Study, given: Any) -> None:
    with pytest.raises(study.UserError, match="seeds="):
        mine.train(seeds=given)


def test_studies_are_compared_by_name_or_as_objects(mine: study.Study) -> None:
    other = Home.locate().create_study(quickstart("name=other", "search.confirm.top=1", "search.confirm.seeds=2"))
    write_ledger(other.ledger_file, *TRIALS[:4])
    side_by_side = mine.compare("other")
    assert list(side_by_side.columns) == ["mine", "other"]
    assert side_by_side.loc["best trial"].tolist() == ["3", "3"]
    assert mine.compare(study.load("other")).equals(side_by_side)
    with pytest.raises(study.UserError, match=r"^metric='val/f1': not all have it"):
        mine.compare("other", metric="val/f1")
    with pytest.raises(study.UserError, match=r"othr: no such study .* Did you mean 'other'"):
        mine.compare("othr")


def test_names_of_optuna_lead_to_those_of_a_study(mine: study.Study) -> None:
    with pytest.raises(AttributeError, match=r"best_params: it is best\.params"):
        mine.best_params  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="'Study' object has no attribute 'nope'"):
        mine.nope  # type: ignore[attr-defined]  # noqa: B018


def test_a_functions_table_takes_the_names_of_its_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    space = {"rate": (0.1, 0.9)}
    own = run_study.build_function_study(
        own_functions.train,
        space=space,
        name="own",
        metric="val/accuracy",
        maximize=None,
        epochs=1,
        fixed={},
        baseline=None,
        assignments=[],
    )[0]
    trials = [Told("search", [value], params={"method.rate": value}) for value in (0.2, 0.5, 0.8)]
    write_ledger(Home.locate().create_study(own).ledger_file, *trials)
    table = study.load("own").table("rate", bins=None)
    assert table["mean"].to_dict() == {0.2: 0.2, 0.5: 0.5, 0.8: 0.8}


def test_errors_name_arguments(mine: study.Study, tmp_path: Path) -> None:
    with pytest.raises(study.UserError, match=r"50 asked for \(top\)"):
        mine.export(tmp_path / "best.yaml", top=50)
    with pytest.raises(study.UserError, match=r"^top=0: allowed is 1 or more"):
        mine.export(tmp_path / "best.yaml", top=0)
    with pytest.raises(study.UserError, match=r"^trial=99: mine has 7 trials"):
        mine.export(tmp_path / "best.yaml", trial=99)
    with pytest.raises(study.UserError, match=r"^where: 'foo' given"):
        mine.export(tmp_path / "best.yaml", where=["foo"])
    with pytest.raises(study.UserError, match=r'^set=\{"search.trails": 3\}: search.trails: unknown key'):
        study.run("quickstart", name="other", set={"search.trails": 3}, quiet=True)
