"""While Ray ends, and afterwards, SIGTERM is this process's."""

import subprocess
import sys

import pytest

LEFT = """
import signal
from study.upstream.ray_internals import leave, leave_signals_alone, stay_on_loopback, take_signals_back

stay_on_loopback()
leave_signals_alone()
import ray
from ray._private import worker


def is_caught():
    (mask,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> signal.SIGTERM - 1 & 1)


signal.signal(signal.SIGTERM, lambda *given: None)
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
take_signals_back()
node, seen = worker._global_node, []
end = node.kill_all_processes
node.kill_all_processes = lambda *given, **named: (seen.append(is_caught()), end(*given, **named))
leave()
print(seen, is_caught())
"""


@pytest.mark.slow
def test_sigterm_stays_with_its_handler_while_rays_processes_end() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines()[-1:] == ["[True] True"], done.stdout + done.stderr
