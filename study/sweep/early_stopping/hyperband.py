"""Hyperband: successive halving in all the brackets that fit."""

from study.sweep.early_stopping.asha import Asha


class Hyperband(Asha):
    """Decides as Asha does, in the brackets of `study.spec.rungs.HyperbandSchedule`."""
