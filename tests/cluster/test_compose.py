"""The compose file: what it publishes, what it pins, and what `docker-compose` says of it."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_files import CLUSTER, documents

COMPOSE = CLUSTER / "compose"
VARIABLES = sorted(set(re.findall(r"\$\{([A-Z_]+)", (COMPOSE / "compose.yaml").read_text(encoding="utf-8"))))


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    (document,) = documents(COMPOSE / "compose.yaml")
    return document["services"]


def test_only_this_machine_reaches_it(services: dict[str, dict[str, Any]]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert not any("network_mode" in service or service.get("privileged") for service in services.values())


def test_no_service_is_more_than_it_must_be(services: dict[str, dict[str, Any]]) -> None:
    """Without capabilities, with a root that it cannot write, and within limits; Ray's nodes have the whole machine."""
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["read_only"], name
        assert "/tmp" in service.get("tmpfs", []) + service["volumes"], name
        assert {"cpus", "mem_limit"} <= set(service) or name in ("head", "worker"), name


def test_nodes_of_ray_have_a_token_a_shared_home_and_no_way_to_the_database(
    services: dict[str, dict[str, Any]],
) -> None:
    for name in ("head", "worker"):
        assert services[name]["environment"]["RAY_AUTH_TOKEN"].startswith("${RAY_AUTH_TOKEN:?")
        assert services[name]["volumes"] == ["home:/study", "/tmp"]
        assert "networks" not in services[name]
    assert "--num-cpus 0" in services["head"]["command"]
    assert services["postgres"]["networks"] == ["stores"]


def test_the_readme_makes_every_variable() -> None:
    readme = (CLUSTER / "README.md").read_text(encoding="utf-8")
    assert all(re.search(rf"\b{name}\b", readme) for name in VARIABLES)


def config(folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """What compose makes of the two files together."""
    command = shutil.which("docker-compose")
    if command is None:
        pytest.skip("docker-compose is not installed: apt-get install docker-compose")
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    files = [argument for name in ("compose.yaml", "gpu.yaml") for argument in ("-f", str(COMPOSE / name))]
    return subprocess.run(
        [command, "--env-file", str(folder / ".env"), *files, "config"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
    )


def test_compose_takes_the_files_and_says_nothing(tmp_path: Path) -> None:
    done = config(tmp_path, **{name: f"a-{name}" for name in VARIABLES})
    assert (done.returncode, done.stderr) == (0, "")
    services = yaml.safe_load(done.stdout)["services"]
    assert set(services) == {"head", "worker", "mlflow", "postgres"}
    assert "a-RAY_AUTH_TOKEN" in json.dumps(services["worker"])


@pytest.mark.parametrize("name", VARIABLES)
def test_compose_refuses_to_start_without_a_secret(name: str, tmp_path: Path) -> None:
    done = config(tmp_path, **{other: "given" for other in VARIABLES if other != name})
    assert done.returncode != 0
    assert "make .env as cluster/README.md says" in done.stderr
