import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.analysis.figures import FIGURES
from study.analysis.figures.interactive import INTERACTIVE
from study.analysis.figures.interactive.style import DARK
from study.analysis.figures.rungs import RungRows
from study.analysis.figures.scale import Scale
from study.analysis.figures.style import ORANGE, VERMILLION
from study.analysis.figures.surface import parameter_pair
from study.analysis.figures.two_metrics import pareto, trade_off_metrics
from study.analysis.report.report import pdf, png
from study.analysis.statistics.frame import thin
from study.analysis.statistics.importance import LEAST, explained
from study.analysis.statistics.search_efficiency import best_so_far
from study.home.record import TrialRecord
from study.spec import load_study
from study.spec.schema import Domain

OF_RANDOM_SEARCHES = "tuning_curve"


@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"importance", "hypervolume", "ablation", OF_RANDOM_SEARCHES}))
def test_every_figure_is_drawn(spec, wide, name):
    figure = FIGURES[name](spec, wide)
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


def test_fronts_keep_the_constraints(writer):
    """Accuracy 0.5 at a gap of 0.1 misses the limit; 0.7 at 0.2 and 0.8 at 0.3 are the front; 0.65 at 0.4 is none."""
    study = writer()
    for accuracy, gap in ((0.5, 0.1), (0.7, 0.2), (0.65, 0.4), (0.8, 0.3)):
        study.trial("search", [accuracy], also={"val/equalized_odds": gap})
    record = study.record()
    figure = FIGURES["hypervolume"](LIMITED, record)
    assert figure.get_suptitle() == "Hypervolume 0.63 after trial 3"  # .7 * .8 + .1 * .7
    assert list(best_so_far(LIMITED, record)["hypervolume"]) == pytest.approx([0.0, 0.56, 0.56, 0.63])
    drawn = FIGURES["trade_off"](LIMITED, record).axes[0]
    (line,) = (line for line in drawn.lines if line.get_label() == "front")
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [(0.2, 0.7), (0.3, 0.8)]
    (pointed,) = (trace for trace in INTERACTIVE["trade_off"](LIMITED, record).data if trace.name == "front")
    assert list(pointed.x) == [0.2, 0.3]


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_drawn_of_nothing(spec, writer, name):
    study = writer()
    study.trial("search", [], state="failed")
    assert FIGURES[name](spec, study.record()) is None


def test_the_share_of_time_is_of_the_whole_search_pruned_trials_after_the_last_complete_one_included(spec, writer):
    study = writer()
    for value in (0.5, 0.7):
        study.trial("search", [0.1, 0.1, 0.1, value])  # 8 s each
    for _ in range(2):
        study.trial("search", [0.1, 0.1, 0.1], state="pruned")  # 6 s each
    figure = FIGURES["best_over_time"](spec, study.record())
    assert "after 57% of the trial time" in figure.get_suptitle()  # 16 of 28 s
    clock, busy = (axes.lines[0].get_xdata() for axes in figure.axes)
    assert (clock[-1], busy[-1]) == (58.0, 28.0), "the line goes on to the end of the search"


def test_files_are_the_same_every_time(spec, wide):
    one, other = (FIGURES["surface"](spec, wide) for _ in range(2))
    assert png(one) == png(other)
    file = pdf(one)
    assert file == pdf(other)
    assert file.startswith(b"%PDF")
    assert not any(word in file for word in (b"CreationDate", b"Producer", b"Matplotlib"))


OF_TRIALS = ("trade_off", "worst_group", "parameters", "surface", "progress")


@pytest.mark.parametrize("name", sorted(INTERACTIVE.keys() - {"importance", "hypervolume", OF_RANDOM_SEARCHES}))
def test_what_one_can_point_at(spec, wide, name):
    plot = json.loads(INTERACTIVE[name](spec, wide).to_json())
    told = [text for trace in plot["data"] for text in trace.get("hovertext", [])]
    assert plot["data"]
    assert name not in OF_TRIALS or any(text.startswith("trial 14<br>val/accuracy 60.0%") for text in told)


def test_of_values_that_are_all_alike_no_axis_shows_impossible_ones_and_both_labels_can_be_read(spec, writer):
    study, also = writer(), {"val/worst_group_accuracy": 0.0}
    for alpha in (0.2, 0.3):
        leader = study.trial("search", [0.5], params={"method.alpha": alpha}, also=also)
        for seed in (1, 2):
            study.trial("confirm", [0.5], repeats=leader, seed=seed, also=also)
    plot = INTERACTIVE["worst_group"](spec, study.record())
    axes = [plot.layout.yaxis, plot.layout.xaxis, plot.layout.xaxis2]
    assert all(axis.autorangeoptions.clipmin == -0.05 and axis.autorangeoptions.clipmax == 1.05 for axis in axes)
    assert len({trace.textposition for trace in plot.data if trace.text}) == 2


def test_texts_of_users_are_escaped(writer):
    spec = load_study(
        "quickstart", ["search.space={data.name: {choices: [biased_digits]}, method.alpha: {low: 0.1, high: 1}}"]
    )
    study = writer()
    for alpha in (0.2, 0.3):
        study.trial("search", [0.5], params={"method.alpha": alpha, "data.x": "<a href='http://evil'>"})
    plot = INTERACTIVE["parameters"](spec, study.record()).to_json()
    assert "<a" not in next(trace["hovertext"][0] for trace in json.loads(plot)["data"] if "hovertext" in trace)
    assert "&lt;a" in plot


@pytest.fixture(scope="module")
def long(writer):
    """As many trials as importance needs; alpha alone decides."""
    study = writer()
    for number in range(LEAST):
        alpha, more = 10 ** (-2 * number / LEAST), {"val/equalized_odds": 0.1, "val/worst_group_accuracy": 0.1}
        params = {"method.alpha": alpha, "method.lambda": number * 0.618 % 2, "method.epsilon": [0.0, 0.1][number % 2]}
        value = 0.9 - 0.3 * number / LEAST + 0.01 * (number * 0.754 % 1)
        study.trial("search", [0.2, 0.3, value - 0.1, value], params=params, also=more)
    return study.record()


def test_the_parameter_that_decides_is_the_most_important(spec, long):
    found = explained(spec, long)
    assert next(iter(found.shares)) == "method.alpha"
    assert found.shares["method.alpha"].low > 0.7
    figure = FIGURES["importance"](spec, long)
    assert figure.get_suptitle().startswith("method.alpha alone explains 9")
    figure.draw_without_rendering()


def test_importance_needs_enough_trials(spec, writer):
    study = writer()
    for number in range(LEAST - 1):
        study.trial("search", [number / 100], params={"method.alpha": 0.1 + number / 50, "method.lambda": 0.1})
    assert explained(spec, study.record(state=None)).missing == "29 trials of the search have a value, 30 are needed"
    alone = writer()
    for number in range(LEAST):
        alone.trial("search", [number / 50], params={"method.alpha": 0.1 + number / 50})
    assert list(explained(spec, alone.record()).shares) == ["method.alpha"]


def test_a_conditional_parameter_rests_on_the_trials_that_have_it(spec, writer):
    study = writer()
    for number in range(2 * LEAST):
        params = {"method.alpha": 0.01 + number / 80, "method.lambda": number * 0.618 % 2}
        more = {"method.epsilon": [0.0, 0.1][number // 2 % 2]} if number % 2 else {}
        study.trial("search", [0.3 + number / 100 + len(more) * 0.1], params=params | more)
    found = explained(spec, study.record())
    assert found.trials == {"method.alpha": 60, "method.lambda": 60, "method.epsilon": 30}


def test_all_trials_alike_say_nothing_about_importance(spec, writer):
    study = writer()
    for number in range(LEAST):
        study.trial("search", [0.5], params={"method.alpha": 0.1 + number / 50, "method.lambda": number / 20})
    assert explained(spec, study.record()).missing == "all trials have the same value"


POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(points=POINTS)
def test_the_front_is_what_nothing_is_better_than(points):
    found = pareto(points, "min", "max")  # a small gap and a high accuracy are wanted

    def beaten(one):
        return any(x <= one[0] and y >= one[1] and (x, y) != one for x, y in points)

    assert sorted(found) == [place for place, one in enumerate(points) if not beaten(one)]
    assert all(points[a] <= points[b] for a, b in pairwise(found))


def test_which_metrics_are_weighed(spec, wide, frozen):
    assert trade_off_metrics(spec, wide) == ("val/equalized_odds", "val/accuracy")
    assert trade_off_metrics(spec, frozen) is None
    two = load_study("quickstart", ["search.sampler=tpe", "search.metric=[val/worst_group_accuracy, val/accuracy]"])
    assert trade_off_metrics(two, frozen) == ("val/accuracy", "val/worst_group_accuracy")
    gap = load_study("quickstart", ["search.metric=val/accuracy_parity"])
    assert trade_off_metrics(gap, wide) == ("val/accuracy_parity", "val/accuracy")


def test_a_worst_group_that_is_always_wrong_is_not_drawn(spec, writer):
    study = writer()
    for value in (0.4, 0.5):
        study.trial("search", [value], also={"val/worst_group_accuracy": 0.0})
    assert FIGURES["worst_group"](spec, study.record()) is None


def test_tiles_hold_means_and_gaps(writer):
    spec = load_study(
        "quickstart", ["search.space={method.lambda: {low: 0, high: 2}, method.epsilon: {choices: [0.0, 0.5]}}"]
    )

    def of(*further):
        study, left = writer(), [(0.2, 0.1, 0.0), (0.4, 0.3, 0.0), (0.3, 0.9, 0.0), (0.9, 0.1, 0.5)]
        right = [(0.8, 1.9, 0.5), (0.9, 1.9, 0.5), (1.0, 1.1, 0.5), (0.2, 1.5, 0.0), (0.4, 1.5, 0.0)]
        for value, strength, epsilon in [*left, *right, *further]:
            study.trial("search", [value], params={"method.lambda": strength, "method.epsilon": epsilon})
        return parameter_pair(spec, study.record())

    assert of() is None, "nine trials are too few"
    found = of((0.9, 0.1, 0.5))
    assert found.keys == ("method.lambda", "method.epsilon")
    (across, up), means = found.tiles()
    assert across.tolist() == [0.0, 1.0, 2.0]
    assert up.tolist() == [-0.5, 0.5, 1.5]
    np.testing.assert_allclose(means, [[0.3, np.nan], [np.nan, 0.9]], err_msg="tiles of two are empty")


def test_pruned_trials_lie_below_all_values_in_the_row_of_their_epoch(spec, writer):
    study = writer()
    for values, state in (([0.1, 0.5], "complete"), ([0.9], "pruned"), ([0.8, 0.8], "pruned"), ([0.7], "pruned")):
        study.trial("search", values, state=state)
    study.trial("search", [0.2, 0.7])
    record = study.record()
    rows = RungRows.of(list(record.trials.values()), [0.5, 0.7])
    heights = rows.heights
    assert heights.keys() == {1, 2, 3}
    assert heights[1] == heights[3] < heights[2] < rows.low < 0.5
    assert [rows.names[heights[number]] for number in (1, 2)] == ["epoch 1", "epoch 2"]
    assert min(rows.ticks) > rows.low
    for name in ("progress", "parameters"):
        traces = {trace.name: trace for trace in INTERACTIVE[name](spec, record).data}
        assert set(traces["pruned, at its epoch"].y) == set(heights.values())
        assert "complete" in traces


def test_at_many_epochs_a_row_stands_for_several():
    trials = [TrialRecord(n, "search", {}, 0, state="pruned", reports=[None] * (n + 1)) for n in range(9)]
    rows = RungRows.of(trials, [0.5])
    assert list(rows.names.values()) == ["epochs 1 to 3", "epochs 4 to 5", "epochs 6 to 7", "epochs 8 to 9"]
    assert sorted(rows.heights.values()) == [rows.heights[n] for n in range(9)]


def test_ranks_need_ten_trials_and_name_the_best_first(spec, wide, frozen):
    assert FIGURES["ranks"](spec, frozen) is None
    figure = INTERACTIVE["ranks"](spec, wide)
    assert len(figure.data) == 3, "three parameters, three pairs"
    shades = dict(zip(figure.data[0].hovertext, figure.data[0].marker.color, strict=True))
    assert next(rank for text, rank in shades.items() if text.startswith("trial 1<br>")) == 1


def test_every_colour_has_a_dark_one(spec, wide):
    known = {*DARK, ORANGE, VERMILLION}
    for name in sorted(INTERACTIVE.keys() - {"importance", "hypervolume", OF_RANDOM_SEARCHES}):
        plot = re.sub(r'\[\[0\.0,"#.*?\]\]', "", INTERACTIVE[name](spec, wide).to_json())
        assert set(re.findall(r'"(#\w{6})"', plot)) <= known, name
        assert not re.search(r'olor":"(white|black|rgb)', plot), name


def test_where_values_lie():
    wide = Scale.of(Domain(low=0.01, high=1.0, log=True))
    assert [wide.share(value) for value in (0.01, 0.1, 1.0, 2.0, 0.0, None)] == [0.0, 0.5, 1.0, None, None, None]
    assert wide.ticks() == [(0.0, "0.01"), (0.5, "0.1"), (1.0, "1")]
    assert wide.edges(2) == pytest.approx([0.01, 0.1, 1.0])
    named = Scale.of(Domain(choices=["a", "b", "c"]), ["d"])
    assert [named.share(value) for value in ("a", "d", "e")] == [0.0, 1.0, None]
    assert [name for _, name in named.ticks()] == ["a", "b", "c", "d"]
    assert Scale.of(Domain(low=3, high=3)).share(3) == 0.5
    assert Scale.of(Domain(choices=["only"])).share("only") == 0.5


@given(count=st.integers(0, 50), most=st.integers(1, 20))
def test_few_of_many_are_spread_evenly(count, most):
    kept = thin(range(count), most)
    assert len(kept) == min(count, most)
    assert len({b - a for a, b in pairwise(kept)}) <= 2
    assert not count or kept[0] == 0


def test_of_many_trials_some_curves_are_drawn(spec, wide, monkeypatch):
    monkeypatch.setattr("study.analysis.figures.curves.CURVES", 3)
    figure = FIGURES["learning_curves"](spec, wide)
    assert [len(lines.get_segments()) for lines in figure.axes[0].collections[:2]] == [1, 3]
