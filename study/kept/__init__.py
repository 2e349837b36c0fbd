"""Answers about the code that are kept, so that a command that only asks loads no PyTorch."""

from study.kept.answers import kept
from study.kept.catalogue import KeptCatalogue
from study.kept.plain import KEPT

__all__ = ["KEPT", "KeptCatalogue", "kept"]
