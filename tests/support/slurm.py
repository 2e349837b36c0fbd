"""A real Slurm on this machine, of two virtual nodes, with a munge of its own; from Debian's slurm-wlm and munge."""

import getpass
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from servers import free_port

NODES = ("one", "two")

CONFIG = """\
ClusterName=study
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=20
FirstJobId={first}
GresTypes=gpu
NodeName=one NodeHostname=localhost NodeAddr=127.0.0.1 Port={one} CPUs=2 RealMemory=4000 Gres=gpu:1 State=UNKNOWN
NodeName=two NodeHostname=localhost NodeAddr=127.0.0.1 Port={two} CPUs=2 RealMemory=4000 Gres=gpu:1 State=UNKNOWN
PartitionName=all Nodes=one,two Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in ("sbatch", "slurmctld", "slurmd", "munged") if not _program(name)]


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class Slurm:
    """Two nodes of two CPUs and one pretended GPU each, all on loopback."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self._daemons: list[subprocess.Popen[bytes]] = []
        try:
            self._begin()
        except BaseException:
            self._end()
            raise

    def __call__(self, *command: str, **environment: str) -> str:
        """What one of Slurm's commands prints."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment, **environment}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, *arguments: str, **environment: str) -> str:
        """`sbatch`; the job's number."""
        return self("sbatch", "--parsable", *arguments, **environment).strip()

    def job(self, number: str) -> dict[str, str]:
        """What `scontrol` knows of a job."""
        return dict(re.findall(r"(\w+)=(\S*)", self("scontrol", "show", "job", number)))

    def remove(self) -> None:
        """End all jobs, then Slurm."""
        self("scancel", f"--user={getpass.getuser()}")
        self._wait_for(lambda: not self("squeue", "--noheader"))
        self._end()

    def _begin(self) -> None:
        (self.folder / "state").mkdir()
        ports = {"controller": free_port(), "one": free_port(), "two": free_port()}
        (self.folder / "slurm.conf").write_text(
            CONFIG.format(folder=self.folder, user=getpass.getuser(), first=os.getpid(), **ports)
        )
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._start("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", *files)
        self._wait_for(lambda: (self.folder / "munge.socket").exists())
        self._start("slurmctld", "-D")
        for node in NODES:
            (self.folder / node).mkdir()
            self._start("slurmd", "-D", "-N", node)
        self._wait_for(lambda: self("sinfo", "--noheader", "--format=%T").split() == ["idle"])

    def _end(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
            daemon.wait(30)
        shutil.rmtree(self.folder)

    def _start(self, name: str, *arguments: str) -> None:
        program = _program(name)
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as out:
            self._daemons.append(
                subprocess.Popen([program, *arguments], env={**os.environ, **self.environment}, stdout=out, stderr=out)
            )

    def _wait_for(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert all(daemon.poll() is None for daemon in self._daemons), self._logs()
            assert time.monotonic() < deadline, self._logs()
            time.sleep(0.2)

    def _logs(self) -> str:
        files = sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")])
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-2000:]}" for path in files)
