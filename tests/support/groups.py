"""Control groups of memory, as Linux shows them: made up in a folder, or a real one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

V1, V2 = "1", "2"


def grouped(root: Path, version: str = V2, limit: int | None = None, used: int = 0, idle: int = 0) -> Path:
    """Make a root of a file system in which this process is in the group `pod`; gives the root."""
    (root / "proc/self").mkdir(parents=True)
    number, controllers, top = ("0", "", "sys/fs/cgroup") if version == V2 else ("4", "memory", "sys/fs/cgroup/memory")
    (root / "proc/self/cgroup").write_text(f"7:cpu,cpuacct:/pod\n{number}:{controllers}:/pod\n")
    group = root / top / "pod"
    group.mkdir(parents=True)
    names = ("memory.max", "memory.current") if version == V2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    (group / names[0]).write_text("max\n" if limit is None else f"{limit}\n")
    (group / names[1]).write_text(f"{used}\n")
    (group / "memory.stat").write_text(f"anon 7\n{'' if version == V2 else 'total_'}inactive_file {idle}\n")
    counter = group / ("memory.events" if version == V2 else "memory.oom_control")
    counter.write_text("low 0\nmax 4\noom 1\noom_kill 0\n" if version == V2 else "under_oom 0\noom_kill 0\n")
    return root


def killed(counter: Path, count: int) -> None:
    """Have a counter say that so many processes were ended."""
    counter.write_text(f"low 0\noom_kill {count}\n")


@contextmanager
def real_group(limit: int) -> Iterator[Path | None]:
    """A group of this machine below this process's own, with a limit in bytes; None where none can be made. Whoever
    writes its number into `cgroup.procs` there is in it."""
    from study.upstream.cgroup import MEMORY_FILES_BY_VERSION, _memory_cgroups

    own, files = next(_memory_cgroups(), (None, MEMORY_FILES_BY_VERSION[2]))
    group = own / f"study-test-{os.getpid()}" if own else None
    try:
        assert group is not None
        group.mkdir()
        (group / files.limit_file).write_text(str(limit))
    except (AssertionError, OSError):
        yield None
    else:
        yield group
    finally:
        if group is not None and group.is_dir():
            group.rmdir()
