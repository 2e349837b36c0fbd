"""Which nodes trials are placed on, what is said of those that are not, and what a study does that none is left for."""

from typing import Any

import pytest
import torch

from study.errors import UserError
from study.spec.schema import TrialResources
from study.sweep import job_execution, nodes
from study.sweep.nodes import NoNodeLeftError, TrialNodes
from study.training.gpu_errors import GpuMemoryFullError, NoDeviceError


def node(name: str, cpu: float = 4, gpu: float = 1, kind: str = "", label: str = "", alive: bool = True) -> Any:
    resources = {"CPU": cpu, "GPU": gpu, **({f"accelerator_type:{kind}": 1.0} if kind else {})}
    labels = {"ray.io/node-id": name, **({"ray.io/accelerator-type": label} if label else {})}
    return {"NodeID": name, "Alive": alive, "Resources": resources, "Labels": labels}


HEAD = node("head", cpu=0, gpu=0)


def test_trials_count_what_fits_them_alone() -> None:
    """Neither the CPUs of nodes without a GPU nor what is dead."""
    there = [HEAD, node("cpus", cpu=64, gpu=0), node("one", cpu=3), node("two", cpu=5), node("dead", alive=False)]
    assert TrialNodes(TrialResources(gpu=0.25), lambda: there).available_resources() == {"CPU": 8.0, "GPU": 2.0}
    assert TrialNodes(TrialResources(cpu=4, gpu=0.25), lambda: there).available_resources() == {"CPU": 5.0, "GPU": 1.0}
    assert TrialNodes(TrialResources(cpu=65), lambda: there).available_resources() == {}


def test_an_excluded_node_gets_no_trial_and_the_last_one_ends_the_study() -> None:
    found = TrialNodes(TrialResources(gpu=0.25), lambda: [HEAD, node("one"), node("two")])
    assert found.trial_placement(alone=False) == ({"CPU": 1.0, "GPU": 0.25}, {})
    assert found.exclude_node("one", "host1", "its driver is too old")
    assert not found.exclude_node("one", "host1", "its driver is too old")
    assert found.trial_placement(alone=True) == ({"CPU": 1.0, "GPU": 1.0}, {"ray.io/node-id": "!in(one)"})
    assert [there["NodeID"] for there in found.fitting_nodes()] == ["two"]
    found.check_node_left()
    found.exclude_node("two", "host2", "its memory is taken")
    assert found.trial_placement(alone=False)[1] == {"ray.io/node-id": "!in(one,two)"}
    with pytest.raises(
        NoNodeLeftError, match=r"no node is left .*: host1: its driver is too old; host2: its memory is taken"
    ):
        found.check_node_left()


@pytest.mark.parametrize(
    ("there", "bundle", "labels"),
    [
        ([node("one", kind="A100"), node("two", kind="H100")], {"accelerator_type:H100": 0.001}, {}),
        ([node("one", kind="A100"), node("two", label="H100")], {}, {"ray.io/accelerator-type": "H100"}),
        ([node("one")], {"accelerator_type:H100": 0.001}, {}),  # a cluster that grows by itself knows the resource
    ],
)
def test_a_kind_of_gpu_is_asked_for_as_the_nodes_tell_it(
    there: list[Any], bundle: dict[str, float], labels: dict[str, str]
) -> None:
    found = TrialNodes(TrialResources(gpu=0.5, accelerator="H100"), lambda: there)
    assert found.trial_placement(alone=False) == ({"CPU": 1.0, "GPU": 0.5, **bundle}, labels)
    assert [each["NodeID"] for each in found.fitting_nodes()] == [each["NodeID"] for each in there[1:]]


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        (
            TrialResources(gpu=1, accelerator="H10"),
            "gpu: 1, accelerator: H10: no node of the cluster has it; Did you mean 'H100'? there are: A100, H100",
        ),
        (
            TrialResources(cpu=8, gpu=0.5),
            "gpu: 0.5: no node of the cluster has so much; the largest has 4 CPUs and 1 GPUs",
        ),
    ],
)
def test_what_no_node_has_is_refused_or_waited_for(
    monkeypatch: pytest.MonkeyPatch, resources: TrialResources, told: str
) -> None:
    """Refused after a while, in which nodes may still join; waited for where the cluster grows by itself."""
    there, said = [HEAD, node("one", kind="A100"), node("two", label="H100")], list[str]()
    found = TrialNodes(resources, lambda: there)
    found.wait_for_fitting_node(True, said.append, bool)
    assert told in said[0]
    assert "Trials wait until" in said[0]
    found.wait_for_fitting_node(False, said.append, lambda: True)  # a user stops it meanwhile
    monkeypatch.setattr(nodes, "NODE_JOIN_TIMEOUT_S", -1.0)
    with pytest.raises(UserError) as refused:
        found.wait_for_fitting_node(False, said.append, bool)
    assert told in str(refused.value)
    assert "search.concurrency" in str(refused.value)
    there.append(node("three", cpu=8, kind="H10"))
    found.wait_for_fitting_node(False, said.append, bool)


@pytest.mark.parametrize(
    ("problem", "whole", "raised"),
    [
        (NoDeviceError("its driver is too old"), False, NoDeviceError),
        (GpuMemoryFullError("its memory is taken"), True, GpuMemoryFullError),
        (GpuMemoryFullError("its memory is taken"), False, torch.OutOfMemoryError),  # by other trials, perhaps
    ],
)
def test_a_card_that_trials_fill_is_no_fault_of_its_node(
    monkeypatch: pytest.MonkeyPatch, problem: NoDeviceError, whole: bool, raised: type[Exception]
) -> None:
    def try_cards() -> None:
        raise problem

    monkeypatch.setattr(job_execution, "check_visible_gpus", try_cards)
    job_execution.try_gpu_once.cache_clear()
    with pytest.raises(raised, match=str(problem)):
        job_execution.try_gpu_once(whole)
    job_execution.try_gpu_once.cache_clear()
