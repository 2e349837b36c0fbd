"""Commands that a message proposes, as a shell reads them back."""

import shlex


def typed(*words: object) -> str:
    """A `study` command that can be typed: words with spaces or signs that a shell reads are quoted.

    >>> typed("train", "my studies/best.yaml", "--seeds", "0,1")
    "study train 'my studies/best.yaml' --seeds 0,1"
    """
    return shlex.join(["study", *map(str, words)])
