"""No password, token or key is written in the ready files, nor may one be left out."""

import re
from pathlib import Path

import pytest
from cluster_files import CLUSTER, documents, pairs

YAML = sorted(CLUSTER.rglob("*.yaml"))

SECRET = re.compile(r"PASSWORD$|TOKEN$|SECRET|SESSION|password$", re.ASCII)
REFUSED_IF_EMPTY = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(CLUSTER)))
def test_secrets_come_from_elsewhere(path: Path) -> None:
    for document in documents(path):
        for where, value in pairs(document):
            if isinstance(where[-1], str) and SECRET.search(where[-1]):
                assert isinstance(value, str), where
                assert REFUSED_IF_EMPTY.fullmatch(value), where
            if isinstance(value, dict) and SECRET.search(str(value.get("name", ""))) and "value" in value:
                pytest.fail(f"{where}: {value['name']} has a value")


def test_a_secret_that_kubernetes_needs_is_made_by_a_command_of_the_readme() -> None:
    readme = (CLUSTER / "README.md").read_text(encoding="utf-8")
    needed = set()
    for path in (CLUSTER / "kuberay").glob("*.yaml"):
        for document in documents(path):
            for where, value in pairs(document):
                if where[-1] == "secretKeyRef":
                    needed.add((value["name"], value["key"]))
                elif where[-1] == "secretName":
                    needed.add((value, "auth_token"))
    made = {("ray-token", "auth_token")} if "auth_token=$(openssl" in readme else set()
    for names in re.findall(r"for name in ([a-z ]+); do .*\n.* secret generic tracking --from-env-file", readme):
        made.update(("tracking", name) for name in names.split())
    assert made == needed
