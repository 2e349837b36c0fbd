"""What is said of the group that a model serves worst."""

from collections.abc import Sequence

import pytest

from study.data.dataset import aligned_cells
from study.metrics.worst_group import GroupCounts, WorstGroup, find_worst_group

NAMES = ("ill", "well"), ("f", "m")
OWN = {classes: aligned_cells(range(classes), classes) for classes in (2, 3)}


def found(right: Sequence[Sequence[float]], samples: Sequence[Sequence[int]], **more: float) -> WorstGroup:
    told = find_worst_group(GroupCounts("test", samples, right, **more), *NAMES)
    assert told is not None
    return told


def text(right: Sequence[Sequence[float]], samples: Sequence[Sequence[int]], **more: float) -> str:
    return " ".join(found(right, samples, **more).sentences())


def test_the_worst_of_the_groups_with_enough_samples_comes_first() -> None:
    told = found([[0, 61], [65, 7]], [[8, 67], [67, 8]], accuracy=133 / 150)
    assert [(group.name, group.right, group.samples) for group in told.worst] == [
        ("class 'ill' with bias class 'f'", 0, 8)
    ]
    assert told.sentences() == [
        "On test the model serves class 'ill' with bias class 'm' worst of the 2 groups with 10 samples or more: 61 of "
        "67 right (82% to 96%), over all 88.7%.",
        "Groups of fewer than 10 samples are too small to judge; the lowest accuracy, 0.0%, is theirs: class 'ill' "
        "with bias class 'f', 0 of 8 right (0% to 32%); class 'well' with bias class 'm', 7 of 8 right (53% to 98%).",
        "In brackets are Wilson's 95% intervals.",
    ]


def test_the_lowest_rate_is_the_worst_whatever_its_size() -> None:
    told = found([[35, 5], [40, 40]], [[38, 7], [40, 40]])
    assert (told.worst[0].right, told.worst[0].samples) == (5, 7)
    assert [(group.right, group.samples) for group in told.worst_of_large] == [(35, 38)]


@pytest.mark.parametrize(
    ("right", "samples", "first"),
    [
        (
            [[0, 30], [20, 20]],
            [[1, 30], [20, 20]],
            "the model serves alike the 3 groups with 10 samples or more: 100.0% right in each.",
        ),
        (
            [[0, 20], [20, 25]],
            [[1, 40], [40, 30]],
            "the model serves these worst of the 3 groups with 10 samples or more: class 'ill' with bias class 'm', 20 "
            "of 40 right (35% to 65%); class 'well' with bias class 'f', 20 of 40 right (35% to 65%).",
        ),
        ([[0, 20], [0, 0]], [[1, 40], [0, 0]], "only class 'ill' with bias class 'm' has 10 samples or more: 20 of 40"),
        (
            [[0, 1], [3, 4]],
            [[1, 2], [3, 4]],
            "none of the 4 groups has 10 samples or more: too few to judge which the model serves worst.",
        ),
    ],
)
def test_what_stands_on_enough_samples_is_said_before_a_group_of_one(
    right: Sequence[Sequence[float]], samples: Sequence[Sequence[int]], first: str
) -> None:
    told = found(right, samples)
    lead, small, *_ = told.sentences()
    assert lead.startswith(f"On test {first}")
    assert ("; the lowest accuracy, 0.0%, is theirs" in small) is bool(told.worst_of_large)
    assert ": class 'ill' with bias class 'f', 0 of 1 right (0% to 79%)" in small
    assert told.first_sentence().startswith(f"On test {first}"[:60])


def test_every_small_group_with_none_right_is_named() -> None:
    told = found([[0, 32], [0, 60]], [[3, 55], [2, 62]])
    assert [(group.right, group.samples) for group in told.worst] == [(0, 3), (0, 2)]
    lead, small, *_ = told.sentences("trial 3")
    assert lead.startswith("On test trial 3 serves class 'ill' with bias class 'm' worst of the 2 groups with 10")
    assert "class 'ill' with bias class 'f', 0 of 3 right (0% to 56%); " in small
    assert "class 'well' with bias class 'f', 0 of 2 right (0% to 66%)" in small


def test_groups_of_one_rate_are_named_together_the_largest_first() -> None:
    told = found([[5, 30], [10, 20]], [[10, 30], [20, 20]])
    assert [group.samples for group in told.worst] == [20, 10]


def test_groups_that_are_alike_are_said_only_where_some_are_too_small() -> None:
    assert find_worst_group(GroupCounts("val", [[20, 10], [10, 10]], [[10, 5], [5, 5]]), *NAMES) is None
    told = found([[20, 10], [10, 2]], [[20, 10], [10, 2]])
    assert (told.worst, told.lowest_accuracy) == ((), None)
    assert "too small to judge: class 'well' with bias class 'm', 2 of 2 right (34% to 100%)" in " ".join(
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
    assert "'ill' with bias class 'f', on average over the seeds 0.3 of 8 right" in text(
        [[1 / 3, 30], [0.5, 29]], [[8, 30], [8, 30]]
    )


def test_of_many_groups_a_few_are_named_and_the_others_counted() -> None:
    samples = [[2] * 10 for _ in range(3)]
    told = find_worst_group(GroupCounts("test", samples, [[0] * 10, [1] * 10, [2] * 10]), None, None)
    assert told is not None
    lowest, small, *_ = told.sentences()
    assert lowest.startswith("On test none of the 30 groups has 10 samples or more")
    assert small.count("0 of 2 right") == small.count("with bias class") == 4
    assert small.endswith("; and 26 more.")
    assert "class 0 with bias class 3" in small


def test_where_no_group_has_a_metric_of_its_own_the_lowest_accuracy_is_told() -> None:
    values = {"accuracy": 0.8, "worst_group_accuracy": 0.0}
    counts = GroupCounts.from_metrics("test", [[1, 4, 0], [12, 30, 2]], values.get, labelled=50)
    told = find_worst_group(counts, None, None)
    assert told is not None
    assert told.sentences() == [
        "On test, in the worst of 5 groups of class and bias class, of 1 to 30 samples, the model has 0.0% right, over "
        "all 80.0%.",
        "Groups of fewer than 10 samples are too small to judge (3 of 5).",
        "1 sample of unknown bias is in no group.",
    ]
    assert find_worst_group(GroupCounts.from_metrics("test", [[1, 4]], {}.get), None, None) is None
    tiny = find_worst_group(GroupCounts.from_metrics("test", [[1, 4], [2, 3]], values.get), None, None)
    assert tiny is not None
    assert tiny.first_sentence() == (
        "On test none of the 4 groups has 10 samples or more: too few to judge which the model serves worst; over all "
        "80.0% are right. The model card says more."
    )


@pytest.mark.parametrize(
    ("right", "samples", "said"),
    [
        (
            [[0, 0], [3, 38]],
            [[4, 5], [6, 40]],
            "only class 'well' with bias class 'm' has 10 samples or more: 38 of 40",
        ),
        ([[10, 20], [30, 38]], [[40, 50], [60, 40]], "'ill' with bias class 'f' worst of 4 groups: 10 of 40 right"),
        ([[4, 5], [6, 4]], [[4, 5], [6, 4]], "too small to judge: class 'well' with bias class 'f', 6 of 6 right"),
    ],
)
def test_one_line_says_the_first_of_it(
    right: Sequence[Sequence[float]], samples: Sequence[Sequence[int]], said: str
) -> None:
    line = found(right, samples, accuracy=0.8).first_sentence()
    assert said in line
    assert len(line) < 180


def test_where_all_groups_against_the_bias_are_small_they_are_told_together_first() -> None:
    values = {"accuracy": 0.9, "conflicting_accuracy": 0.25, "group_0_0_accuracy": 0.9, "group_1_1_accuracy": 0.95}
    values |= {"group_0_1_accuracy": 0.0, "group_1_0_accuracy": 0.5}
    counts = GroupCounts.from_metrics("test", [[40, 8], [8, 60]], values.get, aligned_cells=OWN[2])
    told = find_worst_group(counts, *NAMES)
    assert told is not None
    first = "On test each of the 2 groups that conflict with the bias has fewer than 10 samples, too few to judge:"
    assert told.short_sentences("trial 3") == [
        f"{first} together 4 of 16 right (10% to 49%).",
        "On test trial 3 serves class 'ill' with bias class 'f' worst of the 2 groups with 10 samples or more, which "
        "all agree with the bias: 36 of 40 right (77% to 96%), over all 90.0%.",
        "In brackets is Wilson's 95% interval.",
    ]
    assert told.sentences()[0].startswith(first)
    assert told.first_sentence().startswith(first)


def test_many_groups_without_metrics_of_their_own_are_told_together_where_they_conflict() -> None:
    values = {"accuracy": 0.6, "conflicting_accuracy": 0.5, "worst_group_accuracy": 0.0}
    counts = GroupCounts.from_metrics("test", [[40, 0, 4], [4, 40, 4], [4, 4, 40]], values.get, aligned_cells=OWN[3])
    told = find_worst_group(counts, None, None)
    assert told is not None
    assert told.short_sentences()[0].startswith("On test each of the 5 groups that conflict with the bias has fewer")
    assert "together 10 of 20 right (30% to 70%)" in told.short_sentences()[0]


def test_groups_none_of_which_is_large_or_known_are_told_to_be_too_small_once() -> None:
    values = {"accuracy": 0.75, "conflicting_accuracy": 0.5, "worst_group_accuracy": 0.0}
    counts = GroupCounts.from_metrics("test", [[8, 0, 4], [4, 8, 4], [4, 4, 8]], values.get, aligned_cells=OWN[3])
    told = find_worst_group(counts, None, None)
    assert told is not None
    (first, *others) = told.sentences()
    assert first.startswith("On test none of the 8 groups has 10 samples or more")
    assert "conflict with the bias 10 of 20 right (30% to 70%); over all 75.0% are right" in first
    assert (told.first_sentence().startswith(first), told.short_sentences()[0]) == (True, first)
    assert not any("too" in other for other in (*others, *told.short_sentences()[1:]))


@pytest.mark.parametrize(("samples", "own"), [([[40, 8], [8, 60]], None), ([[40, 8], [18, 60]], OWN[2])])
def test_groups_against_the_bias_are_not_told_together_where_one_is_large_or_none_is_known(
    samples: list[list[int]], own: list[list[bool]] | None
) -> None:
    values = {"accuracy": 0.9, "conflicting_accuracy": 0.25, "group_0_0_accuracy": 0.9, "group_1_1_accuracy": 0.95}
    told = find_worst_group(GroupCounts.from_metrics("test", samples, values.get, aligned_cells=own), *NAMES)
    assert told is not None
    assert not any("conflict" in sentence or "agree" in sentence for sentence in told.short_sentences())
    assert any("fewer than 10 samples, too few to judge" in sentence for sentence in told.short_sentences())
