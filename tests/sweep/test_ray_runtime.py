"""A Ray of a driver's own: nobody else reaches it, and what other threads do while it is left ends nothing."""

import platform

import pytest
import ray
from own_process import as_driver
from ray._private.utils import check_version_info

from study.sweep.ray_runtime import ClusterUnreachableError, _connect_to_cluster

LITTERS = """
import gc, threading, weakref
import ray
import ray._private.worker as inside
from study.sweep.ray_runtime import start_or_join_ray

class Ring:
    def __init__(self, ref):
        self.me, self.ref = self, ref

over, left = threading.Event(), threading.Event()

def allocate():  # as the thread of the tracking does: Python then looks for rings to free, in this thread
    over.wait()
    gc.set_threshold(100)
    while not left.is_set():
        [[] for _ in range(5000)]

threading.Thread(target=allocate, daemon=True).start()
gc.set_threshold(10**6)
with start_or_join_ray(None, None):
    earlier = weakref.ref(Ring(ray.put(0)))
    refs = [ray.put(number) for number in range(3000)]
    disconnect = inside.disconnect

    def then_litter(*args):
        inside.disconnect = disconnect
        disconnect(*args)
        print("freed before:", earlier() is None, "enabled:", gc.isenabled())
        while refs:
            Ring(refs.pop())
        over.set()

    inside.disconnect = then_litter
left.set()
print("enabled afterwards:", gc.isenabled())
"""


LISTENS = """
import psutil, ray
from study.sweep.ray_runtime import start_or_join_ray

class Trial:
    def is_there(self):
        return True

with start_or_join_ray(None, None):
    trial = ray.remote(Trial).remote()
    ray.get(trial.is_there.remote())
    driver = psutil.Process()
    for process in [driver, *driver.children(recursive=True)]:
        for one in process.net_connections("inet"):
            if one.status == psutil.CONN_LISTEN:
                print(one.laddr.ip)
"""


@pytest.mark.slow
def test_a_ray_of_ones_own_listens_on_loopback_alone() -> None:
    """Its metrics too; left to itself it listens on all of the machine's addresses."""
    done = as_driver(LISTENS)
    assert (done.returncode, done.stderr) == (0, "")
    found = done.stdout.split()
    assert len(found) >= 5  # of this process, gcs_server, the raylet and the trial's process
    assert set(found) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@pytest.mark.slow
def test_no_other_thread_frees_objects_of_ray_while_it_is_left() -> None:
    done = as_driver(LITTERS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["freed before: True enabled: False", "enabled afterwards: True"]


@pytest.mark.parametrize(
    ("there", "told"),
    [
        ("2.55.1", ["Ray 2.55.1", ray.__version__, "here: pip install 'ray[default,tune]==2.55.1'", "or there: "]),
        ("1.13.0", ["Ray 1.13.0", ray.__version__, f"there: pip install 'ray[default,tune]=={ray.__version__}'"]),
        (None, ["Version mismatch: they differ in some way"]),
    ],
)
def test_a_cluster_of_another_ray_is_told_with_both_versions_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch, there: str | None, told: list[str]
) -> None:
    def joins(**_: object) -> None:
        if there is None:
            raise RuntimeError("Version mismatch: they differ\nin some way")
        check_version_info({"ray_version": there, "python_version": platform.python_version()}, "10.0.0.1")

    monkeypatch.setattr(ray, "init", joins)
    with pytest.raises(ClusterUnreachableError) as refused:
        _connect_to_cluster("10.0.0.1:6379")
    assert all(part in str(refused.value) for part in told), str(refused.value)
    assert "\n" not in str(refused.value)
