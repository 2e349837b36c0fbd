"""Which messages of libraries are shown: errors alone, or with `study --verbose` all that they log."""

import logging
import os
import sys
import warnings

VERBOSE_VARIABLE = "STUDY_VERBOSE"
"""Variable that is set, to anything, where all are shown; processes that this one starts inherit it."""


def is_verbose() -> bool:
    """Return whether libraries may print all messages, and errors show their traceback."""
    return bool(os.environ.get(VERBOSE_VARIABLE))


def show_library_messages() -> None:
    """Show on standard error what libraries log, from INFO on, and their warnings of future changes."""
    os.environ[VERBOSE_VARIABLE] = "1"
    warnings.simplefilter("default", FutureWarning)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s: %(message)s")


def hide_library_messages(*names: str, level: int = logging.ERROR) -> None:
    """Hide what these loggers log below a level, unless all messages are shown."""
    if not is_verbose():
        for name in names:
            logging.getLogger(name).setLevel(level)
