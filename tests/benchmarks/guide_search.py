"""How well `study guide WORDS` answers: whether the first of the sections that it shows has the answer, or another.

    python tests/benchmarks/guide_search.py

Asks the questions of `guide_questions.yaml`, each with words of which its answer has one, with and without each of the
weights of `study.commands.guide`, and with other numbers of lines. Weights and the questions beside the passages were
chosen on these; each lot of new ones was asked before words were written for what failed. Printed: how many are
answered by the first section, by one of those shown, and by none of these; the lines of the median and of the longest
answer; and which questions are not answered by the first section.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from unittest import mock

import yaml

from study.commands import guide

QUESTIONS: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("guide_questions.yaml").read_text(encoding="utf-8")
)
WITHOUT = {
    "HEADING_WEIGHT": 0.0,
    "QUESTION_WORD_WEIGHT": 0.0,
    "SIMILAR_QUESTION_WEIGHT": 0.0,
    "SECTION_WEIGHT": 0.0,
    "EVERYDAY_WORD_FACTOR": 0.0,
    "LOW_PRIORITY_FACTOR": 1.0,
    "RARITY_POWER": 0.0,
}
"""The value of each weight with which it counts nothing."""


LINES = ((16,), (16, 6, 6), (16, 10, 10), (16, 12, 12), (12, 8, 8), (16, 6, 6, 4))
"""Other lines of each section that is shown."""


def main() -> None:
    count = cache(guide._count_stems)  # the same passages for each question
    pages = guide.read_pages().items()
    every = [
        passage for page, text in pages if page != guide.INDEX_PAGE for passage in guide.split_passages(page, text)
    ]
    with mock.patch.object(guide, "_count_stems", lambda texts: count(tuple(texts))):
        ranked = {question: guide.search_passages(question.split(), every) for question in QUESTIONS}
        print("| | the first | one of the shown | none | lines | at most |\n|---|---|---|---|---|---|")
        print_row("as it is", ranked, guide.EXCERPT_LINES_BY_RANK)
        for lines in LINES:
            print_row(f"lines {lines}", ranked, lines)
        for name, value in WITHOUT.items():
            with mock.patch.object(guide, name, value):
                found = {question: guide.search_passages(question.split(), every) for question in QUESTIONS}
            print_row(f"without {name}", found, guide.EXCERPT_LINES_BY_RANK)
    print("\nNot answered by the first:")
    for question, place in answering_places(ranked, guide.EXCERPT_LINES_BY_RANK).items():
        if place != 1:
            print(f"- {question}: {place or 'none'}")


def print_row(name: str, ranked: dict[str, list[guide.Passage]], lines: Sequence[int]) -> None:
    """Print what is answered with so many lines of each section."""
    places = answering_places(ranked, lines).values()
    first, shown = sum(place == 1 for place in places), sum(place is not None for place in places)
    long = sorted(sum(text.count("\n") + 4 for text in shown_texts(*item, lines)) for item in ranked.items())
    print(f"| {name} | {first} | {shown} | {len(ranked) - shown} | {long[len(long) // 2]} | {long[-1]} |", flush=True)


def answering_places(ranked: dict[str, list[guide.Passage]], lines: Sequence[int]) -> dict[str, int | None]:
    """Return the place, from 1 on, of the shown section that answers each question; None: none does."""
    return {
        question: next(
            (
                place
                for place, text in enumerate(shown_texts(question, found, lines), 1)
                if any(answer in text for answer in QUESTIONS[question])
            ),
            None,
        )
        for question, found in ranked.items()
    }


def shown_texts(question: str, found: list[guide.Passage], lines: Sequence[int]) -> list[str]:
    """Return heading and excerpt of each section that is shown; none where no passage was found."""
    return [
        f"{best.guide_section.heading}\n{guide.passage_with_context(best, question.split(), found, most)}"
        for best, most in zip(guide.first_passage_of_sections(found), lines, strict=False)
    ]


if __name__ == "__main__":
    main()
