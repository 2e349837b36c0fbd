"""What is said of the group that a model serves worst."""

from collections.abc import Sequence

import pytest

from study.metrics.worst_group_statement import (
    GroupCounts,
    WorstGroup,
    class_recall_sentences,
    find_worst_group,
    wilson_interval,
)

NAMES = ("ill", "well"), ("f", "m")


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [(0.5, 100, 0.4038, 0.5962), (1.0, 10, 0.7225, 1.0), (0.0, 10, 0.0, 0.2775), (0.9, 1000, 0.8798, 0.9171)],
)
def test_wilsons_interval(share: float, count: int, low: float, high: float) -> None:
    """Against the published calculator's values (as in Newcombe 1998)."""
    assert wilson_interval(share, count) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.parametrize("share", [0.0, 1e-12, 0.3, 1 - 1e-12, 1.0])
@pytest.mark.parametrize("count", [0, 1, 7, 10**6])
def test_it_stays_within_what_a_share_can_be(share: float, count: int) -> None:
    low, high = wilson_interval(share, count)
    assert 0.0 <= low <= share <= high + 1e-12
    assert high <= 1.0


def found(right: Sequence[Sequence[float]], samples: Sequence[Sequence[int]], **more: float) -> WorstGroup:
    told = find_worst_group(GroupCounts("test", samples, right, **more), *NAMES)
    assert told is not None
    return told


def text(right: Sequence[Sequence[float]], samples: Sequence[Sequence[int]], **more: float) -> str:
    return " ".join(found(right, samples, **more).sentences())


def test_a_small_group_without_a_right_prediction_is_the_worst() -> None:
    told = found([[0, 61], [65, 7]], [[8, 67], [67, 8]], accuracy=133 / 150)
    assert [(group.name, group.right, group.samples) for group in told.worst] == [
        ("class 'ill' with bias class 'f'", 0, 8)
    ]
    assert told.sentences() == [
        "On test the model serves class 'ill' with bias class 'f' worst of 4 groups: 0 of 8 right (0% to 32%), over "
        "all 88.7%.",
        "Groups of fewer than 10 samples are too small to tell: class 'ill' with bias class 'f'; class 'well' with "
        "bias class 'm', 7 of 8 right (53% to 98%).",
        "On test the worst of those with 10 samples or more is class 'ill' with bias class 'm', 61 of 67 right (82% to "
        "96%).",
        "In brackets are Wilson's 95% intervals.",
    ]


def test_the_lowest_rate_is_the_worst_whatever_its_size() -> None:
    told = found([[35, 5], [40, 40]], [[38, 7], [40, 40]])
    assert (told.worst[0].right, told.worst[0].samples) == (5, 7)
    assert told.worst_large_group is not None
    assert (told.worst_large_group.right, told.worst_large_group.samples) == (35, 38)


def test_every_group_with_none_right_is_named() -> None:
    told = found([[0, 32], [0, 60]], [[3, 55], [2, 62]])
    assert [(group.right, group.samples) for group in told.worst] == [(0, 3), (0, 2)]
    said = " ".join(told.sentences("trial 3"))
    assert "trial 3 serves these worst of 4 groups: class 'ill' with bias class 'f', 0 of 3 right (0% to 56%); " in said
    assert "class 'well' with bias class 'f', 0 of 2 right (0% to 66%)" in said


def test_groups_of_one_rate_are_named_together_the_largest_first() -> None:
    told = found([[5, 30], [10, 20]], [[10, 30], [20, 20]])
    assert [group.samples for group in told.worst] == [20, 10]


def test_groups_that_are_alike_are_said_only_where_some_are_too_small() -> None:
    assert find_worst_group(GroupCounts("val", [[20, 10], [10, 10]], [[10, 5], [5, 5]]), *NAMES) is None
    told = found([[20, 10], [10, 2]], [[20, 10], [10, 2]])
    assert (told.worst, told.lowest) == ((), None)
    assert "too small to tell: class 'well' with bias class 'm', 2 of 2 right (34% to 100%)" in " ".join(
        told.sentences()
    )


def test_groups_without_a_sample_and_samples_without_a_group_are_told() -> None:
    said = text([[10, 0], [0, 30]], [[20, 0], [0, 30]], unknown=12)
    assert "class 'ill' with bias class 'f' worst of 2 groups: 10 of 20 right" in said
    assert "No sample on test is of class 'ill' with bias class 'm'; class 'well' with bias class 'f'." in said
    assert "12 samples of unknown bias are in no group." in said
    assert find_worst_group(GroupCounts("test", [[0, 0], [0, 0]], [[0, 0], [0, 0]], unknown=50), *NAMES) is None
    assert find_worst_group(GroupCounts("test", [], []), None, None) is None


def test_means_over_seeds_are_told_as_such() -> None:
    assert "on average over the seeds 2.3 of 8 right" in text([[7 / 3, 30], [30, 30]], [[8, 30], [30, 30]])
    assert "the model serves class 'ill' with bias class 'f' worst" in text(
        [[1 / 3, 30], [0.5, 30]], [[8, 30], [8, 30]]
    )


def test_of_many_groups_a_few_are_named_and_the_others_counted() -> None:
    samples = [[2] * 10 for _ in range(3)]
    told = find_worst_group(GroupCounts("test", samples, [[0] * 10, [1] * 10, [2] * 10]), None, None)
    assert told is not None
    lowest, small, *_ = told.sentences()
    assert lowest.count("0 of 2 right") == 4
    assert lowest.endswith("; and 6 more.")
    assert small.count("with bias class") == 4
    assert "; and 26 more." in small
    assert "class 0 with bias class 3" in lowest


def test_where_no_group_has_a_metric_of_its_own_the_lowest_accuracy_is_told() -> None:
    values = {"accuracy": 0.8, "worst_group_accuracy": 0.0}
    counts = GroupCounts.from_metrics("test", [[1, 4, 0], [12, 30, 2]], values.get, labelled=50)
    told = find_worst_group(counts, None, None)
    assert told is not None
    assert told.sentences() == [
        "On test, in the worst of 5 groups of class and bias class, of 1 to 30 samples, the model has 0.0% right, over "
        "all 80.0%.",
        "Groups of fewer than 10 samples are too small to tell (3 of 5).",
        "1 samples of unknown bias are in no group.",
    ]
    assert find_worst_group(GroupCounts.from_metrics("test", [[1, 4]], {}.get), None, None) is None


@pytest.mark.parametrize(
    ("right", "samples", "said"),
    [
        ([[0, 0], [3, 38]], [[4, 5], [6, 40]], "'ill' with bias class 'm' worst of 4 groups: 0 of 5 right (0% to 43%)"),
        ([[10, 20], [30, 38]], [[40, 50], [60, 40]], "'ill' with bias class 'f' worst of 4 groups: 10 of 40 right"),
        ([[4, 5], [6, 4]], [[4, 5], [6, 4]], "too small to tell (4 of 4)."),
    ],
)
def test_one_line_says_the_first_of_it(
    right: Sequence[Sequence[float]], samples: Sequence[Sequence[int]], said: str
) -> None:
    line = found(right, samples, accuracy=0.8).first_sentence()
    assert said in line
    assert len(line) < 180


def test_the_class_that_is_recognised_least_is_named_with_what_it_is_taken_for() -> None:
    (told,) = class_recall_sentences(
        ["cat", "dog", "fox", "owl"], [[9, 0, 1, 0], [1, 3, 6, 0], [0] * 4, [0, 0, 0, 7]], None
    )
    least = "Of the classes, 'dog' is recognised least: 3 of 10 right, 6 called 'fox'."
    assert told == f"{least} Right of the others: 'cat' 9 of 10, 'owl' 7 of 7."
    assert class_recall_sentences(["cat", "dog"], [[9, 1], [1, 9]], 0.95) == []
    assert class_recall_sentences(["cat", "dog"], [[0, 0], [1, 9]], None) == []


@pytest.mark.parametrize(
    ("confusion", "auc", "is_off"),
    [
        ([[20, 80], [0, 100]], 0.98, True),  # 60% right of each class alike, where 93% could be
        ([[88, 12], [6, 94]], 0.97, False),
        ([[20, 80], [0, 100]], 0.65, False),  # the best threshold gets 61%
    ],
)
def test_a_threshold_that_is_off_is_told_with_what_to_do(confusion: list[list[int]], auc: float, is_off: bool) -> None:
    told = " ".join(class_recall_sentences(NAMES[0], confusion, auc))
    assert ("about 93% of each class" in told) is is_off
    assert ("columns p(CLASS) of study predict" in told) is is_off
