"""Hyperparameter studies for debiased and fair contrastive learning."""

__version__ = "0.1.0"
