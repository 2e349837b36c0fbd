from itertools import pairwise

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.analysis.figures import FIGURES, shown
from study.analysis.figures.by_optuna import OPTUNA, by_optuna, log_ticks, plain
from study.analysis.figures.missing import not_shown, why_missing
from study.analysis.figures.two_metrics import trade_off_metrics
from study.analysis.report.write_report import as_pdf, as_png
from study.analysis.statistics.frame import thin
from study.analysis.statistics.importance import MIN_TRIALS, explained
from study.home.events import Referenced, SplitTested
from study.ranking import Results
from study.spec import load_study


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"importance", "ablation"}))
def test_every_figure_is_drawn(spec, wide, name):
    figure = FIGURES[name](Results(LIMITED if name == "front" else spec, wide))
    assert figure.get_suptitle()
    figure.draw_without_rendering()


LIMITED = load_study(
    "quickstart",
    [
        "search.sampler=tpe",
        "search.metric=[val/accuracy, val/equalized_odds]",
        "search.constraints=['val/accuracy >= 0.6']",
    ],
)


@pytest.mark.parametrize("number", [1, 4, 5])
def test_a_plot_of_few_configurations_is_left_out_with_its_reason(writer, number):
    study, spec = writer(), load_study("quickstart", ["search.baseline=null"])
    for place in range(number):
        study.trial("search", [0.5 + place / 10], also={"val/equalized_odds": 0.1})
    record = study.record()
    drawn = {*by_optuna(Results(spec, record)), *(["trade_off"] if FIGURES["trade_off"](Results(spec, record)) else [])}
    kinds = {"slice", "parallel_coordinate", "optimization_history", "trade_off"}
    assert drawn == (kinds if number == 5 else set())
    for name in kinds:
        assert (why_missing(name, Results(spec, record)) is None) == (name in drawn)
    said = not_shown(Results(spec, record), drawn)
    has = "1 trial of the search has" if number == 1 else f"{number} trials of the search have"
    assert f"how important each parameter is. The reason: {has} a value, {MIN_TRIALS} are needed." in said[0]
    assert any(f"The reason: {has} a value, 5 are needed." in line for line in said[1:]) == (number < 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*FIGURES, *OPTUNA}))
def test_a_figure_has_a_reason_or_is_drawn(spec, wide, frozen, final_spec, writer, name):
    final = writer()
    final.trial("final", [0.5], also={"val/equalized_odds": 0.1})
    for study, record in ((spec, wide), (spec, frozen), (final_spec, final.record()), (spec, writer().record())):
        draws = (
            by_optuna(Results(study, record), [name])
            if name in OPTUNA
            else FIGURES[name](shown(name, Results(study, record)))
        )
        assert (why_missing(name, Results(study, record)) is None) == bool(draws)


def test_the_title_of_the_trade_off_is_of_the_seeds_that_count(writer):
    study, spec = writer(), load_study("quickstart")
    for stage, value in (("baseline", 0.5), *(("search", value) for value in (0.9, 0.8, 0.7, 0.6))):
        study.trial(stage, [value], also={"val/equalized_odds": 0.1})
    title = " ".join(FIGURES["trade_off"](Results(spec, study.record())).get_suptitle().split())
    assert "in the search: 90.0% and 0.100 (best)" in title
    study = writer()
    for stage, value in (("baseline", 0.5), *(("search", value) for value in (0.9, 0.8, 0.7, 0.6))):
        study.trial(stage, [value], also={"val/equalized_odds": 0.1})
    for of, value in ((0, 0.4), (1, 0.6), (2, 0.5)):
        for seed in (1, 2):
            study.trial("confirm", [value], seed=seed, repeats=of, also={"val/equalized_odds": 0.2})
    title = " ".join(FIGURES["trade_off"](Results(spec, study.record())).get_suptitle().split())
    assert title.endswith("on validation, fresh seeds: 60.0% and 0.200 (trial 1), 40.0% and 0.200 (baseline)")


def test_no_configuration_below_a_reference_is_called_the_best(writer):
    study, spec = writer(), load_study("quickstart")
    for value in (0.9, 0.8, 0.7, 0.6, 0.5):
        study.trial("search", [value], also={"val/equalized_odds": 0.1})
    record = study.record()
    for accuracy, name in ((0.85, "best"), (0.95, "first of the search")):
        record.references["logistic_regression"] = Referenced("logistic_regression", {"val/accuracy": accuracy})
        figure = FIGURES["trade_off"](Results(spec, record))
        assert name in figure.axes[0].get_legend_handles_labels()[1]
        assert f"({name})" in " ".join(figure.get_suptitle().split())


def test_the_front_keeps_the_constraints(writer):
    """Accuracy 0.5 at a gap of 0.1 misses the limit; 0.7 at 0.2 and 0.8 at 0.3 are the front; 0.65 at 0.4 is none."""
    study = writer()
    for accuracy, gap in ((0.5, 0.1), (0.7, 0.2), (0.65, 0.4), (0.8, 0.3)):
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    drawn = FIGURES["front"](Results(LIMITED, study.record())).axes[0]
    (line,) = (line for line in drawn.lines if line.get_label() == "front")
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [(0.2, 0.7), (0.3, 0.8)]


def test_a_front_of_one_is_no_line(writer):
    study = writer()
    for value in (0.7, 0.75, 0.8):
        study.trial("search", [value], also={"val/equalized_odds": 0.1})
    labels = FIGURES["front"](Results(LIMITED, study.record())).axes[0].get_legend_handles_labels()[1]
    assert "best by first metric" in labels
    assert "front" not in labels


def test_seeds_at_the_top_end_their_axis_there_and_long_names_do_not_meet(writer):
    """No accuracy is over 100%."""
    name, test = "val/shrunk_unbiased_accuracy", "test/shrunk_unbiased_accuracy"
    spec, study = load_study("fairkl_digits", [f"search.metric={name}"]), writer()
    for stage in ("baseline", "search"):
        study.trial(stage, [1.0], metric=name)
    for seed, number in ((1, 0), (2, 0), (1, 1), (2, 1)):
        fresh = study.trial("confirm", [1.0], metric=name, repeats=number, seed=seed)
        study.append(SplitTested(trial=fresh, metrics={test: 1.0}))
    figure = FIGURES["seeds"](Results(spec, study.record()))
    figure.draw_without_rendering()
    left, right = figure.axes
    assert right.get_xlabel().startswith(test)
    assert left.get_xlim()[1] <= 1.02
    assert left.xaxis.label.get_window_extent().x1 < right.xaxis.label.get_window_extent().x0


def test_nothing_is_drawn_of_nothing(spec, writer):
    study = writer()
    study.trial("search", [], state="failed")
    record = study.record()
    assert not any(draw(Results(spec, record)) for draw in FIGURES.values())
    assert by_optuna(Results(spec, record)) == {}


@pytest.mark.slow
def test_optuna_draws_the_search_with_the_numbers_of_its_trials(spec, wide):
    drawn = by_optuna(Results(spec, wide))
    assert drawn.keys() == OPTUNA.keys()
    searched = [number for number, trial in wide.trials.items() if trial.stage == "search"]
    complete = {number for number in searched if wide.trials[number].state == "complete"}
    history = drawn["optimization_history"]
    assert set(history.data[0].x) == complete
    assert dict(zip(history.data[0].x, history.data[0].y, strict=True))[14] == pytest.approx(0.6)
    assert history.layout.shapes[0].y0 == wide.trials[0].reports[-1]["val/accuracy"], "the baseline's line"
    assert set(drawn["slice"].data[0].marker.color) == complete


@pytest.mark.slow
def test_a_parameter_that_no_trial_has_is_not_drawn(writer):
    space = "{method.alpha: {low: 0.01, high: 1.0, log: true}, method.name: {choices: [sup_con, eps_sup_info_nce]}"
    epsilon = "method.epsilon: {low: 0, high: 1, when: {method.name: [eps_sup_info_nce]}}"
    spec = load_study("fairkl_digits", [f"search.space={space}, {epsilon}}}"])
    study = writer()
    study.trial("baseline", [0.5], params={"method.alpha": 0.0})  # on no log axis
    for number in range(6):
        params = {"method.alpha": 0.01 + number / 200, "method.name": ["sup_con", "eps_sup_info_nce"][number % 2]}
        study.trial("search", [0.5], state="failed" if number == 5 else "complete", params=params)
    assert len({axis.domain for axis in by_optuna(Results(spec, study.record()))["slice"].select_xaxes()}) == 2


def test_texts_of_users_are_no_tags():
    drawn = plain(go.Figure(go.Scatter(x=["<a href='http://evil'>", "a<br>b"], y=[1, 2])), "title")
    assert list(drawn.data[0].x) == ["&lt;a href='http://evil'>", "a<br>b"]


@pytest.mark.slow
def test_files_are_the_same_every_time(spec, wide):
    one, other = (FIGURES["seeds"](Results(spec, wide)) for _ in range(2))
    assert as_png(one) == as_png(other)
    file = as_pdf(one)
    assert file == as_pdf(other)
    assert file.startswith(b"%PDF")
    assert not any(word in file for word in (b"CreationDate", b"Producer", b"Matplotlib"))


@pytest.fixture(scope="module")
def long(writer):
    """As many trials as importance needs; alpha alone decides."""
    study = writer()
    for number in range(MIN_TRIALS):
        alpha, more = 10 ** (-2 * number / MIN_TRIALS), {"val/equalized_odds": 0.1, "val/worst_group_accuracy": 0.1}
        params = {"method.alpha": alpha, "method.lambda": number * 0.618 % 2, "method.epsilon": [0.0, 0.1][number % 2]}
        value = 0.9 - 0.3 * number / MIN_TRIALS + 0.01 * (number * 0.754 % 1)
        study.trial("search", [0.2, 0.3, value - 0.1, value], params=params, also=more)
    return study.record()


@pytest.mark.slow
def test_the_parameter_that_decides_is_the_most_important(spec, long):
    found = explained(Results(spec, long))
    assert next(iter(found.shares)) == "method.alpha"
    assert found.shares["method.alpha"].low > 0.7
    figure = FIGURES["importance"](Results(spec, long))
    assert figure.get_suptitle().startswith("method.alpha alone explains 9")
    figure.draw_without_rendering()


def test_importance_needs_enough_trials(spec, writer):
    study = writer()
    for number in range(MIN_TRIALS - 1):
        study.trial("search", [number / 100], params={"method.alpha": 0.1 + number / 50, "method.lambda": 0.1})
    assert (
        explained(Results(spec, study.record(state=None))).missing
        == "29 trials of the search have a value, 30 are needed"
    )
    alone = writer()
    for number in range(MIN_TRIALS):
        alone.trial("search", [number / 50], params={"method.alpha": 0.1 + number / 50})
    assert list(explained(Results(spec, alone.record())).shares) == ["method.alpha"]


@pytest.mark.slow
def test_a_conditional_parameter_rests_on_the_trials_that_have_it(spec, writer):
    study = writer()
    for number in range(2 * MIN_TRIALS):
        params = {"method.alpha": 0.01 + number / 80, "method.lambda": number * 0.618 % 2}
        more = {"method.epsilon": [0.0, 0.1][number // 2 % 2]} if number % 2 else {}
        study.trial("search", [0.3 + number / 100 + len(more) * 0.1], params=params | more)
    found = explained(Results(spec, study.record()))
    assert found.trials == {"method.alpha": 60, "method.lambda": 60, "method.epsilon": 30}


def test_all_trials_alike_say_nothing_about_importance(spec, writer):
    study = writer()
    for number in range(MIN_TRIALS):
        study.trial("search", [0.5], params={"method.alpha": 0.1 + number / 50, "method.lambda": number / 20})
    assert explained(Results(spec, study.record())).missing == "all trials have the same value"


def test_which_metrics_are_weighed(spec, wide, frozen):
    assert trade_off_metrics(Results(spec, wide)) == ("val/equalized_odds", "val/accuracy")
    assert trade_off_metrics(Results(spec, frozen)) is None
    two = load_study("fairkl_digits", ["search.sampler=tpe", "search.metric=[val/worst_group_accuracy, val/accuracy]"])
    assert trade_off_metrics(Results(two, frozen)) == ("val/accuracy", "val/worst_group_accuracy")
    gap = load_study("fairkl_digits", ["search.metric=val/accuracy_parity"])
    assert trade_off_metrics(Results(gap, wide)) == ("val/accuracy_parity", "val/accuracy")


@given(count=st.integers(0, 50), most=st.integers(1, 20))
def test_few_of_many_are_spread_evenly(count, most):
    kept = thin(range(count), most)
    assert len(kept) == min(count, most)
    assert len({b - a for a, b in pairwise(kept)}) <= 2
    assert not count or kept[0] == 0


def test_of_many_trials_some_curves_are_drawn(spec, wide, monkeypatch):
    monkeypatch.setattr("study.analysis.figures.result_figures.CURVES", 3)
    figure = FIGURES["learning_curves"](Results(spec, wide))
    assert [len(lines.get_segments()) for lines in figure.axes[0].collections[:2]] == [1, 3]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.05, 0.3, 0.47), [0.05, 0.1, 0.2, 0.5]),
        ((1e-3, 0.8), [0.001, 0.01, 0.1, 1.0]),
        ((0.02, 0.03), [0.02]),
        ((1e-6, 1.0), [1e-6, 1e-4, 1e-2, 1.0]),
        ((0.013, 0.014), []),
    ],
)
def test_a_logarithmic_axis_has_few_whole_numbers(values, ticks):
    assert log_ticks(values) == ticks


def test_shares_stand_in_percent_on_the_axes_of_parallel_coordinates(writer):
    study, spec = writer(), load_study("fairkl_digits")
    for place in range(5):
        study.trial("search", [0.5 + place / 10])
    figure = by_optuna(Results(spec, study.record()))["parallel_coordinate"]
    first = [number.text for number in figure.layout.annotations if number.x == 0]
    assert [first[0], first[-1]] == ["50%", "90%"]
    assert not any("%" in number.text for number in figure.layout.annotations if number.x > 0)
