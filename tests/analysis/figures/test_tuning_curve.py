"""The figure of a random search's tuning curve."""

import pytest
from helpers import Told, quickstart, record

from study.analysis.figures import FIGURES
from study.home.record import StudyRecord

RANDOM = ("search.sampler=random", "search.early_stopping.name=none")


def ran(test: bool = False, metric: str = "val/accuracy") -> StudyRecord:
    values = [0.5, 0.7, 0.6, 0.8, 0.75, 0.55, 0.65, 0.72, 0.61, 0.58, 0.79, 0.66]
    read = {"test/accuracy": 0.6} if test else {}
    trials = [Told("search", [value], metric=metric, further={**read}) for value in values]
    return record(Told("baseline", [0.6], metric=metric, further=read), *trials)


@pytest.mark.slow
@pytest.mark.parametrize(("test", "panels"), [(False, 1), (True, 2)])
def test_it_is_drawn_for_each_split_that_every_trial_read(test: bool, panels: int) -> None:
    spec = quickstart(*RANDOM, f"train.report_test={str(test).lower()}")
    figure = FIGURES["tuning_curve"](spec, ran(test))
    assert figure is not None
    assert len(figure.axes) == panels
    assert (
        figure.get_suptitle().replace("\n", " ")
        == "The best of 6 trials: median val/accuracy 79.0%, at least 70.0% with 95%"
    )
    figure.draw_without_rendering()


def test_a_metric_of_which_less_is_better_has_its_certain_end_above() -> None:
    spec = quickstart(*RANDOM, "search.metric=val/equalized_odds")
    figure = FIGURES["tuning_curve"](spec, ran(metric="val/equalized_odds"))
    assert figure is not None
    assert ", at most 0." in figure.get_suptitle().replace("\n", " ")


def test_there_is_none_of_other_searches() -> None:
    assert FIGURES["tuning_curve"](quickstart(), ran()) is None
