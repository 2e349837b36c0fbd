"""Text that would leave a folder if it were taken for a name in it, as it is or in another reading."""

from hypothesis import strategies as st

PIECES = [
    *("..", ".", "/", "\\", "\0", "~", "/etc/passwd", "$HOME", "\n", " "),
    *("%2e", "%2e%2e%2f", "%252e", "%00", "&#46;"),
    *("\uff0e", "\uff0f", "\u2024", "\u2025", "\u2044", "\u2215", "\u202e", "e\u0301"),  # dots and slashes of their own
    *("a", "B-1_"),
]

ESCAPES = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(max_size=120)
