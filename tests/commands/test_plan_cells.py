"""What a plan says of the samples, and of metrics that are noise on them."""

import json
from pathlib import Path

import pytest
from helpers import quickstart

from study.commands.plan import plan_study, plan_text
from study.ranking.json_documents import to_plain_value
from study.spec import load_study


@pytest.mark.parametrize("metric", ["worst_group_accuracy", "unbiased_accuracy"])
def test_a_metric_of_tiny_cells_is_warned_of(metric: str) -> None:
    document = plan_study(quickstart(f"search.metric=val/{metric}", "data.val=biased"))
    warning = document.warnings[-1]
    assert f"val/{metric} may tell configurations badly apart: the smallest cell of val has 1 sample" in warning
    assert "search by val/conflicting_accuracy" in warning
    assert f"warning: {warning}" in plan_text(document)


def test_a_validation_split_that_hardly_conflicts_with_the_bias_is_warned_of() -> None:
    (warning,) = plan_study(quickstart("data.val=biased", "data.rho=0.98")).warnings
    assert warning.startswith("val has only 10 samples in conflict with the bias: ")
    assert "data.val=unbiased" in warning
    told = plan_study(quickstart("data.val=unbiased", "data.val_share=0.008")).warnings
    assert "Better: a larger data.val_share or more data" in next(
        line for line in told if "in conflict with the bias" in line
    )


@pytest.mark.parametrize(
    "assignments",
    [
        ["data.val=biased"],
        ["data.val=biased", "search.metric=val/conflicting_accuracy"],
        ["search.metric=val/unbiased_accuracy"],  # as exact as the accuracy where all cells are about as large
    ],
)
def test_others_are_not(assignments: list[str]) -> None:
    assert plan_study(quickstart(*assignments)).warnings == []


def test_a_few_cells_are_shown_as_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{('cat', 'dog')[n % 2]},{('in', 'out')[n % 2 if n % 20 > 1 else 1 - n % 2]},{n}" for n in range(400)]
    Path("animals.csv").write_text("kind,place,weight\n" + "\n".join(rows) + "\n")
    section = "{name: table, path: animals.csv, target: kind, bias: place, features: [weight]}"
    given = (
        f"data={section}",
        "model={name: mlp}",
        "search.metric=val/worst_group_accuracy",
        "train.augmentation=none",
    )
    document = plan_study(quickstart(*given))
    assert json.loads(json.dumps(to_plain_value(document), allow_nan=False)) == to_plain_value(document)
    told = plan_text(document).splitlines()
    start = next(place for place, line in enumerate(told) if line.split() == ["train", "val", "test"])
    assert [line.rsplit(None, 3) for line in told[start + 1 : start + 6]] == [
        ["  samples", "289", "51", "60"],
        ["  cat, in", "130", "23", "27"],
        ["  cat, out", "14", "3", "3"],
        ["  dog, in", "15", "2", "3"],
        ["  dog, out", "130", "23", "27"],
    ]
    assert "val has only 5 samples in conflict with the bias" in document.warnings[0]
    assert "the smallest cell of val has 2 samples, fewer than 10" in document.warnings[1]


def columns_of(told: list[str], start: int, count: int) -> list[list[str]]:
    return [line.rsplit(None, 3) for line in told[start + 1 : start + 1 + count]]


def test_of_many_cells_classes_are_counted_and_small_cells_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    classes, sites = ("ash", "birch", "cedar", "elm", "fir"), ("north", "south", "east", "west")
    pairs = [(0, 0, 200), (1, 1, 150), (2, 2, 100), (3, 3, 60), (4, 0, 30), (0, 1, 6), (1, 3, 4)]
    rows = [f"{classes[y]},{sites[s]}" for y, s, count in pairs for _ in range(count)]
    Path("trees.csv").write_text("kind,site,height\n" + "\n".join(f"{row},{n}" for n, row in enumerate(rows)) + "\n")
    section = "{name: table, path: trees.csv, target: kind, bias: site, features: [height]}"
    document = plan_study(quickstart(f"data={section}", "model={name: mlp}", "train.augmentation=none"))
    told = plan_text(document).splitlines()
    start = next(place for place, line in enumerate(told) if line.split() == ["train", "val", "test"])
    (counts,) = document.cells
    expected = {name: [str(split.classes[y]) for split in counts.splits.values()] for y, name in enumerate(classes)}
    shown = {name.strip(): numbers for name, *numbers in columns_of(told, start, 8)}
    assert {name: shown[name] for name in classes} == expected
    assert [sum(map(int, column)) for column in zip(*expected.values(), strict=True)] == [
        int(count) for count in shown["samples"]
    ]
    few = next(place for place, line in enumerate(told) if "fewer than 10 training samples" in line)
    assert told[few].strip() == "pairs of class and bias class with fewer than 10 training samples (train/val/test):"
    of_class = dict(line.strip().split(": ", 1) for line in told[few + 1 : few + 6])
    assert {name: len(of_class[name].split(", ")) for name in classes} == dict.fromkeys(classes, 3)
    assert "north 0/0/0" in of_class["cedar"]
    (south,) = (cell for cell in of_class["ash"].split(", ") if cell.startswith("south"))
    assert sum(map(int, south.split()[1].split("/"))) == 6


def test_very_many_small_cells_are_counted_alone() -> None:
    told = plan_text(plan_study(load_study("quickstart_biased"))).splitlines()
    start = next(place for place, line in enumerate(told) if line.split() == ["train", "val", "test"])
    assert [line[1:] for line in columns_of(told, start, 3)] == [
        ["1078", "360", "359"],
        ["1018", "340", "30"],
        ["60", "20", "329"],
    ]
    assert told[start + 14] == "  pairs of class and bias class with fewer than 10 training samples: 90 of 100"


def test_several_data_sets_are_told_apart() -> None:
    document = plan_study(quickstart("search.space.data.rho={choices: [0.5, 0.9]}", "search.baseline=null"))
    assert len(document.cells) == 2
    told = plan_text(document)
    assert "with rho=0.5:" in told
    assert "with rho=0.9:" in told


@pytest.mark.slow
def test_without_its_files_a_plan_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    document = plan_study(load_study("fairkl_biased_mnist"))
    assert document.warnings == []
    assert "samples: not counted: its files are not here, see study data prepare biased_mnist" in plan_text(document)
