"""The messages of libraries that are shown: errors alone, or with `study --verbose` all that they log."""

import logging
import os
import sys
import warnings

VERBOSE = "STUDY_VERBOSE"
"""Variable that is set, to anything, where they may; processes that this one starts inherit it."""


def is_verbose() -> bool:
    """Return whether libraries may say what they like, and errors show where they came from."""
    return bool(os.environ.get(VERBOSE))


def let_through() -> None:
    """From now on, show on standard error what libraries log, from INFO on, and warn of their next versions."""
    os.environ[VERBOSE] = "1"
    warnings.simplefilter("default", FutureWarning)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s: %(message)s")


def hush(*names: str, level: int = logging.ERROR) -> None:
    """Let these loggers say what is at least of a level and nothing else; as they are, where all may be said."""
    if not is_verbose():
        for name in names:
            logging.getLogger(name).setLevel(level)
