"""What the report says is not known."""

import pytest
from helpers import Told, quickstart, record
from told_studies import said

from study.analysis.report.caveats import DropAfterChoice, KernelTooNarrow, TrialsFailed, caveat_statements
from study.ranking import Results


def test_what_is_not_known(spec, frozen):
    failed, drop = caveat_statements(Results(spec, frozen))
    assert failed == TrialsFailed(1, "Diverged: loss is nan in epoch 1")
    assert isinstance(drop, DropAfterChoice)
    assert (drop.arm.trial_number, drop.searched, drop.fresh) == (1, 0.7, pytest.approx(0.74))


def test_a_kernel_that_leaves_next_to_no_weight_is_named() -> None:
    told = [
        Told("search", [0.5], further={"train/weight_sum": weight, "train/effective_negatives": 4.0})
        for weight in (0.034, 0.9, 0.02)
    ]
    assert said(KernelTooNarrow, Results(quickstart(), record(*told))) == [KernelTooNarrow([0, 2])]
    assert not said(KernelTooNarrow, Results(quickstart(), record(told[1])))
