"""A paper's table, run here and printed beside the paper's numbers.

The table's numbers are in `study.published`, its study file, of the same name, in `search_spaces/`.
"""

from study.reproduce.run import Given, look, reproduce
from study.reproduce.tabulate import document, markdown, tabulate

__all__ = ["Given", "document", "look", "markdown", "reproduce", "tabulate"]
