"""The form of the guide's pages: a title, a first line that says what for, an index, links that lead somewhere."""

import re
from dataclasses import fields
from pathlib import Path
from pkgutil import resolve_name

from pages import GUIDE, PAGES, README, RESULTS, prose

from study import published
from study.api.study_object import Configuration
from study.ranking import SeedStatistics

INDEX = GUIDE / "index.md"
GUIDES = [page for page in PAGES if page.parent == GUIDE]
LINK = re.compile(r"\]\(([^)]+)\)")


def targets(page: Path) -> list[str]:
    """The files that a page links to, relative to it."""
    return [link for link in LINK.findall(prose(page)) if not link.startswith(("http:", "https:"))]


LINKS = [(page, link) for page in sorted({*PAGES, *RESULTS.glob("*.md")}) for link in targets(page)]


def test_there_are_pages_and_links_to_look_at() -> None:
    assert len(GUIDES) > 15
    assert len(LINKS) > 60


def test_every_link_leads_somewhere() -> None:
    assert [f"{page.name}: {link}" for page, link in LINKS if not (page.parent / link).exists()] == []


def test_the_index_has_each_page_once_with_its_first_line() -> None:
    entries = re.findall(r"^- \[[^\]]+\]\(([^)]+)\) (.*)$", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    firsts = {
        page.name: re.sub("^(After this page you can|This page) ", "", page.read_text(encoding="utf-8").split("\n")[2])
        for page in GUIDES
        if page != INDEX
    }
    assert sorted(entries) == sorted(firsts.items())


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        nearby = {(page.parent / link).resolve() for link in targets(page) if link.endswith(".md")}
        waiting += nearby - reached - set(waiting)
    assert {page.resolve() for page in PAGES} <= {page.resolve() for page in reached}


def test_every_table_that_has_a_name_is_on_the_page_of_the_papers() -> None:
    page = (GUIDE / "papers.md").read_text(encoding="utf-8")
    assert [name for name in published.published_table_names() if not re.search(rf"`{name}\b", page)] == []


def test_every_name_of_the_package_is_there() -> None:
    gone = []
    for page in GUIDES:
        for name in re.findall(r"`(study(?:\.\w+){2,})", page.read_text(encoding="utf-8")):
            try:
                resolve_name(name)
            except (ImportError, AttributeError):
                gone.append(f"{page.name}: {name}")
    assert [name for name in gone if not name.startswith("changelog.md")] == []


def test_the_page_on_python_names_what_a_configuration_has() -> None:
    (row,) = re.findall(r"^\| `\.best` \|.*$", (GUIDE / "python.md").read_text(encoding="utf-8"), re.MULTILINE)
    attributes = {field.name for kind in (Configuration, SeedStatistics) for field in fields(kind)}
    assert set(re.findall(r"`(\w+)`", row)) <= attributes
    assert "`metrics`" in row
