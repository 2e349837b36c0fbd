"""The names of a group beside its number."""

import pytest

from study.metrics import group_names


def test_the_group_of_a_metric_is_told_by_name():
    names = ("no", "yes"), ("f", "m", "x")
    assert group_names.group_metric_in_words("val/group_1_2_accuracy", *names) == "class 'yes', bias class 'x'"
    assert group_names.group_metric_in_words("test/lbfgs_group_0_1_accuracy", *names) == "class 'no', bias class 'm'"
    for other in ("val/accuracy", "val/worst_group_accuracy", "val/group_2_0_accuracy", "val/group_0_3_accuracy"):
        assert group_names.group_metric_in_words(other, *names) is None
    assert group_names.group_metric_in_words("val/group_0_0_accuracy", None, ("f",)) is None


def test_a_study_tells_all_of_its_groups():
    told = group_names.group_legend(["no"], ["f", "m"])
    assert told == {"group_0_0": "class 'no', bias class 'f'", "group_0_1": "class 'no', bias class 'm'"}
    assert group_names.group_legend([], []) == group_names.group_legend(None, None) == {}


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([[3, 1], [2, 2]], "equalized_odds compares groups of the classes 'no', 'yes'; equal_opportunity compares"),
        (
            [[3, 0], [2, 2]],
            "equalized_odds is no number: of class 'no' no two groups have samples; equal_opportunity comp",
        ),
        ([[3, 1], [0, 2]], "of class 'yes' no two groups have samples; equal_opportunity is no number without two"),
    ],
)
def test_which_classes_a_gap_compares_is_said(cells: list[list[int]], told: str) -> None:
    sentence = group_names.groups_compared_by_gaps_sentence(cells, ("no", "yes"))
    assert told in sentence
    assert sentence.endswith("of the class 'yes'.")
    assert group_names.groups_compared_by_gaps_sentence([*cells, [1, 1]], None).count("equal_opportunity") == 0
