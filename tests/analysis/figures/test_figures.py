from contextlib import nullcontext
from itertools import combinations, islice, pairwise

import numpy as np
import pytest
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.text import Text
from told_studies import trained_twice

from study.analysis.figures import FIGURES
from study.analysis.figures.missing_figures import why_figure_missing, why_search_figures_missing
from study.analysis.figures.style import stack_panels
from study.analysis.figures.trade_off_figures import trade_off_metrics
from study.analysis.report.figure_captions import figure_caption
from study.analysis.report.write_report import figure_to_pdf, figure_to_png
from study.analysis.statistics.importance import MIN_IMPORTANCE_TRIALS, compute_importances
from study.analysis.statistics.trials_frame import sample_evenly
from study.commands.final_training import final_training_spec
from study.home.events import ReferenceFitted, TrialTested
from study.ranking import Results
from study.spec import load_study


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"importance", "ablation"}))
def test_every_figure_is_drawn(spec, wide, name):
    figure = FIGURES[name](Results(LIMITED if name == "front" else spec, wide))
    assert figure.get_suptitle()
    figure.draw_without_rendering()


SEVERAL = [
    "search.sampler=tpe",
    "search.metric=[val/accuracy, val/equalized_odds]",
    "search.constraints=['val/accuracy >= 0.6']",
]
LIMITED = load_study("quickstart", SEVERAL)


@pytest.mark.parametrize("number", [1, 4, 5])
def test_a_plot_of_few_configurations_is_left_out_with_its_reason(writer, number):
    study, spec = writer(), load_study("quickstart", ["search.baseline=null"])
    for place in range(number):
        study.trial("search", [0.5 + place / 10], also={"val/equalized_odds": 0.1})
    record = study.record()
    drawn = {"trade_off"} if FIGURES["trade_off"](Results(spec, record)) else set()
    assert bool(drawn) == (number == 5)
    assert (why_figure_missing("trade_off", Results(spec, record)) is None) == bool(drawn)
    said = why_search_figures_missing(Results(spec, record), drawn)
    has = "1 trial of the search has" if number == 1 else f"{number} trials of the search have"
    assert f"how important each parameter is. The reason: {has} a value, {MIN_IMPORTANCE_TRIALS} are needed." in said[0]
    has = "1 configuration has" if number == 1 else f"{number} configurations have"
    assert any(f"The reason: {has} both metrics, 5 are needed." in line for line in said[1:]) == (number < 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_figure_has_a_reason_or_is_drawn(spec, wide, frozen, final_spec, writer, name):
    final = writer()
    final.trial("final", [0.5], also={"val/equalized_odds": 0.1})
    for study, told in ((spec, wide), (spec, frozen), (final_spec, final.record()), (spec, writer().record())):
        drawn = FIGURES[name](Results(study, told))
        assert (why_figure_missing(name, Results(study, told)) is None) == bool(drawn)


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
    results = Results(spec, study.record())
    figure = FIGURES["trade_off"](results)
    title = " ".join(figure.get_suptitle().split())
    assert title.endswith("on validation, fresh seeds: 60.0% and 0.200 (trial 1), 40.0% and 0.200 (baseline)")
    caption = figure_caption("trade_off", results)
    assert caption.startswith("First panel: each mark is one configuration of the search. Second: those that ran on")
    assert "mean ± sample standard deviation over these" in caption
    named = [text.get_text() for text in figure.axes[1].texts]
    assert sorted(named) == ["baseline", "trial 1"]  # of all that ran on fresh seeds, whose names would overlap
    assert "test split was read" not in caption
    for trial in results.record.trials.values():
        if trial.stage == "confirm" and trial.repeated_trial != 2:
            trial.test_metrics = {"test/accuracy": 0.5, "test/equalized_odds": 0.2}
    assert "that ran on fresh seeds and whose test split was read, mean" in figure_caption(
        "trade_off", Results(spec, results.record)
    )


def test_the_front_of_the_trade_off_leaves_the_baseline_aside_and_says_so(writer):
    for has_baseline in (True, False):
        study = writer()
        for stage, value in [("baseline", 0.5)][:has_baseline] + [("search", value) for value in (0.6, 0.7, 0.8, 0.9)]:
            study.trial(stage, [value], also={"val/equalized_odds": value / 2})
        told = figure_caption("trade_off", Results(load_study("quickstart"), study.record()))
        assert "the front joins those that no other beats in both" in told
        assert ("in both, the baseline left aside" in told) is has_baseline


def test_no_configuration_below_a_reference_is_called_the_best(writer):
    study, spec = writer(), load_study("quickstart")
    for value in (0.9, 0.8, 0.7, 0.6, 0.5):
        study.trial("search", [value], also={"val/equalized_odds": 0.1})
    record = study.record()
    for accuracy, name in ((0.85, "best"), (0.95, "first of the search")):
        record.reference_events["logistic_regression"] = ReferenceFitted(
            "logistic_regression", {"val/accuracy": accuracy}
        )
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


def places(axes, *names):
    """The places of the marks whose label has one of these names."""
    marks = [marks for marks in axes.collections if any(name in marks.get_label() for name in names)]
    return [tuple(at) for each in marks for at in each.get_offsets()]


ONE_LIMIT = ["search.metric=val/accuracy", "search.sampler=tpe", "search.constraints=['val/accuracy >= 0.6']"]
ONE_LIMITED = load_study("quickstart", ONE_LIMIT)


@pytest.mark.parametrize(("name", "limited"), [("front", LIMITED), ("trade_off", ONE_LIMITED)])
def test_what_breaks_a_limit_has_marks_of_its_own(writer, name, limited):
    study, kept, broken = writer(), [(0.2, 0.7), (0.3, 0.8), (0.4, 0.65)], [(0.05, 0.5), (0.1, 0.55)]
    study.trial("baseline", [0.4], also={"val/equalized_odds": 0.3})
    for gap, accuracy in kept + broken:
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    axes = FIGURES[name](Results(limited, study.record())).axes[0]
    assert sorted(places(axes, "breaks val/accuracy >= 0.6")) == broken
    assert sorted(places(axes, "complete")) == kept
    assert places(axes, "breaks a limit") == [(0.3, 0.4)]


def test_the_curve_of_a_trial_that_breaks_a_limit_ends_in_a_mark_of_its_own(writer):
    study = writer()
    for values in ([0.5, 0.8], [0.3, 0.7], [0.4, 0.55], [0.6, 0.5]):
        study.trial("search", values)
    axes = FIGURES["learning_curves"](Results(ONE_LIMITED, study.record())).axes[0]
    assert sorted(places(axes, "breaks val/accuracy >= 0.6")) == [(2.0, 0.5), (2.0, 0.55)]
    assert places(axes, "complete") == [(2.0, 0.7)]


def test_where_all_keep_the_limits_no_mark_is_of_what_breaks_one(writer):
    study = writer()
    for stage in ("baseline", *["search"] * 5):
        study.trial(stage, [0.7], also={"val/equalized_odds": 0.1})
    assert not places(FIGURES["front"](Results(LIMITED, study.record())).axes[0], "breaks")


@pytest.mark.parametrize("name", ["front", "trade_off"])
def test_what_breaks_a_limit_on_fresh_seeds_alone_is_in_the_legend(writer, name):
    spec = load_study("quickstart", [*SEVERAL, "search.confirm={top: 1, seeds: 2}"])
    study = writer()
    for gap, accuracy in ((0.2, 0.7), (0.3, 0.8), (0.4, 0.65), (0.5, 0.62), (0.6, 0.61)):
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    for number, accuracy in ((0, 0.7), (1, 0.5)):
        for seed in (1, 2):
            also = {"val/equalized_odds": 0.2 + 0.1 * number}
            study.trial("confirm", [accuracy], also=also, repeats=number, seed=seed)
    if name == "trade_off":
        spec = load_study("quickstart", [*ONE_LIMIT, "search.confirm={top: 1, seeds: 2}"])
    figure = FIGURES[name](Results(spec, study.record()))
    in_search, fresh = (places(axes, "breaks") for axes in figure.axes)
    assert (in_search, fresh) == ([], [(pytest.approx(0.3), 0.5)])
    assert any("breaks" in text.get_text() for text in figure.legends[0].get_texts())


def test_the_trials_on_a_front_are_called_as_in_tables_and_their_names_do_not_meet(writer):
    spec, study = load_study("quickstart", [*SEVERAL, "search.confirm={top: 3, seeds: 2}"]), writer()
    pairs = [(0.1, 0.7), (0.101, 0.701), (0.102, 0.702), (0.103, 0.703)]
    for gap, accuracy in pairs:
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    for number, (gap, accuracy) in enumerate(pairs):
        for seed in (1, 2):
            study.trial("confirm", [accuracy], also={"val/equalized_odds": gap}, repeats=number, seed=seed)
    figure = FIGURES["front"](Results(spec, study.record()))
    figure.draw_without_rendering()
    names = figure.axes[1].texts
    assert sorted(text.get_text() for text in names) == ["trial 0", "trial 1", "trial 2", "trial 3"]
    boxes = [Text.get_window_extent(text) for text in names]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def front_of_pairs(spec, study, pairs):
    """The front of configurations by gap and accuracy, each on two fresh seeds, as drawn."""
    for gap, accuracy in pairs:
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    for number, (gap, accuracy) in enumerate(pairs):
        for seed in (1, 2):
            known = {"val/equalized_odds": gap, "test/equalized_odds": gap}
            study.trial("confirm", [accuracy], test=accuracy, also=known, repeats=number, seed=seed)
    figure = FIGURES["front"](Results(spec, study.record()))
    figure.draw_without_rendering()
    return figure


def test_no_name_of_a_front_crosses_the_axis_beside_it(writer):
    """It would to the left of the first point, as there are three panels."""
    spec, study = load_study("quickstart", [*SEVERAL, "search.confirm={top: 2, seeds: 2}"]), writer()
    pairs = [(0.1, 0.7), (0.9, 0.9)]
    figure = front_of_pairs(spec, study, pairs)
    axes = figure.axes[1]
    assert len(figure.axes) == 3
    assert all(text.get_window_extent().x0 > axes.get_window_extent().x0 for text in axes.texts)


def test_no_line_of_a_front_runs_into_a_name(writer):
    """Names beside the axis stand to the right of their points, where the front goes on."""
    spec = load_study("quickstart", [*SEVERAL[:2], "search.confirm={top: 3, seeds: 2}"])
    study, pairs = writer(), [(0.1, 0.7), (0.11, 0.72), (0.6, 0.95)]
    figure = front_of_pairs(spec, study, pairs)
    axes = figure.axes[1]
    (line,) = (line for line in axes.lines if line.get_label() == "front")
    drawn = line.get_transform().transform_path(line.get_path())
    assert len(axes.texts) == 3
    assert not [text.get_text() for text in axes.texts if drawn.intersects_bbox(text.get_window_extent(), filled=False)]


NEWCOMERS = [(2.0, 0.89), (7.3, 0.96), (14.3, 0.965), (28.0, 0.974), (30.0, 0.986)]  # a front whose line is flat


def drawn_fronts():
    """Fronts of few and many configurations: with a flat line, steep, crowded, and with points at one place."""
    draws = np.random.default_rng(0)
    yield [(gap / 100, accuracy) for gap, accuracy in NEWCOMERS]
    while True:
        count = draws.integers(2, 9)
        gaps = np.sort(draws.uniform(0, draws.choice([0.05, 1.0]), count))
        accuracies = 1 - draws.choice([0.02, 0.4]) * np.sort(draws.uniform(0, 1, count))[::-1] ** draws.choice([1, 4])
        yield [(float(gap), float(accuracy)) for gap, accuracy in zip(gaps, accuracies, strict=True)]


@pytest.mark.parametrize(
    "pairs",
    [pytest.param(pairs, marks=[pytest.mark.slow] * (n > 1)) for n, pairs in enumerate(islice(drawn_fronts(), 40))],
)
@pytest.mark.parametrize("is_narrow", [False, True])
def test_each_name_of_a_front_is_nearest_to_its_own_point(writer, pairs, is_narrow):
    """Or a line leads from it to its point; and none lies on another or leaves its panel."""
    study, spec = writer(), load_study("quickstart", [*SEVERAL[:2], "search.confirm={top: 9, seeds: 2}"])
    for gap, accuracy in pairs:
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    for number, (gap, accuracy) in enumerate(pairs):
        for seed, off in ((1, 0.01), (2, -0.01)):
            known = {"val/equalized_odds": gap, "test/equalized_odds": gap}
            study.trial("confirm", [accuracy + off], test=accuracy + off, also=known, repeats=number, seed=seed)
    with stack_panels() if is_narrow else nullcontext():
        figure = FIGURES["front"](Results(spec, study.record()))
    figure.draw_without_rendering()
    assert len(figure.axes) == 3
    for axes in figure.axes[1:]:
        points = [axes.transData.transform(pair) for pair in pairs]
        boxes = {text: Text.get_window_extent(text) for text in axes.texts}  # of the name, without its line
        assert sorted(text.get_text() for text in boxes) == sorted(f"trial {number}" for number in range(len(pairs)))
        for text, box in boxes.items():
            own = int(text.get_text().split()[1])
            away = [np.hypot(*np.maximum(np.maximum(box.min - at, at - box.max), 0)) for at in points]
            assert text.arrow_patch or away[own] == min(away), text
            inside = axes.get_window_extent().padded(1)
            assert inside.contains(*box.min), text
            assert inside.contains(*box.max), text
            assert min(away) > 0
        assert not any(one.overlaps(other) for one, other in combinations(boxes.values(), 2))
        shares = [float(tick.get_text().rstrip("%")) for tick in axes.get_yticklabels()]
        assert len(shares) > 1
        assert max(shares) <= 100


def test_where_nothing_keeps_the_limits_no_line_joins_a_front(writer):
    study = writer()
    for gap, accuracy in ((0.2, 0.4), (0.3, 0.4)):
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    results = Results(LIMITED, study.record())
    assert len(results.front) > 1
    assert "front" not in FIGURES["front"](results).axes[0].get_legend_handles_labels()[1]


def test_no_legend_is_wider_than_its_figure(writer):
    limits = "search.constraints=['val/equalized_odds <= 0.05', 'val/demographic_parity <= 0.05']"
    study = writer()
    for gap, accuracy in ((0.2, 0.7), (0.3, 0.8)):
        study.trial("search", [accuracy], also={"val/equalized_odds": gap, "val/demographic_parity": gap})
    figure = FIGURES["front"](Results(load_study("quickstart", [*SEVERAL, limits]), study.record()))
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().x1 <= figure.bbox.x1


def test_a_front_of_one_is_no_line(writer):
    study = writer()
    for value in (0.7, 0.75, 0.8):
        study.trial("search", [value], also={"val/equalized_odds": 0.1})
    labels = FIGURES["front"](Results(LIMITED, study.record())).axes[0].get_legend_handles_labels()[1]
    assert "best by first metric" in labels
    assert "front" not in labels


@pytest.mark.parametrize("metric", ["shrunk_unbiased_accuracy", "shrunk_worst_group_accuracy"])
def test_seeds_at_the_top_end_their_axis_there_and_long_names_do_not_meet(writer, metric):
    """No accuracy is over 100%."""
    name, test = f"val/{metric}", f"test/{metric}"
    spec, study = load_study("fairkl_digits", [f"search.metric={name}"]), writer()
    for stage in ("baseline", "search"):
        study.trial(stage, [1.0], metric=name)
    for seed, number in ((1, 0), (2, 0), (1, 1), (2, 1)):
        fresh = study.trial("confirm", [1.0], metric=name, repeats=number, seed=seed)
        study.append(TrialTested(trial=fresh, metrics={test: 1.0}))
    figure = FIGURES["seeds"](Results(spec, study.record()))
    figure.draw_without_rendering()
    left, right = figure.axes
    assert right.get_xlabel().replace("\n", "").startswith(test)
    assert left.get_xlim()[1] <= 1.02
    assert left.xaxis.label.get_window_extent().x1 < right.xaxis.label.get_window_extent().x0
    for axes in figure.axes:  # arms with long names leave less of the width
        assert axes.xaxis.label.get_window_extent().width < 0.75 * axes.get_window_extent().width


def test_the_best_reference_stands_beside_the_seeds_and_in_the_trade_off(writer):
    """It has no seed, and so no ring."""
    study, odds = writer(), "equalized_odds"
    for value in (0.5, 0.6, 0.7, 0.75, 0.8):
        study.trial("baseline" if value == 0.5 else "search", [value], also={f"val/{odds}": value})
    for seed, number in ((1, 0), (2, 0), (1, 4), (2, 4)):
        fresh = study.trial("confirm", [0.5 + number / 20], repeats=number, seed=seed, also={f"val/{odds}": 0.2})
        study.append(TrialTested(trial=fresh, metrics={"test/accuracy": 0.7, f"test/{odds}": 0.2}))
    names = ("val/accuracy", f"val/{odds}", "test/accuracy", f"test/{odds}")
    study.append(ReferenceFitted("logistic_regression", dict(zip(names, (0.61, 0.3, 0.62, 0.31), strict=True)), 1.0))
    results = Results(load_study("quickstart"), study.record())
    figure = FIGURES["seeds"](results)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["baseline", "logistic regression", "trial 4"]
    rings = [each.get_offsets().tolist() for each in figure.axes[0].collections if isinstance(each, PathCollection)]
    assert sorted(height for points in rings for _, height in points) == [0, 0, 2, 2]
    *_, on_test = FIGURES["trade_off"](results).axes
    assert [tuple(point) for point in places(on_test, "logistic regression")] == [(0.31, 0.62)]


@pytest.mark.parametrize(("joined", "is_model"), [(0.62, True), (0.58, False)])
def test_a_model_that_is_an_ensemble_has_a_mark_among_its_seeds(joined, is_model):
    results = Results(final_training_spec(quickstart(), [0, 1]), trained_twice(joined))
    figure = FIGURES["seeds"](results)
    of_splits = [[each.get_offsets() for each in axes.collections] for axes in figure.axes]
    named = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert named == [["the model"] * is_model] * 2
    values = [[tuple(point) for each in of for point in each] for of in of_splits]
    assert [(0.62, 0.0) in values[0], (0.55, 0.0) in values[1]] == [is_model] * 2
    assert ("the ensemble" in figure_caption("seeds", results)) is is_model


@pytest.mark.parametrize("panels", ["beside", "below"])
@pytest.mark.parametrize("at", [(0.2, 0.7), (0.201, 0.699), (0.22, 0.71), (0.31, 0.62)])
def test_each_name_in_the_trade_off_is_beside_its_own_mark_and_over_none(writer, at, panels):
    """Also that of the reference, of which the legend alone would leave open which mark it is."""
    study, odds = writer(), "equalized_odds"
    for value in (0.5, 0.6, 0.7, 0.75, 0.8):
        study.trial("baseline" if value == 0.5 else "search", [value], also={f"val/{odds}": value})
    for number, *fresh in ((0, 0.3, 0.5), (3, 0.21, 0.68), (4, 0.2, 0.7)):
        for seed, off in ((1, -0.02), (2, 0.02)):
            own = study.trial("confirm", [fresh[1]], repeats=number, seed=seed, also={f"val/{odds}": fresh[0]})
            tested = {f"test/{odds}": fresh[0] + off, "test/accuracy": fresh[1] + off}
            study.append(TrialTested(trial=own, metrics=tested))
    names = ("val/accuracy", f"val/{odds}", "test/accuracy", f"test/{odds}")
    study.append(ReferenceFitted("logistic_regression", dict(zip(names, (0.61, 0.3, *at[::-1]), strict=True)), 1.0))
    with stack_panels() if panels == "below" else nullcontext():
        figure = FIGURES["trade_off"](Results(load_study("quickstart"), study.record()))
    figure.draw_without_rendering()
    *_, axes = figure.axes
    marks = {"baseline": (0.3, 0.5), "trial 3": (0.21, 0.68), "trial 4": (0.2, 0.7), "reference": at}
    places = {name: axes.transData.transform(place) for name, place in marks.items()}
    named = {text.get_text(): Text.get_window_extent(text) for text in axes.texts}
    assert {"baseline", "trial 4", "reference"} == set(named)
    assert "reference: logistic regression" in [text.get_text() for text in figure.legends[0].get_texts()]
    for name, box in named.items():
        away = {
            mark: np.hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1)) * 72 / figure.dpi
            for mark, (x, y) in places.items()
        }
        assert min(away.values()) > 4, "over no mark"
        (text,) = (text for text in axes.texts if text.get_text() == name)
        others = [far for mark, far in away.items() if marks[mark] != marks[name]]
        assert away[name] < min(others) or text.arrow_patch is not None, "nearest to its own, or led there by a line"


def test_no_ring_of_a_seed_is_cut_by_the_edge_of_its_panel(writer):
    """Test ends lower than validation, whose top is at 100%."""
    study, spec = writer(), load_study("quickstart")
    for stage in ("baseline", "search"):
        study.trial(stage, [1.0])
    for seed, number in ((1, 0), (2, 0), (1, 1), (2, 1)):
        study.trial("confirm", [0.98 + 0.01 * seed], test=0.9 + 0.04 * seed, repeats=number, seed=seed)
    figure = FIGURES["seeds"](Results(spec, study.record()))
    figure.draw_without_rendering()
    ring = figure.dpi / 72 * 4
    for axes in figure.axes:
        rings = [each for each in axes.collections if isinstance(each, PathCollection)]
        across = [axes.transData.transform(at)[0] for each in rings for at in each.get_offsets()]
        assert len(across) == 4
        inside = axes.get_window_extent()
        assert inside.x0 + ring < min(across)
        assert max(across) < inside.x1 - ring


def test_nothing_is_drawn_of_nothing(spec, writer):
    study = writer()
    study.trial("search", [], state="failed")
    record = study.record()
    assert not any(draw(Results(spec, record)) for draw in FIGURES.values())


@pytest.mark.slow
def test_files_are_the_same_every_time(spec, wide):
    one, other = (FIGURES["seeds"](Results(spec, wide)) for _ in range(2))
    assert figure_to_png(one) == figure_to_png(other)
    file = figure_to_pdf(one)
    assert file == figure_to_pdf(other)
    assert file.startswith(b"%PDF")
    assert not any(word in file for word in (b"CreationDate", b"Producer", b"Matplotlib"))


@pytest.fixture(scope="module")
def long(writer):
    """As many trials as importance needs; alpha alone decides."""
    study = writer()
    for number in range(MIN_IMPORTANCE_TRIALS):
        alpha, more = (
            10 ** (-2 * number / MIN_IMPORTANCE_TRIALS),
            {"val/equalized_odds": 0.1, "val/worst_group_accuracy": 0.1},
        )
        params = {"method.alpha": alpha, "method.lambda": number * 0.618 % 2, "method.epsilon": [0.0, 0.1][number % 2]}
        value = 0.9 - 0.3 * number / MIN_IMPORTANCE_TRIALS + 0.01 * (number * 0.754 % 1)
        study.trial("search", [0.2, 0.3, value - 0.1, value], params=params, also=more)
    return study.record()


@pytest.mark.slow
def test_the_parameter_that_decides_is_the_most_important(spec, long):
    found = compute_importances(Results(spec, long))
    assert next(iter(found.share_by_key)) == "method.alpha"
    assert found.share_by_key["method.alpha"].low > 0.7
    figure = FIGURES["importance"](Results(spec, long))
    assert figure.get_suptitle().startswith("method.alpha alone explains 9")
    figure.draw_without_rendering()


def test_importance_needs_enough_trials(spec, writer):
    study = writer()
    for number in range(MIN_IMPORTANCE_TRIALS - 1):
        study.trial("search", [number / 100], params={"method.alpha": 0.1 + number / 50, "method.lambda": 0.1})
    assert (
        compute_importances(Results(spec, study.record(state=None))).why_missing
        == "29 trials of the search have a value, 30 are needed"
    )
    alone = writer()
    for number in range(MIN_IMPORTANCE_TRIALS):
        alone.trial("search", [number / 50], params={"method.alpha": 0.1 + number / 50})
    assert list(compute_importances(Results(spec, alone.record())).share_by_key) == ["method.alpha"]


@pytest.mark.slow
def test_a_conditional_parameter_rests_on_the_trials_that_have_it(spec, writer):
    study = writer()
    for number in range(2 * MIN_IMPORTANCE_TRIALS):
        params = {"method.alpha": 0.01 + number / 80, "method.lambda": number * 0.618 % 2}
        more = {"method.epsilon": [0.0, 0.1][number // 2 % 2]} if number % 2 else {}
        study.trial("search", [0.3 + number / 100 + len(more) * 0.1], params=params | more)
    found = compute_importances(Results(spec, study.record()))
    assert found.n_trials_by_key == {"method.alpha": 60, "method.lambda": 60, "method.epsilon": 30}


def test_all_trials_alike_say_nothing_about_importance(spec, writer):
    study = writer()
    for number in range(MIN_IMPORTANCE_TRIALS):
        study.trial("search", [0.5], params={"method.alpha": 0.1 + number / 50, "method.lambda": number / 20})
    assert compute_importances(Results(spec, study.record())).why_missing == "all trials have the same value"


def test_which_metrics_are_weighed(spec, wide, frozen):
    assert trade_off_metrics(Results(spec, wide)) == ("val/equalized_odds", "val/accuracy")
    assert trade_off_metrics(Results(spec, frozen)) is None
    two = load_study("fairkl_digits", ["search.sampler=tpe", "search.metric=[val/worst_group_accuracy, val/accuracy]"])
    assert trade_off_metrics(Results(two, frozen)) == ("val/accuracy", "val/worst_group_accuracy")
    gap = load_study("fairkl_digits", ["search.metric=val/accuracy_parity"])
    assert trade_off_metrics(Results(gap, wide)) == ("val/accuracy_parity", "val/accuracy")


@given(count=st.integers(0, 50), most=st.integers(1, 20))
def test_few_of_many_are_spread_evenly(count, most):
    kept = sample_evenly(range(count), most)
    assert len(kept) == min(count, most)
    assert len({b - a for a, b in pairwise(kept)}) <= 2
    assert not count or kept[0] == 0


def test_of_many_trials_some_curves_are_drawn(spec, wide, monkeypatch):
    monkeypatch.setattr("study.analysis.figures.result_figures.MAX_CURVES_PER_KIND", 3)
    figure = FIGURES["learning_curves"](Results(spec, wide))
    assert [len(lines.get_segments()) for lines in figure.axes[0].collections[:2]] == [1, 3]


def test_trials_of_one_epoch_have_no_curves():
    told = Results(quickstart(), record(Told("search", [0.5]), Told("search", [0.6])))
    assert FIGURES["learning_curves"](told) is None
    assert "in two epochs" in (why_figure_missing("learning_curves", told) or "")


def test_the_caption_of_learning_curves_says_what_early_stopping_spares(writer):
    study = writer()
    study.trial("search", [0.5])
    record = study.record()

    def caption(*changes: str) -> str:
        return figure_caption("learning_curves", Results(load_study("quickstart", changes), record))

    assert caption().endswith("pruned where it is worse; the baseline runs in full.")
    assert caption("search.baseline=null").endswith("pruned where it is worse.")
    assert "pruned" not in caption("search.early_stopping={name: none}")
