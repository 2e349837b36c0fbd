"""What the live page says and draws of several metrics and limits."""

import json
from pathlib import Path

from helpers import Told, quickstart, write_ledger

from study.commands.live.state import LiveState
from study.home.folder import Home
from study.home.ledger import Ledger

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


def both(value: float, odds: float) -> Told:
    return Told("search", [value], params=PARAMS, further={"val/equalized_odds": odds})


def test_several_metrics_are_told_and_drawn_with_their_front(tmp_path: Path) -> None:
    assignments = ["train.epochs=1", "search.metric=[val/accuracy, val/equalized_odds]", "search.early_stopping={}"]
    folder = Home(tmp_path).create(quickstart("name=two", *assignments))
    told = [both(0.9, 0.4), both(0.5, 0.5), both(0.7, 0.1)]
    told[1].stage = "baseline"
    write_ledger(folder.ledger_file, *told)
    document = LiveState(folder).document()
    assert document["trade"] == {
        "metric": "val/equalized_odds",
        "percent": False,
        "value": [0.4, 0.5, 0.1],
        "limits": [],
        "first_limits": [],
        "front": [(0.1, 0.7), (0.4, 0.9)],
    }
    assert document["further"] == [
        "val/equalized_odds: 0.4 (trial 0), 0.5 (the baseline).",
        "No configuration is best in every metric: on the front so far are trial 0, trial 2.",
    ]
    json.dumps(document, allow_nan=False)


def test_limits_are_told_and_drawn(tmp_path: Path) -> None:
    assignments = ["train.epochs=1", "search.constraints=[val/equalized_odds <= 0.2]", "search.early_stopping={}"]
    folder = Home(tmp_path).create(quickstart("name=limited", *assignments))
    write_ledger(folder.ledger_file, both(0.9, 0.4))
    first = LiveState(folder).document()
    assert first["further"] == [
        "The limit val/equalized_odds <= 0.2: trial 0 breaks it (0.4).",
        "No complete configuration keeps the limits yet; the best is the one that misses them least.",
    ]
    assert (first["trade"]["limits"], first["trade"]["front"]) == ([0.2], [])
    ledger = Ledger(folder.ledger_file)
    ledger.append("trial", trial=1, stage="search", params=PARAMS, seed=0)
    ledger.append("started", trial=1)
    ledger.append("report", trial=1, epoch=1, metrics={"val/accuracy": 0.6, "val/equalized_odds": 0.1})
    ledger.append("ended", trial=1, state="complete")
    ledger.close()
    assert LiveState(folder).document()["further"] == ["The limit val/equalized_odds <= 0.2: trial 1 keeps it (0.1)."]


def test_a_study_of_one_metric_has_no_trade_off(tmp_path: Path) -> None:
    folder = Home(tmp_path).create(quickstart("name=one"))
    write_ledger(folder.ledger_file, both(0.9, 0.4))
    document = LiveState(folder).document()
    assert (document["trade"], document["further"]) == (None, [])
