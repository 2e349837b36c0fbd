"""One word for one thing: a trial that early stopping ended is pruned, a study that a signal ended is interrupted."""

import re
from pathlib import Path

import pytest
from helpers import Told, quickstart, record
from pages import GUIDE, README

from study.analysis.report.page import to_html, to_markdown
from study.analysis.report.sections import report_page
from study.commands import status
from study.commands.progress import StudyProgress
from study.home.events import STATES
from study.ranking import summary

OTHER_WORDS = re.compile(
    r"\b(stopped early|early[- ]stopped|stopped trials?|finished|aborted|cancelled|halted|done trials?)\b"
)


def texts() -> dict[str, str]:
    """What is printed of a small study with a trial in every state."""
    spec = quickstart("search.trials=6", "train.epochs=4")
    found = record(
        Told("baseline", [0.1, 0.2, 0.3, 0.4]),
        Told("search", [0.2, 0.4, 0.5, 0.6]),
        Told("search", [0.1], "pruned"),
        Told("search", [], "failed"),
        Told("search", [0.1], "running"),
    )
    found.apply({"event": "closed", "state": "interrupted", "time": 1.0})
    page, view = report_page(spec, found, {}), StudyProgress(spec, found)
    document = {**summary.summary(spec, found), "ties": [], "pace": None}
    return {
        "progress": view.line(),
        "summary": "\n".join(summary.lines(document)),
        "status": "\n".join(status.lines(document)),
        "report.md": to_markdown(page),
        "report.html": to_html(page, {}),
    }


def test_no_text_of_a_study_has_another_word_for_a_state() -> None:
    for name, text in texts().items():
        assert not OTHER_WORDS.search(text), name
        for state in ("complete", "pruned", "failed", "interrupted"):
            assert re.search(rf"\b{state}\b", text), (name, state)


@pytest.mark.parametrize("page", [README, *sorted(GUIDE.glob("*.md"))], ids=lambda page: page.name)
def test_nor_has_the_guide(page: Path) -> None:
    assert page.name == "changelog.md" or not OTHER_WORDS.search(page.read_text(encoding="utf-8"))


def test_the_guide_lists_the_words() -> None:
    listed = (GUIDE / "reports.md").read_text(encoding="utf-8").split("## Words for the state of a trial")[1]
    rows = re.findall(r"^\| `?(\w+)`? \|", listed, re.MULTILINE)
    assert [word for word in rows if word in STATES] == list(STATES)
