"""Trained models as files: weights, a description that rebuilds their networks, and a model card."""

from typing import TYPE_CHECKING

from study.catalogue import lazy_getattr
from study.trained.description import ModelDescription

if TYPE_CHECKING:
    from study.trained.classifier import TrainedClassifier

__all__ = ["ModelDescription", "TrainedClassifier"]

__getattr__ = lazy_getattr({"TrainedClassifier": "study.trained.classifier"})  # needs PyTorch
