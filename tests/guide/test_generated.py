"""The generated parts of the guide are those that the code gives now."""

import pytest
from guide_parts import GUIDE, pages


@pytest.mark.parametrize(("page", "text"), pages().items(), ids=list(pages()))
def test_the_page_has_what_the_code_gives(page: str, text: str) -> None:
    """Where this fails: `python tests/support/guide_parts.py` writes the pages anew."""
    assert (GUIDE / page).read_text(encoding="utf-8") == text
