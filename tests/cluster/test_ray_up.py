"""The files for `ray up`, by Ray's own validator."""

from typing import Any

import pytest
from cluster_files import CLUSTER, documents, image_environment
from helpers import ROOT
from ray.autoscaler._private.util import prepare_config, validate_config

NAMES = ["aws", "gcp"]


def read(name: str) -> dict[str, Any]:
    (found,) = documents(CLUSTER / "ray-up" / f"{name}.yaml")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_ray_takes_the_file(name: str) -> None:
    config = prepare_config(read(name))
    validate_config(config)
    assert config["setup_commands"] == read(name)["setup_commands"]
    assert set(config["available_node_types"]) == {"head", "gpu"}


@pytest.mark.parametrize(
    ("name", "spot"), [("aws", ("InstanceMarketOptions", "MarketType")), ("gcp", ("scheduling", "provisioningModel"))]
)
def test_trials_run_on_spot_machines_and_the_driver_does_not(name: str, spot: tuple[str, str]) -> None:
    head, gpu = (read(name)["available_node_types"][key] for key in ("head", "gpu"))
    assert gpu["node_config"][spot[0]][spot[1]].lower() == "spot"
    assert spot[0] not in head["node_config"]
    assert head["resources"]["CPU"] == 0


@pytest.mark.parametrize("name", NAMES)
def test_every_node_gets_the_token_and_the_dashboard_is_reached_by_tunnel(name: str) -> None:
    config = read(name)
    assert config["file_mounts"]["/home/ubuntu/.ray/auth_token"] == "~/.ray/auth_token"
    assert (ROOT / config["file_mounts"]["/home/ubuntu/setup.sh"]).is_file()
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]


def test_nodes_have_the_environment_that_the_image_has() -> None:
    text = (CLUSTER / "ray-up" / "setup.sh").read_text(encoding="utf-8")
    assert [name for name, value in image_environment().items() if f"{name}={value}" not in text] == []
    assert "chmod 600 ~/.ray/auth_token" in text
