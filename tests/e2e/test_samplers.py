"""Every sampler with every early stopping, epoch and direction, through the Python API to a report."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import study
from study.ranking import best

WAYS = [  # sampler, early stopping, epoch, whether a higher value is better
    ("tpe", "asha", "last", True),
    ("random", "hyperband", "best", False),
    ("qmc", "median", "last", False),
    ("gp", "none", "best", True),
    ("cmaes", "asha", "last", False),
    ("nsga2", "median", "best", True),
    ("nsga3", "none", "last", False),
    ("grid", "hyperband", "last", True),
]
IN_CI = {"tpe", "gp"}
"""The others are long tests: each sampler's suggestions are tested in its room."""


def train(config: dict[str, Any], epochs: int) -> Iterator[dict[str, float]]:
    """Comes nearer to how far `x` and `y` are from .5 with each epoch."""
    for epoch in range(1, epochs + 1):
        yield {"val/distance": math.hypot(config["x"] - 0.5, config["y"] - 0.5) + 1 / epoch}


@pytest.mark.parametrize(
    ("sampler", "early_stopping", "epoch", "maximize"),
    [pytest.param(*way, marks=pytest.mark.slow if way[0] in IN_CI else pytest.mark.long) for way in WAYS],
)
def test_it_comes_to_a_report_and_its_best_is_the_best(
    sampler: str, early_stopping: str, epoch: str, maximize: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    step = {"step": 0.25} if sampler == "grid" else {}
    done = study.run(
        train=train,
        name="ways",
        space={"x": {"low": 0.0, "high": 1.0, **step}, "y": {"low": 0.0, "high": 1.0, **step}},
        metric="val/distance",
        maximize=maximize,
        epochs=4,
        set={
            "search.sampler": sampler,
            "search.early_stopping": {} if early_stopping == "none" else {"name": early_stopping},
            "search.epoch": epoch,
            "search.trials": 8,
            "search.confirm.top": 0,
        },
        quiet=True,
    )
    assert done.state == "complete"
    spec, record = done.spec, done.record
    trials = list(record.by_stage("search"))
    assert len({tuple(trial.params.items()) for trial in trials}) == 8
    complete = [trial for trial in trials if trial.state == "complete"]
    assert complete
    worth = {trial.number: math.hypot(*(value - 0.5 for value in trial.params.values())) for trial in complete}
    found = best(record, spec)
    assert found is not None
    assert worth[found.trial.number] == (max if maximize else min)(worth.values())
    assert (tmp_path / "home" / "ways" / "report" / "report.html").is_file()
