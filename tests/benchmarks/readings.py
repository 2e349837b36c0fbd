"""Which reading of a protocol gives the printed numbers: every measured table as a Markdown page.

    python tests/benchmarks/readings.py HOME [--studies TABLE=NAME ...] [--causes RESULTS.jsonl]

HOME has the studies that `study reproduce TABLE --readings ...` ran, which `--studies` names where they have another
name than the table. Nothing is trained. RESULTS.jsonl is what `causes.py` measured, where a whole table is too long for
two cores: some of its cells, one thing of the protocol changed at a time. The page is `results/readings.md`. What
stands there of tables and cases that neither has is kept.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import causes
import pandas as pd

from study import published
from study.analysis.report.page_formats import frame_to_markdown
from study.analysis.statistics import formatting
from study.home.folder import Home
from study.reproduce import ReproductionRequest, compare_requested_readings
from study.reproduce.reading_comparison import ReadingComparison, reading_comparison_to_markdown
from study.spec.load import declared_readings
from study.spec.yaml_document import shipped_study_files

RESULTS = Path(__file__).parent / "results"
PAGE = RESULTS / "readings.md"
COLUMNS = ("table", "reading", "claims that hold", "contradicted", "order", "seeds", "the choice", "where")
CHANGED = "## One thing changed at a time"
EARLIER = {
    "fairkl-table12": ("squared", "fairkl-table12"),
    **{f"fairkl-table{number}": ("squared", f"fairkl-table{number}") for number in (3, 4, 10, 11)},
    **{f"fairkl-table{number}": ("of_scaled", f"fairkl-table{number}") for number in (2, 8)},
    "cclk-table4": ("rbf", "cclk-table4"),
    "cclk-table6": ("rbf", "cclk-table6"),
    "wcl-table1": ("frozen", "wcl-table1-longer"),
}
"""Tables that were measured before readings were declared: which one they had, and their page."""


def measured(home: Home, table: str, name: str | None) -> ReadingComparison | None:
    """A table under those of its readings that have values; None without any."""
    request = ReproductionRequest(name)
    whole = compare_requested_readings(home, table, request, "all")
    ran = [result.name for result in whole.results if any(cell.values for cell in result.our_cells.values())]
    return compare_requested_readings(home, table, request, ",".join(ran)) if ran else None


def overview(comparisons: list[ReadingComparison]) -> Iterator[dict[str, str]]:
    """A line for each reading of each measured table."""
    for comparison in comparisons:
        for result in comparison.results:
            words, order = list(result.claim_verdicts.values()), result.order_agreement
            yield {
                "table": comparison.table.name,
                "reading": result.name,
                "claims that hold": f"{words.count('holds')} of {len(words)}",
                "contradicted": str(words.count("does not hold")),
                "order": formatting.MISSING_TEXT
                if order is None
                else f"{order.mean:.2f} of {comparison.n_pairs} pairs",
                "seeds": str(len(result.order_agreement_by_seed)),
                "the choice": "taken" if result.reading.taken else "",
                "where": "below",
            }
    yield from kept_lines([comparison.table.name for comparison in comparisons])
    for table, (name, file) in EARLIER.items():
        section = (RESULTS / f"{file}.md").read_text(encoding="utf-8").partition("## Claims")[2].partition("\n## ")[0]
        words = [line.split(" | ")[1] for line in section.splitlines() if line.startswith("| ")][2:]
        yield {
            "table": table,
            "reading": name,
            "claims that hold": f"{words.count('holds')} of {len(words)}",
            "contradicted": str(words.count("does not hold")),
            "order": formatting.MISSING_TEXT,
            "seeds": formatting.MISSING_TEXT,
            "the choice": "taken" if declared_readings(table)[name].taken else "",
            "where": f"[its page]({file}.md)",
        }


def kept_lines(measured: list[str]) -> Iterator[dict[str, str]]:
    """The lines of the page, as it stands, on tables that were measured in another home."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.endswith(" | below |"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] not in measured:
                yield dict(zip(COLUMNS, cells, strict=True))


def kept_sections(level: str, there: list[str]) -> Iterator[str]:
    """The sections of the page, as it stands, on tables or cases that are not there now.

    Args:
        level: `##` of tables, `###` of cases.
    """
    whole = f"\n{PAGE.read_text(encoding='utf-8')}"
    if level == "###":
        whole = whole.partition(f"\n{CHANGED}\n")[2].partition("\n## ")[0]
    for section in whole.split(f"\n{level} ")[1:]:
        name, colon, _ = section.partition("\n")[0].partition(": ")
        if colon and name not in there:
            yield f"{level} {section.strip()}"


def declared() -> Iterator[dict[str, str]]:
    """A line for each reading that a shipped file declares."""
    for table in shipped_study_files():
        for name, reading in declared_readings(table).items():
            yield {
                "table": table,
                "reading": name,
                "what it means": reading.about,
                "source": reading.source,
                "taken": reading.taken or "",
            }


def page(comparisons: list[ReadingComparison], results: Path) -> Iterator[str]:
    yield "# Readings of the papers' protocols"
    yield (
        "This page shows which reading of a protocol gives the printed numbers, table by table, as "
        "`tests/benchmarks/readings.py` printed it: first whole tables under a reading, then cells of tables with one "
        "thing of the protocol changed at a time. [Papers](papers.md) says what follows."
    )
    lines = pd.DataFrame(list(overview(comparisons)), dtype=object)
    yield re.sub(r"\\([_\[\]])", r"\1", frame_to_markdown(lines))
    yield (
        "Order: of the pairs of cells in one row or column that the print tells apart, the share in the printed order "
        "less the share in the contrary one, mean over seeds."
    )
    yield CHANGED
    found = causes.read(results)
    ran = [name for name, case in causes.CASES.items() if causes.has_any(case, found)]
    yield causes.heading(found)
    yield from ("\n".join(causes.page(name, causes.CASES[name], found)) for name in ran)
    yield from kept_sections("###", ran)
    for comparison in comparisons:
        yield reading_comparison_to_markdown(comparison).replace("\n## ", "\n### ").removeprefix("# ").join(("## ", ""))
    yield from kept_sections("##", [comparison.table.name for comparison in comparisons])
    yield "## What the study files declare"
    yield frame_to_markdown(pd.DataFrame(list(declared()), dtype=object))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--studies", nargs="*", default=(), metavar="TABLE=NAME")
    parser.add_argument("--causes", type=Path, default=causes.FILE)
    given = parser.parse_args()
    home, named = Home(given.home), dict(text.split("=") for text in given.studies)
    tables = [
        name for name in published.published_table_names() if name in shipped_study_files() and declared_readings(name)
    ]
    there = [measured(home, table, named.get(table)) for table in tables]
    text = "\n\n".join(page([one for one in there if one], given.causes))
    PAGE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
