"""What `study cluster up` shows while parts come up, and which cards it takes."""

import pytest

from study.commands.local_cluster import first_visible_gpus
from study.errors import UserError
from study.sweep import ray_runtime
from study.training import device


@pytest.mark.parametrize(("visible", "chosen"), [(None, ["0", "1"]), ("3,1, 2", ["3", "1"])])
def test_cards_are_those_that_are_visible(
    visible: str | None, chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(ray_runtime, "count_gpus", lambda: 3)
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    assert first_visible_gpus(2) == chosen
    with pytest.raises(UserError, match="--gpus 4: this machine has 3"):
        first_visible_gpus(4)
    monkeypatch.setattr(device, "why_no_gpu", lambda: "its driver is too old")
    with pytest.raises(UserError, match="--gpus 2: this machine's GPUs cannot be used: its driver is too old"):
        first_visible_gpus(2)
