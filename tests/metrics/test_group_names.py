"""The names of a group beside its number."""

from study.metrics import group_names


def test_the_group_of_a_metric_is_told_by_name():
    names = ("no", "yes"), ("f", "m", "x")
    assert group_names.words("val/group_1_2_accuracy", *names) == "class 'yes', bias class 'x'"
    assert group_names.words("test/lbfgs_group_0_1_accuracy", *names) == "class 'no', bias class 'm'"
    for other in ("val/accuracy", "val/worst_group_accuracy", "val/group_2_0_accuracy", "val/group_0_3_accuracy"):
        assert group_names.words(other, *names) is None
    assert group_names.words("val/group_0_0_accuracy", None, ("f",)) is None


def test_a_study_tells_all_of_its_groups():
    told = group_names.of_study({"val": [[3, 4]], "classes": ["no"], "biases": ["f", "m"]})
    assert told == {"group_0_0": "class 'no', bias class 'f'", "group_0_1": "class 'no', bias class 'm'"}
    assert group_names.of_study({"val": [[3, 4]]}) == group_names.of_study(None) == {}
