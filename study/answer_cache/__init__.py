"""Kept answers about the code, so that a command that only asks does not load PyTorch."""

from study.answer_cache.answers import kept
from study.answer_cache.catalogue import KeptCatalogue
from study.answer_cache.json_form import KEPT

__all__ = ["KEPT", "KeptCatalogue", "kept"]
