"""What a summary says of the epoch at which trials were taken."""

import pytest
from helpers import Told, quickstart, record
from told_studies import REFERENCED, referenced_spec, trained_twice

from study.commands.final_training import final_training_spec
from study.ranking import Results
from study.ranking.json_documents import to_plain_value
from study.ranking.study_summary import result_means_and_deviations, summarise_study, summary_lines

TOLD = record(
    Told("baseline", [0.1, 0.2, 0.6, 0.2]), Told("search", [0.1, 0.8, 0.6, 0.3], params={"method.alpha": 0.5})
)
BEST = quickstart("search.confirm={top: 0}", "search.epoch=best", "search.epoch_window=2")


def test_values_are_those_of_the_chosen_epoch_and_the_last_stands_beside() -> None:
    document = summarise_study(Results(BEST, TOLD))
    best = to_plain_value(document)["best"]
    assert (best["trial"], best["epochs"], best["search_value"]) == (1, [3], pytest.approx(0.7))
    assert best["metrics"]["val/accuracy"] == {"mean": pytest.approx(0.7), "sd": None, "n": 1}
    assert best["beside"] == {"at the last epoch": {"val/accuracy": {"mean": 0.3, "sd": None, "n": 1}}}
    texts = summary_lines(document)
    assert "best      val/accuracy               70.0% (1 seed)" in texts
    assert "best      val/accuracy               30.0% (1 seed), at the last epoch" in texts
    assert (
        "values are those at the best epoch by val/accuracy, as the mean of the 2 epochs up to it: "
        "baseline epoch 3; best epoch 3" in texts
    )
    assert result_means_and_deviations(Results(BEST, TOLD))["best/val/accuracy"] == pytest.approx(0.7)


def test_where_the_last_epoch_counts_nothing_stands_beside() -> None:
    document = summarise_study(Results(quickstart("search.confirm={top: 0}"), TOLD))
    best = document.arms["best"]
    assert (best.epochs, best.beside, document.epoch) == ([4], {}, "at the last epoch")
    assert not [line for line in summary_lines(document) if "epoch" in line]


def test_the_values_of_an_ensemble_are_not_said_to_be_means_over_epochs() -> None:
    """It has those of its networks' weights; what was fitted once has one epoch, which nobody chose."""
    spec = final_training_spec(BEST, [0, 1])
    (line,) = (
        one for one in summary_lines(summarise_study(Results(spec, trained_twice(0.62)))) if "values are those" in one
    )
    assert "ensemble epoch" not in line
    assert line.endswith("; those of the ensemble are of the weights at the end of these")
    stays = Results(referenced_spec("search.epoch=best"), REFERENCED["wins"][1])
    (line,) = (one for one in summary_lines(summarise_study(stays)) if "values are those" in one)
    assert "best epoch 1" not in line
    assert "search epoch 1" in line
