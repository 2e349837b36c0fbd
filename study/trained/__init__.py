"""Trained models as files: weights, a description that rebuilds their networks, and a model card."""

from study.trained.classifier import Classifier
from study.trained.description import Description

__all__ = ["Classifier", "Description"]
