"""Trained models as files: weights beside a description that rebuilds their networks, and what is said of them."""

from study.trained.classifier import Classifier
from study.trained.description import Description

__all__ = ["Classifier", "Description"]
