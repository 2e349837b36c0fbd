"""How many trials run at once."""

import pytest

from study.spec.schema import Resources
from study.sweep.ray_session import Slots


@pytest.mark.parametrize(
    ("there", "cpu", "gpu", "concurrency", "slots"),
    [
        ({"CPU": 2.0}, 1, 0, None, 2),
        ({"CPU": 8.0, "GPU": 1.0}, 1, 0.25, None, 4),
        ({"CPU": 3.0, "GPU": 8.0}, 1, 0.25, None, 3),
        ({"CPU": 0.3}, 0.1, 0, None, 3),
        ({"CPU": 8.0}, 1, 0, 3, 3),
        ({"CPU": 2.0}, 1, 0, 5, 2),
        ({}, 1, 0, None, 1),
    ],
)
def test_on_this_machine(there: dict[str, float], cpu: float, gpu: float, concurrency: int | None, slots: int) -> None:
    """As many as fit, at least one, no more than asked for; counted once."""
    found = Slots(lambda: there, Resources(cpu=cpu, gpu=gpu), concurrency, grows=False)
    assert found() == slots
    there["CPU"] = 100.0
    assert found() == slots


def test_on_a_cluster_nodes_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"CPU": 2.0}
    found = Slots(lambda: there, Resources(cpu=1, gpu=0), None, grows=True)
    assert found() == 2
    monkeypatch.setattr(Slots, "EVERY", -1.0)
    there["CPU"] = 5.0
    assert found() == 5
    there.clear()
    assert found() == 1


def test_a_cluster_is_asked_to_grow_by_a_concurrency_that_does_not_fit() -> None:
    assert Slots(lambda: {"CPU": 0.0}, Resources(cpu=1, gpu=0), 16, grows=True)() == 16
