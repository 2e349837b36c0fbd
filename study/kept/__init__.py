"""Kept answers about the code, so that a command that only asks does not load PyTorch."""

from study.kept.answers import kept
from study.kept.catalogue import KeptCatalogue
from study.kept.plain import KEPT

__all__ = ["KEPT", "KeptCatalogue", "kept"]
