import doctest
import io
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from helpers import Told, quickstart, record

from study.analysis import epochs_frame, load, trials_frame
from study.home.folder import Home
from study.ranking import Results
from study.spec import load_study


def test_a_trial_is_a_row(spec, frozen):
    frame = trials_frame(Results(spec, frozen))
    assert list(frame.index) == list(range(14))
    assert frame.index.name == "trial"
    assert list(frame.columns) == [
        *("stage", "state", "kind", "reason", "seed", "fold", "repeats", "epochs", "seconds"),
        *("method.alpha", "method.lambda", "method.epsilon"),
        *("val/accuracy", "test/accuracy", "train/loss"),
    ]
    stopped = frame.loc[2]
    assert (stopped["state"], stopped["epochs"], stopped["seconds"]) == ("pruned", 1, 2.0)
    assert (stopped["val/accuracy"], stopped["method.alpha"]) == (0.2, 0.5)
    confirmed = frame.loc[8]
    assert (confirmed["repeats"], confirmed["seed"], confirmed["test/accuracy"]) == (1, 1, 0.68)


def test_the_metrics_of_the_study_are_first_and_the_limits_that_a_trial_breaks_have_a_column():
    accuracy, odds, loss = "val/accuracy", "val/equalized_odds", "val/log_loss"
    limited = quickstart(f"search.metric=[{odds}, {accuracy}]", f"search.constraints=[{loss} <= 1, {accuracy} >= 0.6]")
    values = [("complete", 0.5, 2.0), ("complete", 0.7, 0.5), ("pruned", 0.5, 2.0)]
    told = [
        Told("search", [reached], state, further={odds: 0.1, loss: of_loss, "val/auc": 0.5})
        for state, reached, of_loss in values
    ]
    frame = trials_frame(Results(limited, record(*told)))
    assert [name for name in frame.columns if name.startswith("val/")] == [odds, accuracy, loss, "val/auc"]
    assert dict(frame["broken_limits"].dropna()) == {0: f"{loss} <= 1, {accuracy} >= 0.6"}
    assert "broken_limits" not in trials_frame(Results(quickstart(), record(*told)))


def test_what_is_not_there_is_missing(spec, frozen):
    failed = trials_frame(Results(spec, frozen)).loc[3]
    assert failed["epochs"] == 0
    assert failed[["repeats", "val/accuracy", "test/accuracy", "train/loss"]].isna().all()
    assert failed["reason"] == "Diverged: loss is nan in epoch 1"


def test_a_parameter_that_was_not_given_has_the_files_value(spec, writer):
    study = writer()
    study.trial("baseline", [0.5], params={"method.lambda": 0.0})
    frame = trials_frame(Results(spec, study.record()))
    assert frame.loc[0, "method.alpha"] == spec.base["method"]["alpha"]


def test_a_parameter_that_a_method_does_not_have_is_missing(writer):
    methods = "search.space={method.name: {choices: [sup_con, eps_sup_con, ce]}, method.epsilon: paper}"
    label = "search.alternatives={method: {ce: {name: cross_entropy}}}"
    spec = load_study("fairkl_digits", [label, methods, "search.baseline=null"])
    study = writer()
    study.trial("search", [0.5], params={"method.name": "eps_sup_con", "method.epsilon": 0.1})
    study.trial("search", [0.5], params={"method.name": "ce"})
    study.trial("search", [0.5], params={"method.epsilon": 0.2})
    record = study.record()
    frame = trials_frame(Results(spec, record))
    assert list(frame["method.name"]) == ["eps_sup_con", "ce", "eps_sup_info_nce"]
    assert list(frame["method.epsilon"].isna()) == [False, True, False]


def test_no_trial_gives_a_frame_with_its_columns(spec, writer):
    frame = trials_frame(Results(spec, writer().record()))
    assert frame.empty
    assert {"stage", "method.alpha", "val/accuracy"} <= set(frame.columns)


def test_epochs_are_rows(writer):
    study = writer()
    study.trial("search", [0.1, None])
    frame = epochs_frame(study.record())
    expected = {"trial": [0, 0], "epoch": [1, 2], "train/loss": [2.0, 1.0], "val/accuracy": [0.1, None]}
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected))


def test_no_epoch_gives_a_frame_with_its_columns(writer):
    assert list(epochs_frame(writer().record()).columns) == ["trial", "epoch"]


def test_a_running_trial_has_no_seconds(spec, writer):
    study = writer()
    study.trial("search", [0.1], state=None)
    row = trials_frame(Results(spec, study.record(state=None))).loc[0]
    assert row["state"] == "running"
    assert row["val/accuracy"] == pytest.approx(0.1)
    assert pd.isna(row["seconds"])


def test_the_example_of_load(spec, frozen_ledger, tmp_path, monkeypatch):
    """It is run on a home that holds the frozen study."""
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    folder = Home(tmp_path).create_study(replace(spec, name="mine"))
    shutil.copy(frozen_ledger, folder.ledger_file)
    (example,) = doctest.DocTestFinder().find(load, "load", globs={})
    told = io.StringIO()
    with pd.option_context("display.width", 100):
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(
            example, out=told.write
        )
    assert (result.failed, result.attempted > 0) == (0, True), told.getvalue()
