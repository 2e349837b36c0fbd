"""The manifests for Kubernetes, against the published schemas and against what they promise."""

import copy
import gzip
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from cluster_files import CLUSTER, documents, image_environment, pairs
from jsonschema import Draft202012Validator

KUBERAY, CRDS = CLUSTER / "kuberay", Path(__file__).parent / "crds"
RAY, PLAIN = ["ray-cluster.yaml", "ray-job.yaml"], ["home.yaml", "tracking.yaml"]

WITHOUT_RIGHTS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

OPEN = {"rayStartParams", "metadata", "matchLabels", "limits", "requests", "data"}
"""Below these any key is a name that the writer chooses."""


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with keys that it does not name refused, as the API server's strict validation does."""
    schema = dict(schema)
    if "properties" in schema:
        schema["properties"] = {name: closed(one) for name, one in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
    if isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = closed(schema["additionalProperties"])
    if "items" in schema:
        schema["items"] = closed(schema["items"])
    return schema


def validator(kind: str) -> Draft202012Validator:
    """Of `ray.io/v1`."""
    text = gzip.decompress((CRDS / f"ray.io_{kind.lower()}s.yaml.gz").read_bytes())
    versions = yaml.load(text, yaml.CSafeLoader)["spec"]["versions"]
    found = next(version for version in versions if version["name"] == "v1")
    return Draft202012Validator(closed(found["schema"]["openAPIV3Schema"]))


def misspelt(document: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """The document with the key at a path misspelt."""
    found = copy.deepcopy(document)
    node: Any = found
    for key in path[:-1]:
        node = node[key]
    node[f"{path[-1]}x"] = node.pop(path[-1])
    return found


def named_keys(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The paths of all keys that a schema names."""
    return [path for path, _ in pairs(document) if isinstance(path[-1], str) and not OPEN.intersection(path[:-1])]


@pytest.mark.slow
@pytest.mark.parametrize("name", RAY)
def test_ray_manifests_fit_the_published_schema_which_refuses_every_misspelt_key(name: str) -> None:
    (document,) = documents(KUBERAY / name)
    assert document["apiVersion"] == "ray.io/v1"
    schema = validator(document["kind"])
    assert [error.message for error in schema.iter_errors(document)] == []
    paths = named_keys(document)
    assert len(paths) > 50
    for path in paths:
        if path not in {("apiVersion",), ("kind",), ("metadata",)}:
            assert not schema.is_valid(misspelt(document, path)), path


@pytest.mark.parametrize("name", PLAIN)
def test_plain_manifests_fit_the_schemas_of_kubernetes(name: str) -> None:
    for document in documents(KUBERAY / name):
        kubernetes_validate.validate(document, "1.31", strict=True)


@pytest.fixture(scope="module")
def cluster() -> dict[str, Any]:
    (document,) = documents(KUBERAY / "ray-cluster.yaml")
    return document["spec"]


def test_the_job_has_the_same_cluster_and_goes_on_with_its_study(cluster: dict[str, Any]) -> None:
    (document,) = documents(KUBERAY / "ray-job.yaml")
    assert document["spec"]["rayClusterSpec"] == cluster
    assert document["spec"]["entrypoint"].endswith(" --address auto --or-resume")
    assert document["spec"]["shutdownAfterJobFinishes"]
    assert document["spec"]["backoffLimit"] > 0


def test_ray_takes_its_token_from_a_secret_and_scales_gpu_workers(cluster: dict[str, Any]) -> None:
    assert cluster["authOptions"] == {"mode": "token", "secretName": "ray-token"}
    assert cluster["enableInTreeAutoscaling"]
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert cluster["headGroupSpec"]["serviceType"] == "ClusterIP"
    (workers,) = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] < workers["maxReplicas"]
    assert workers["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_all_nodes_share_the_home_which_the_image_names(cluster: dict[str, Any]) -> None:
    claim = next(one for one in documents(KUBERAY / "home.yaml") if one["kind"] == "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        home, memory, _ = pod["volumes"]
        assert home == {"name": "home", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        assert memory["emptyDir"]["medium"] == "Memory"
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        assert image_environment()["STUDY_HOME"].startswith(mounts["home"] + "/")
        assert mounts["memory"] == "/dev/shm"


@pytest.mark.parametrize("name", RAY + PLAIN)
def test_no_pod_is_more_than_it_must_be_and_no_service_is_reached_from_outside(name: str) -> None:
    """Not root, without capabilities, within limits, with a root that it cannot write."""
    for document in documents(KUBERAY / name):
        assert document["kind"] != "Secret"
        if document["kind"] == "Service":
            assert document["spec"]["type"] == "ClusterIP"
        for path, value in pairs(document):
            if path[-1] == "containers":
                pod = document
                for key in path[:-1]:
                    pod = pod[key]
                assert pod["securityContext"]["runAsNonRoot"]
                for container in value:
                    assert container["securityContext"] == {**WITHOUT_RIGHTS, "readOnlyRootFilesystem": True}
                    assert {"cpu", "memory"} <= set(container["resources"]["limits"])
                    assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}
            if path[-1] == "autoscalerOptions":
                assert value["securityContext"] == WITHOUT_RIGHTS  # what it writes is for KubeRay to say
                assert {"cpu", "memory"} <= set(value["resources"]["limits"])
            assert path[-1] not in {"hostPort", "hostNetwork", "hostPath", "privileged", "nodePort"}
