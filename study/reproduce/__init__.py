"""A paper's table, run here and printed beside the paper's numbers.

The paper's numbers are in `study.published`, the study file of the same name in `search_spaces/`.
"""

from study.reproduce.reproduction import document, markdown, tabulate
from study.reproduce.run import Request, current_table, reproduce

__all__ = ["Request", "current_table", "document", "markdown", "reproduce", "tabulate"]
