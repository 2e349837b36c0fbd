"""A driver's process: `python -m study.driver ARGUMENTS` does what `study ARGUMENTS` does.

As a job of a cluster it ends at once where the head has no memory for it; as `drive`, it was started by a process on
this machine, whose task comes through a pipe.
"""

import runpy
import sys

from study.errors import UserError
from study.text import print_text


def run_command() -> None:
    """Run the command, unless it is a job's for which there is no memory.

    Raises:
        SystemExit: 2 where there is none, else as the command ends.
    """
    if sys.argv[1:2] != ["drive"]:
        from study.driver.head_memory import check_memory_for_driver

        try:
            check_memory_for_driver()
        except UserError as error:
            print_text(f"error: {error}", sys.stderr)
            sys.exit(error.exit_status)
    runpy.run_module("study", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run_command()
