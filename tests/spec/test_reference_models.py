"""`search.references`: which there are, for which data, and what a file may say."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers import quickstart, refused, reread

from study.data.dataset import Facts
from study.home.record import StudyRecord
from study.methods.reference import EXPORTABLE_REFERENCES, REFERENCES
from study.spec.reference_models import MAX_PIXEL_INPUT_VALUES, requested_reference_names, why_reference_unsuited
from study.sweep.reference_process import missing_references

OF_IMAGES = ["majority", "logistic_regression", "logistic_regression_cell_balanced"]
TABLE = Facts(2, 2, (5,))


def test_a_file_without_the_key_has_none_and_stays_the_study_that_it_was() -> None:
    spec = quickstart()
    assert list(requested_reference_names(spec)) == []
    assert "references" not in spec.to_document()["search"]
    assert spec.hash == quickstart("search.references=false").hash
    assert spec.hash != quickstart("search.references=true").hash


@pytest.mark.parametrize("given", ["true", "auto"])
def test_true_and_auto_take_what_suits_the_data(given: str) -> None:
    spec = quickstart(f"search.references={given}")
    assert list(requested_reference_names(spec)) == OF_IMAGES
    assert list(requested_reference_names(reread(spec))) == OF_IMAGES


def test_names_are_taken_in_the_order_of_the_table() -> None:
    spec = quickstart("search.references=[logistic_regression, majority]")
    assert (
        list(requested_reference_names(spec))
        == missing_references(spec, StudyRecord())
        == ["majority", "logistic_regression"]
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("[logistic_regresion]", "Did you mean 'logistic_regression'? Allowed: majority"),
        ("[hist_gradient_boosting_class_balanced]", "is for tables, and the data are images"),
        ("[majority, majority]", "one is repeated"),
        ("all", "'all' given"),
        ("3", "3 given"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(given: str, told: str) -> None:
    message = refused(f"search.references={given}")
    assert "search.references" in message
    assert told in message


def test_trials_on_different_data_have_none_in_common() -> None:
    rhos = "search.space={data.rho: {choices: [0.9, 0.95]}, method.lambda: paper}"
    baseline = "search.baseline=null"
    assert (
        list(requested_reference_names(quickstart(rhos, baseline, "search.enqueue=[]", "search.references=true"))) == []
    )
    named = refused(rhos, baseline, "search.enqueue=[]", "search.references=[majority]")
    assert "trials differ in their data (data.rho)" in named


def test_each_reference_says_of_which_data_it_cannot_be() -> None:
    suited = {name for name in REFERENCES if why_reference_unsuited(name, TABLE) is None}
    assert suited == set(REFERENCES)
    without = {name for name in REFERENCES if why_reference_unsuited(name, replace(TABLE, bias_classes=None)) is None}
    assert without == {name for name, kind in REFERENCES.items() if kind.needs == "nothing"}
    assert without == {
        name for name in REFERENCES if why_reference_unsuited(name, replace(TABLE, some_bias=True)) is None
    }
    three = {name for name in REFERENCES if why_reference_unsuited(name, replace(TABLE, classes=3)) is None}
    assert three == set(EXPORTABLE_REFERENCES)
    unjudged = replace(TABLE, bias_splits=("train",))
    assert {name for name in REFERENCES if why_reference_unsuited(name, unjudged)} == set(REFERENCES) - set(
        EXPORTABLE_REFERENCES
    )
    large = Facts(2, 2, (3, 65, 65))
    assert f"at most {MAX_PIXEL_INPUT_VALUES} values" in (why_reference_unsuited("majority", large) or "")
    assert why_reference_unsuited("majority", large, of_features=True) is None


def test_a_trained_method_may_be_one_and_a_search_has_none(tmp_path: Path) -> None:
    spec = quickstart("search.space={}", "search.baseline=null", "search.enqueue=[]", "search.trials=1",
                      "method={name: reference, model: majority}", "train.epochs=1",
                      "search.early_stopping=none")  # fmt: skip
    assert spec.base["method"] == {"name": "reference", "model": "majority"}
    wrong = refused(
        "search.space={}", "search.baseline=null", "method={name: reference, model: exponentiated_gradient}"
    )
    assert "exponentiated_gradient" in wrong
    more = refused("search.space={}", "search.baseline=null", "method={name: reference, model: majority}")
    assert "train.epochs: 20 given, allowed is 1 with method.name reference" in more
    assert "reference" in refused("search.space.method.name={choices: [eps_sup_info_nce, reference]}")
