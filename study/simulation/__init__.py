"""A study on a virtual clock: the agenda, samplers and early stopping of a real one, over curves that are known."""

from study.simulation.cluster import Cluster, Nodes
from study.simulation.course import Course, Step
from study.simulation.curves import Curve, Curves
from study.simulation.simulate import Limit, simulate
from study.simulation.table import Table

__all__ = ["Cluster", "Course", "Curve", "Curves", "Limit", "Nodes", "Step", "Table", "simulate"]
