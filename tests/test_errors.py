"""Which spelling a message proposes."""

from pathlib import Path

import pytest

from study.errors import UserError, did_you_mean, did_you_mean_path, suggest_or_list

KEYS = ["method.pooled", "method.alpha", "method.tau_plus", "train.epochs", "train.momentum"]
METHODS = ["cross_entropy", "debiased_info_nce", "eps_sup_info_nce", "fair_cclk"]
METRICS = ["val/accuracy", "val/auc", "val/equalized_odds"]


@pytest.mark.parametrize(
    ("word", "valid", "expected"),
    [
        ("width", ["name", "epochs"], None),
        ("method.alpa", KEYS, "method.alpha"),
        ("method.epsilon", KEYS, None),
        ("method.momentum", KEYS, "train.momentum"),
        ("metod.alpha", KEYS, "method.alpha"),
        ("val/acc", METRICS, "val/accuracy"),
        ("test/accuracy", METRICS, "val/accuracy"),
        ("accuracy", METRICS, "val/accuracy"),
        ("epoch", KEYS, "train.epochs"),
        (".\n/", KEYS, None),
        ("fairkl", METHODS, None),
        ("fairkl", [*METHODS, "eps_sup_info_nce+fair_kl"], "eps_sup_info_nce+fair_kl"),
        ("fairkl", ["fair_kl", "end"], "fair_kl"),
        ("CCL-K", METHODS, "fair_cclk"),
        ("dcl", METHODS, "debiased_info_nce"),
        ("dcl", ["end"], None),
        ("cclk", ["cclk-fig3", "quickstart"], "cclk-fig3"),
        ("Cross-Entropy", METHODS, "cross_entropy"),
    ],
)
def test_a_spelling_is_proposed_where_it_is_close(word: str, valid: list[str], expected: str | None) -> None:
    assert did_you_mean(word, valid) == (f"Did you mean {expected!r}? " if expected else "")


def test_a_word_of_the_field_may_mean_two_samplers() -> None:
    assert did_you_mean("Bayes", ["cmaes", "gp", "tpe"]) == "Did you mean 'tpe' or 'gp'? "


def test_a_notebook_shows_the_message_alone() -> None:
    assert UserError("mine: no such study")._render_traceback_() == ["error: mine: no such study"]


MANY = [f"key_{letter * 3}" for letter in "abcdefghijklmnopqrst"]


@pytest.mark.parametrize(
    ("word", "valid", "told"),
    [
        ("key_aab", MANY, "Did you mean 'key_aaa'? All: study guide keys"),
        ("zz", MANY, f"Allowed: {', '.join(MANY[:12])} and 8 more. All: study guide keys"),
        ("tpee", ["tpe", "gp"], "Did you mean 'tpe'? Allowed: tpe, gp"),
        ("zz", [], "Allowed: none"),
    ],
)
def test_a_long_list_is_left_out_beside_what_is_meant(word: str, valid: list[str], told: str) -> None:
    assert suggest_or_list(word, valid, command="study guide keys") == told


def test_a_file_that_is_nearly_there_is_proposed(tmp_path: Path) -> None:
    for name in ("baeume.yaml", "baeume.csv", ".baume.yaml", "other.yaml"):
        (tmp_path / name).touch()
    assert did_you_mean_path(tmp_path / "baume.yml", (".yaml",)) == f"Did you mean {tmp_path}/baeume.yaml? "
    assert not did_you_mean_path(tmp_path / "q.yaml")
    assert not did_you_mean_path(tmp_path / "none" / "baume.yaml")
    assert not did_you_mean_path(tmp_path / "a\0b")
