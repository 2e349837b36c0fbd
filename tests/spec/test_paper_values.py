"""The papers' ranges, declared beside the hyperparameters, and their configurations as first trials."""

from functools import partial

import helpers
import pytest
from helpers import searching

from study import methods
from study.knobs import SearchRange, to_options
from study.methods.debiasing import TermWeights
from study.spec import StudySpec
from study.spec.key_errors import fault_of_value

refused = partial(helpers.refused, of=searching)


def values(spec: StudySpec, key: str) -> dict[str, object]:
    domain = spec.search.space[key]
    return domain.model_dump(exclude_defaults=True, exclude={"when"})


def test_the_word_stands_for_the_declared_range() -> None:
    spec = searching("{method.alpha: paper, method.lambda: {range: paper}, method.epsilon: paper}")
    assert values(spec, "method.alpha") == {"low": 0.0001, "high": 1.0, "log": True}
    assert values(spec, "method.lambda") == {"low": 0.5, "high": 1.5}
    assert values(spec, "method.epsilon") == {"low": 0.0, "high": 0.5}


def test_what_the_file_gives_comes_first() -> None:
    spec = searching("{method.alpha: {range: paper, low: 0.001}, method.lambda: {range: paper, low: 0, step: 0.5}}")
    assert values(spec, "method.alpha") == {"low": 0.001, "high": 1.0, "log": True}
    assert values(spec, "method.lambda") == {"low": 0, "high": 1.5, "step": 0.5}


def test_methods_that_differ_give_the_range_that_holds_all() -> None:
    """q of the generalised cross entropy must be above 0, that of learning from failure need not."""
    q = "{method.name: {choices: [generalized_cross_entropy, learning_from_failure]}, method.q: {range: paper%s}}"
    spec = searching(q % ", when: {method.name: [generalized_cross_entropy]}", "method.regulariser=none")
    assert values(spec, "method.q") == {"low": 0.1, "high": 1.0}
    found = refused(q % "", "method.regulariser=none")
    assert "search.space.method.q: with method.name 'generalized_cross_entropy': 0.0 given, allowed is greater" in found


def test_the_kernels_are_choices() -> None:
    cclk = ("method.name=fair_cclk", "method.regulariser=none", "train.augmentation=crop_flip")
    spec = searching("{method.kernel: paper, method.sigma2: paper}", *cclk)
    assert set(spec.search.space["method.kernel"].boundary_values()) == {
        "rbf",
        "laplacian",
        "linear",
        "cosine",
        "polynomial",
    }
    assert values(spec, "method.sigma2") == {"low": 1.0, "high": 1000.0, "log": True}
    assert "the papers' range has the choices" in refused("{method.kernel: {range: paper, low: 1}}", *cclk)


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        ("method.alpha: {range: papers}", "search.space.method.alpha.range: 'papers' given. "),
        ("train.momentum: paper", "search.space.train.momentum: 'paper' given, but no range is declared"),
        ("method.alfa: paper", "search.space.method.alfa: unknown key. Did you mean 'method.alpha'?"),
    ],
)
def test_a_range_that_cannot_be_is_told(domain: str, words: str) -> None:
    assert words in refused(f"{{{domain}}}")


def test_the_papers_configurations_are_first() -> None:
    space = """{method.name: {choices: [eps_sup_info_nce, eps_sup_con, sup_con, cross_entropy]},
        method.alpha: paper, method.lambda: paper, method.epsilon: paper}"""
    spec = searching(space, "search.enqueue=papers")
    loss = "method.name"
    weak, strong = ({"method.alpha": a, "method.lambda": b} for a, b in ((0.014, 1.0), (0.0013, 0.75)))
    assert spec.search.enqueue == [
        {loss: "eps_sup_info_nce", **strong, "method.epsilon": 0.5},
        {loss: "eps_sup_con", **strong, "method.epsilon": 0.25},
        {loss: "sup_con", **strong},
        {loss: "cross_entropy", **strong},
        {loss: "eps_sup_info_nce", **weak, "method.epsilon": 0.25},
        {loss: "eps_sup_con", **weak, "method.epsilon": 0.25},
        {loss: "sup_con", **weak},
        {loss: "cross_entropy", **weak},
    ]
    assert all(spec.space.contains(one) for one in spec.search.enqueue)


def test_the_papers_alpha_weighs_as_the_released_code_has_it() -> None:
    """Tables 6 and 7 print 0.03 and 0.1, which that code squares and multiplies by temperature / 0.07."""
    for place, (printed, lambda_) in enumerate([(0.03, 0.75), (0.1, 1.0)]):
        code = {"alpha": printed, "lambda": lambda_, "alpha_squared": True}
        ours = searching("{method.alpha: paper, method.lambda: paper}", "search.enqueue=papers").search.enqueue[place]
        assert ours["method.lambda"] == lambda_
        assert ours["method.alpha"] == pytest.approx(
            0.1 / 0.07 * to_options(TermWeights, code).contrastive_factor, rel=0.03
        )


def test_those_outside_the_space_are_left_out() -> None:
    spec = searching("{method.alpha: {low: 0.005, high: 1.0}, method.lambda: paper}", "search.enqueue=papers")
    assert spec.search.enqueue == [{"method.alpha": 0.014, "method.lambda": 1.0}]
    assert "none of their configurations is in" in refused(
        "{method.alpha: {low: 0.5, high: 1.0}}", "search.enqueue=papers"
    )
    assert "none of their configurations is in" in refused(
        "{train.momentum: {low: 0.5, high: 0.9}}", "search.enqueue=papers"
    )


def test_other_keys_keep_the_value_of_the_file() -> None:
    spec = searching("{method.alpha: paper, train.momentum: {low: 0.5, high: 0.95}}", "search.enqueue=papers")
    assert [one["train.momentum"] for one in spec.search.enqueue] == [0.9, 0.9]
    spec = searching("{method.alpha: paper, train.optimizer: {choices: [sgd, lars]}}", "search.enqueue=papers")
    assert [one["train.optimizer"] for one in spec.search.enqueue] == ["sgd", "sgd"]


def declared() -> list[tuple[str, str, SearchRange]]:
    sections = [{"name": name} for name in methods.method_names()]
    sections += [
        {"name": "sup_con", key: value} for key, value in (("regulariser", "fair_kl"), ("adversary", "classifier"))
    ]
    return [
        (one["name"], key, knob.search_range)
        for one in sections
        for key, knob in methods.method_knobs(one).items()
        if knob.search_range
    ]


def test_what_is_declared_is_valid_and_holds_the_papers_values() -> None:
    found = declared()
    for name, key, note in found:
        knob = methods.method_knobs({"name": name, "regulariser": "fair_kl", "adversary": "classifier"})[key]
        ends = note.choices or (note.low, note.high)
        assert not any(fault_of_value(knob, value) for value in (*ends, *note.paper)), (name, key)
        assert all(note.low <= value <= note.high for value in note.paper if not note.choices)
    keys = {key for _, key, _ in found}
    assert keys >= {
        "alpha",
        "lambda",
        "epsilon",
        "tau_plus",
        "beta",
        "sigma2",
        "temperature",
        "kernel",
        "q",
        "clusters",
    }
