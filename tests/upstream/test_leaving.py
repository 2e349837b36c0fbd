"""While Ray starts and ends, and afterwards, SIGTERM is this process's."""

import os
import subprocess
import sys

import pytest

LEFT = """
import os, signal, threading, time
from functools import partial
from study.upstream.environment import ProcessKind, set_variables_here
from study.upstream.ray_internals import call_with_own_signals

set_variables_here(ProcessKind.DRIVER, ProcessKind.OWN_RAY)
import ray

heard, over = [], threading.Event()
signal.signal(signal.SIGTERM, lambda *given: heard.append(given))
sent = 0


def send():
    global sent
    while not over.wait(0.1):
        if is_caught():
            os.kill(os.getpid(), signal.SIGTERM)
            sent += 1


def is_caught():
    (mask,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> signal.SIGTERM - 1 & 1)


thread = threading.Thread(target=send)
thread.start()
init = partial(ray.init, num_cpus=1, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
before = signal.getsignal(signal.SIGTERM)
call_with_own_signals(init)
started = len(heard)
assert ray.util.get_node_ip_address() == "127.0.0.1"
assert ray.get(ray.remote(lambda: 1 + 1).remote()) == 2  # in a thread it was started, in this one it is used
call_with_own_signals(ray.shutdown)
over.set()
thread.join()
time.sleep(0.1)
print(started > 0, len(heard) > started, sent >= len(heard), signal.getsignal(signal.SIGTERM) is before, is_caught())
"""


@pytest.mark.slow
def test_sigterm_stays_with_its_handler_while_ray_starts_and_ends() -> None:
    """Sent again and again: Ray's own handlers end the process, by status 15 or by SIGABRT.

    They are in place for up to `RAY_CALL_POLL_INTERVAL_S`, longer on a busy machine, and one that comes then ends it:
    so one of three processes has to get through. Without `call_with_own_signals` none does.
    """
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}  # else Ray writes a token into the home of whoever tests
    told = list[str]()
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=280, env=environment
        )
        if done.stdout.splitlines()[-1:] == ["True True True True True"]:
            return
        told.append(done.stdout + done.stderr)
    pytest.fail("\n".join(told))
