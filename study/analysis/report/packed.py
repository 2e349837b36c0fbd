"""Texts as a page carries them: compressed, as printable characters that a script of the page unpacks."""

import zlib
from base64 import b85encode
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Packed:
    """A text, compressed by zlib, in base 85 (RFC 1924; a comma stands for `<`, so that no tag begins in it).

    Attributes:
        length: of the compressed text in bytes; `digits` hold up to three more, zeros.
    """

    digits: str
    length: int


def packed(text: str) -> Packed:
    """Pack a text."""
    content = zlib.compress(text.encode(), 9)
    digits = b85encode(content + bytes(-len(content) % 4)).decode()
    return Packed(digits.replace("<", ","), len(content))


def plotting_library() -> str:
    """Plotly's script, as its Python package brings it."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def library() -> Packed:
    """The same, packed."""
    return packed(plotting_library())
