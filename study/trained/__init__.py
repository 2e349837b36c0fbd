"""Trained models as files: weights, a description that rebuilds their networks, and a model card."""

from typing import TYPE_CHECKING

from study.catalogue import lazy_getattr
from study.trained.description import Description

if TYPE_CHECKING:
    from study.trained.classifier import Classifier

__all__ = ["Classifier", "Description"]

__getattr__ = lazy_getattr({"Classifier": "study.trained.classifier"})  # needs PyTorch
