"""The progress of a study in one line, no wider than a terminal."""

from rich.text import Text

from study.commands.progress import StudyProgress, clock
from study.home.events import ENDED

STYLES = {
    "phase": "bold",
    "running": "cyan",
    "pruned": "yellow",
    "failed": "red",
    "stopping": "magenta",
    "best": "green",
}

SHORTER = (
    *("best", "to_go", "epochs", "best", "trials"),
    *("epochs", "to_go", "enqueued", "stopping", "pruned", "failed", "running", "best"),
)
"""The parts in the order in which they become shorter, or are left out at last, where there is no room."""


def one_line(progress: StudyProgress, width: int) -> Text:
    """What a study is at, in at most `width` columns: clock, phase, trials, the best so far, epochs, time to go."""
    parts = _parts(progress)
    for name in SHORTER:
        if _joined(parts).cell_len <= width:
            break
        if len(parts[name]) > 1:
            del parts[name][0]
    line = _joined(parts)
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _parts(progress: StudyProgress) -> dict[str, list[str]]:
    """The forms of each part, from long to short; those that can be left out end with an empty one."""
    counts, (epochs, expected), seconds = progress.counts(), progress.epochs(), progress.remaining()
    ended, planned = sum(counts[state] for state in ENDED), sum(counts.values())
    bests = [f"best {text}" if text and not text.startswith("baseline") else text for text in progress.bests()]
    to_go = "" if not seconds else f"{clock(seconds)} to go"
    return {
        "elapsed": [clock(progress.elapsed())],
        "phase": [progress.phase()],
        "trials": [f"{ended}/{planned} trials", f"{ended}/{planned}"],
        **{state: _counted(counts.get(state, 0), state) for state in ("running", "pruned", "failed")},
        "stopping": _counted(progress.stopping(), "stopping"),
        "enqueued": _counted(progress.enqueued(), "enqueued"),
        "best": [*bests, ""],
        "epochs": [f"{epochs}/{expected} epochs", f"{epochs} epochs", ""],
        "to_go": [f"about {to_go}" if to_go else "", to_go, ""],
    }


def _counted(count: int, what: str) -> list[str]:
    return [f"{count} {what}" if count else "", ""]


def _joined(parts: dict[str, list[str]]) -> Text:
    shown = [Text(forms[0], STYLES.get(name, "")) for name, forms in parts.items() if forms[0]]
    return Text("  ", no_wrap=True, end="").join(shown)
