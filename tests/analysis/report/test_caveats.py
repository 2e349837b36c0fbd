"""What the report says is not known."""

import json
from pathlib import Path

import pytest
from helpers import Told, quickstart, record
from told_studies import said

from study.analysis.figures import FIGURES
from study.analysis.report.caveats import (
    UNKNOWN_ALIGNMENT_TEXT,
    DropOnFreshSeeds,
    FixedRemark,
    KernelTooNarrow,
    TrialsFailed,
    caveat_statements,
)
from study.home.events import GroupSampleCounts
from study.ranking import Results
from study.spec import load_study


def test_what_is_not_known(spec, frozen):
    failed, drop = caveat_statements(Results(spec, frozen))
    assert failed == TrialsFailed(1, "Diverged: loss is nan in epoch 1")
    assert isinstance(drop, DropOnFreshSeeds)
    assert (drop.arm.trial_number, drop.searched, drop.fresh) == (1, 0.7, pytest.approx(0.74))


@pytest.mark.parametrize(("aligned", "is_said"), [(None, True), ([0, 1], False)])
def test_data_without_aligned_samples_say_so(
    tmp_path: Path, aligned: list[int | list[int]] | None, is_said: bool
) -> None:
    """`aligned` is a key of a user's own data alone."""
    table = tmp_path / "people.csv"
    table.write_text("x,group,status\n" + "".join(f"{n},{'fm'[n % 2]},{'ny'[n % 3 == 0]}\n" for n in range(80)))
    own = load_study(str(own_table_file(tmp_path, table)))
    found = record(Told("search", [0.5]))
    for spec, expected in ((own, is_said), (quickstart(), False)):
        found.group_sample_counts = GroupSampleCounts.from_sizes(
            {"val": [[4, 4], [4, 4]], "classes": ["n", "y"], "biases": ["f", "m"], "aligned": aligned}
        )
        assert (FixedRemark(UNKNOWN_ALIGNMENT_TEXT) in said(FixedRemark, Results(spec, found))) is expected


def own_table_file(tmp_path: Path, table: Path) -> Path:
    values = {
        "name": "own",
        "data": {"name": "table", "path": str(table), "target": "status", "bias": "group"},
        "model": {"name": "linear"},
        "method": {"name": "cross_entropy"},
        "train": {"epochs": 1},
        "search": {"space": {"train.learning_rate": {"low": 0.001, "high": 0.1}}, "metric": "val/accuracy"},
    }
    path = tmp_path / "own.yaml"
    path.write_text(json.dumps(values))
    return path


def test_a_kernel_that_leaves_next_to_no_weight_is_named() -> None:
    told = [
        Told("search", [0.5], further={"train/weight_sum": weight, "train/effective_negatives": 4.0})
        for weight in (0.034, 0.9, 0.02)
    ]
    assert said(KernelTooNarrow, Results(quickstart(), record(*told))) == [KernelTooNarrow([0, 2])]
    assert not said(KernelTooNarrow, Results(quickstart(), record(told[1])))


@pytest.mark.parametrize("is_validated", [True, False])
def test_a_final_training_on_all_that_is_not_test_says_that_nothing_validates(is_validated: bool, final_spec) -> None:
    """No value is missing of it, and its seeds are those that test has."""
    metric = "val/accuracy" if is_validated else "train/loss"
    trials = [Told("final", [0.5], seed=seed, metric=metric, tested={"test/accuracy": 0.6 + seed}) for seed in (0, 1)]
    results = Results(final_spec, record(*trials))
    remarks = [str(remark) for remark in caveat_statements(results)]
    assert [remark.startswith("Nothing validates") for remark in remarks] == ([] if is_validated else [True])
    figure = FIGURES["seeds"](results)
    titles = [axes.get_xlabel().split("\n")[0] for axes in figure.axes]
    assert titles == (["val/accuracy", "test/accuracy"] if is_validated else ["test/accuracy"])
