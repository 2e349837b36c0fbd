"""What a message proposes to type is what a shell reads."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from study.text import study_command


@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])), max_size=4))
def test_a_shell_reads_the_words_back(words: list[str]) -> None:
    assert shlex.split(study_command(*words)) == ["study", *words]


def test_what_needs_no_quotes_has_none() -> None:
    assert study_command("train", "best.yaml", "--seeds", "0,1") == "study train best.yaml --seeds 0,1"
