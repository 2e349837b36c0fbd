"""The share that a job says its study was submitted with."""

import pytest

from study.home.sharing import Limits


@pytest.mark.parametrize("limits", [Limits(), Limits(0.5, 7)])
def test_a_job_tells_its_limits(limits: Limits) -> None:
    assert Limits.of(limits.tags()) == limits


@pytest.mark.parametrize("share", ["0", "-1", "nan", "inf", "much", "1e9"])
def test_limits_of_somebody_elses_making_are_harmless(share: str) -> None:
    assert Limits.of({"share": share, "slots": "3"}) == Limits()
