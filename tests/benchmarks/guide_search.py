"""How well `study guide WORDS` answers: whether what it shows has the answer, or what it lists below.

    python tests/benchmarks/guide_search.py

Asks the questions of `guide_questions.yaml`, each with words of which its answer has one, with and without each of the
weights of `study.commands.guide`. Weights and the questions beside the guide's passages were chosen on these; each lot
of new ones was asked before words were written for what failed. Printed: how many are answered by what is shown, by one
of the passages listed below it, and by none of these, and which are not answered by what is shown.
"""

from collections import Counter
from contextlib import nullcontext
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
    "LATE_PASSAGE_FACTOR": 1.0,
    "RARITY_POWER": 0.0,
}
"""The value of each weight with which it counts nothing."""


def places() -> dict[str, str]:
    """Where the answer of each question is: shown, listed, none."""
    every = [
        passage
        for page, text in guide.read_pages().items()
        if page != guide.INDEX_PAGE
        for passage in guide.split_passages(page, text)
    ]
    found = {}
    for question, answers in QUESTIONS.items():
        passages = guide.search_passages(question.split(), every)
        best, *others = guide.first_passage_of_sections(passages)
        shown = f"{best.guide_section.heading}\n{guide.passage_excerpt(best, question.split(), passages)}"
        listed = "\n".join(one.text for one in others[: guide.MAX_FURTHER_PASSAGES])
        found[question] = next(
            (
                place
                for place, text in (("shown", shown), ("listed", listed))
                if any(answer in text for answer in answers)
            ),
            "none",
        )
    return found


def main() -> None:
    print("| without | shown | listed | none |\n|---|---|---|---|")
    for name, value in [*WITHOUT.items(), ("", 0.0)]:
        with mock.patch.object(guide, name, value) if name else nullcontext():
            found = places()
        counts = Counter(found.values())
        print(f"| {name or 'nothing'} | {' | '.join(str(counts[place]) for place in ('shown', 'listed', 'none'))} |")
    print("\nNot answered by what is shown:")
    for question, place in found.items():
        if place != "shown":
            print(f"- {question}: {place}")


if __name__ == "__main__":
    main()
