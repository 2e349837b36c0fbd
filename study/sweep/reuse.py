"""Processes that are given one trial after the other."""

from ray.exceptions import RayActorError

from study.upstream import tune


class StillBusy(RayActorError):
    """A trial was to run in a process in which the one before it had not come to its end."""


def tell_of_busy_processes() -> None:
    """Make the Tune of this process tell of a trial whose process was still busy, as of one whose process died. By
    itself it drops that trial without a word, and the study would wait for it for ever."""
    tune.change_failed_reuse(lambda: StillBusy(error_msg="its process was still busy with the trial before"))
