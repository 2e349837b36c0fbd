"""A suite file: what its studies are, and what is wrong with a file, each with its place."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from study.errors import UserError
from study.spec.suite import Suite, find_suite_file, load_suite, shipped_suites

SMALL = """\
name: small
base:
  model: {name: small_conv_net, width: 4}
  train: {batch_size: 128, learning_rate: 0.003}
methods:
  plain:
    method: {name: cross_entropy}
    train: {weight_decay: 0.0001}
  weighted:
    method: {name: eps_sup_info_nce, temperature: 0.1}
    space:
      method.alpha: {low: 0.001, high: 1.0, log: true}
data:
  rho_80: {name: biased_digits, rho: 0.8}
  rho_95: {name: biased_digits, rho: 0.95, val: biased}
rules: [accuracy, unbiased_accuracy]
searches: 2
budget: {trials: 3, epochs: 2, seeds: 2}
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Suite]:
    """Loads the small suite with parts of its text replaced."""

    def loaded(*changes: tuple[str, str]) -> Suite:
        text = SMALL
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "small.yaml").write_text(text)
        return load_suite(str(tmp_path / "small.yaml"))

    return loaded


def test_each_search_is_a_study_of_equal_budget(load: Callable[..., Suite]) -> None:
    suite = load()
    names = [search.spec.name for search in suite.searches]
    assert names[:4] == [f"small--{method}--{data}--1" for method in suite.methods for data in suite.data]
    assert names[4:] == [name[:-1] + "2" for name in names[:4]]
    for search in suite.searches:
        spec = search.spec
        assert (spec.epochs, spec.search.baseline, spec.search.sampler) == (2, None, "random")
        assert (spec.search.confirm.top, spec.search.confirm.seeds) == (0, 2)
        assert spec.search.confirm.rules == ["accuracy", "unbiased_accuracy"]
        assert spec.n_configurations == (3 if search.method == "weighted" else 1)
        assert spec.base["model"]["width"] == 4
        assert spec.base["train"]["weight_decay"] == (0.0001 if search.method == "plain" else 0.0)
        assert spec.base["data"]["rho"] == {"rho_80": 0.8, "rho_95": 0.95}[search.data]
    assert suite.test_metric == "test/accuracy"


def test_methods_share_the_seeds_of_a_search_and_no_two_searches_do(load: Callable[..., Suite]) -> None:
    suite = load(("searches: 2", "searches: 4"))
    used: dict[tuple[str, int], list[tuple[set[int], int]]] = {}
    for search in suite.searches:
        seeds = {*search.spec.seeds, *range(search.spec.seed + 1, search.spec.seed + 3)}
        used.setdefault((search.data, search.search_number), []).append((seeds, search.spec.search.seed))
    assert all(one == other for one, other in used.values())
    for (one, _), (other, _) in combinations(used.values(), 2):
        assert not one[0] & other[0]
        assert one[1] != other[1]


def test_more_searches_and_data_sets_leave_the_others_as_they_were(load: Callable[..., Suite]) -> None:
    before = {search.spec.name: search.spec.hash for search in load().searches}
    more = ("rules:", "  rho_99: {name: biased_digits, rho: 0.99}\nrules:")
    after = {search.spec.name: search.spec.hash for search in load(more, ("searches: 2", "searches: 3")).searches}
    assert len(after) == 18
    assert before == {name: after[name] for name in before}


def test_a_study_file_can_be_the_base(load: Callable[..., Suite]) -> None:
    written = SMALL[SMALL.index("base:") : SMALL.index("methods:")]
    suite = load((written, "base: quickstart\n"), ("epochs: 2", "epochs: 9"))
    spec = suite.searches[0].spec
    assert (spec.search.sampler, spec.search.early_stopping.name, spec.search.space) == ("tpe", "asha", {})
    assert (spec.epochs, spec.base["train"]["weight_decay"], spec.base["model"]["width"]) == (9, 0.0001, 16)
    assert suite.searches[2].spec.base["train"]["weight_decay"] == 1e-5


def test_the_shipped_suite_is_one() -> None:
    suite = load_suite("quickstart_suite")
    assert (len(suite.methods), len(suite.data), suite.searches_per_cell, len(suite.searches)) == (3, 3, 3, 27)
    assert {search.spec.base["data"]["name"] for search in suite.searches} == {"biased_digits"}
    assert find_suite_file("quickstart_suite") == shipped_suites()["quickstart_suite"]


WRONG = {
    "rho: 0.8}": ("rho: 1.8}", "small.yaml:14: data.rho: 1.8 given, allowed is less than or equal to 1"),
    "method.alpha:": ("method.alfa:", "small.yaml:12: search.space.method.alfa: unknown key. Did you mean 'method.al"),
    "    train: {weight": (
        "    trian: {weight",
        "small.yaml:8: methods.plain.trian: unknown key. Did you mean 'train'?",
    ),
    "trials: 3": ("trials: 0", "small.yaml:18: budget.trials: 0 given"),
    "{weight_decay": ("{epochs: 5, weight_decay", "methods.plain.train.epochs: cannot be given here: budget.epochs"),
    "      method.alpha:": ("      data.rho: 0.5\n      method.alpha:", "methods.weighted.space.data.rho: cannot be"),
    "  model: {name: small_conv_net, width: 4}\n": (
        "",
        "small.yaml:5: methods.plain.model: is missing, here or in base",
    ),
    "unbiased_accuracy]": (
        "inferred_unbiased_accuracy]",
        "rules.1: 'inferred_unbiased_accuracy' given, but no data set",
    ),
    "searches: 2": (
        "searches: 2\njudge: test/acuracy",
        "small.yaml:18: judge: 'test/acuracy' given. Did you mean 'test",
    ),
    "name: small\n": ("name: sm/all\n", "small.yaml:1: name: 'sm/all' given"),
    "rho_95": ("rho--95", None),
    "  plain:": ("  x--y:", None),
    "accuracy, unb": ("unbiased_accuracy, unb", "rules: ['unbiased_accuracy', 'unbiased_accuracy'] given: one is rep"),
}


@pytest.mark.parametrize("old", WRONG)
def test_what_is_wrong_is_told_with_its_place(old: str, load: Callable[..., Suite]) -> None:
    new, message = WRONG[old]
    if message is None:
        load((old, new))
        return
    with pytest.raises(UserError) as refused:
        load((old, new))
    assert message in str(refused.value)


def test_labels_that_make_one_name_are_refused(load: Callable[..., Suite]) -> None:
    with pytest.raises(UserError, match="the name 'small--a--b--c--2' is also that of a on b--c"):
        load(("  plain:", "  a:"), ("  weighted:", "  a--b:"), ("rho_80", "b--c"), ("rho_95", "c"))


def test_a_mistake_that_each_study_has_is_told_once(load: Callable[..., Suite]) -> None:
    with pytest.raises(UserError) as refused:
        load(("batch_size: 128", "batch_size: 0"))
    assert len(str(refused.value).splitlines()) == 1
