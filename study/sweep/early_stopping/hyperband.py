"""Hyperband: successive halving in all the brackets that fit."""

from study.sweep.early_stopping.asha import Asha


class Hyperband(Asha):
    """Asynchronous successive halving, as `Asha`, in the brackets of `study.spec.rungs.HyperbandSchedule`."""
