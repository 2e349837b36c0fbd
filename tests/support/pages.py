"""The README and the guide as tests read them: code blocks, commands, links."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers import ROOT

README = ROOT / "README.md"
GUIDE = ROOT / "study" / "guide"
RESULTS = ROOT / "tests" / "benchmarks" / "results"
PAGES = [
    README,
    *sorted(GUIDE.glob("*.md")),
    RESULTS / "README.md",
    ROOT / "cluster" / "README.md",
    *sorted((ROOT / ".github").glob("*.md")),
]


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        language: the first word behind the fence, empty where there is none.
        kind: the words behind it, which say how a test should take the block.
    """

    page: Path
    language: str
    kind: str
    text: str

    @property
    def name(self) -> str:
        """What a test calls it."""
        return f"{self.page.name}: {self.text.partition(chr(10))[0]}"


def blocks(language: str, *pages: Path) -> list[Block]:
    """The code blocks of a language on these pages, or on all, in order."""
    found = []
    for page in pages or PAGES:
        for fence in re.finditer(r"^```(\S*)(.*)\n((?s:.*?))^```$", page.read_text(encoding="utf-8"), re.MULTILINE):
            if fence[1] == language:
                found.append(Block(page, language, fence[2].strip(), fence[3]))
    return found


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```(?s:.*?)^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


def commands(*pages: Path) -> Iterator[list[str]]:
    """The arguments of every `study` command in the shell blocks of these pages, or of all."""
    for block in blocks("sh", *pages):
        for line in block.text.replace("\\\n", " ").splitlines():
            if command := re.match(r"(?:.* && )?(?:uv run )?study (.*)", line):
                yield shlex.split(command[1], comments=True)


def inline_commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every command that is named within a sentence or a table of a page."""
    for text in re.findall(r"`study ([^`]+)`", prose(page)):
        yield shlex.split(text.replace("\n", " "))
