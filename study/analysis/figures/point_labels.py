"""Labels beside points, each where a reader sees whose it is."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import hypot, inf
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Affine2D, Bbox

from study.analysis.figures.style import BLACK, GREY, escape_dollars

LabelledPoint = tuple[float, float, str]
"""Where a point is, in the units of its axes, and its label; empty: it has none."""

_RatedBox = tuple[float, Bbox]
"""How bad a place of a label is, and the place."""

LABEL_DISTANCES = (7.0, 10.0, 14.0, 19.0, 25.0, 32.0, 42.0, 55.0)  # from a point to its label, points
LABEL_DIRECTIONS = [*product((1.0, 0.5, 0.0, -0.5, -1.0), (1.0, -1.0)), (1.0, 0.0), (-1.0, 0.0)]  # across and up
MARK_RADIUS = 5.0  # points: a label leaves this much room around any point
NEARER_MARGIN = 2.0  # points: by so much a label is nearer to its own point than to others
MIN_LEADER_LINE_DISTANCE = 16.0  # points: from here on a line leads from a label to its point
PLACEMENT_ROUNDS = 3  # in which each label moves to its best place among the others'

# What is wrong with a place of a label.
LABEL_OVERLAP_PENALTY, POINT_OVERLAP_PENALTY, LINE_OVERLAP_PENALTY = 1000.0, 300.0, 30.0
OUTSIDE_AXES_PENALTY, NEARER_TO_OTHER_PENALTY = 300.0, 100.0
OTHER_ERROR_BAR_PENALTY, OWN_ERROR_BAR_PENALTY = 25.0, 8.0  # error bars
NEAR_OTHER_PENALTY = 15.0  # as near as to its own; less where it is farther away
PENALTY_PER_DISTANCE = 1.0


def label_points(figure: Figure, points_by_axes: Sequence[tuple[Axes, Sequence[LabelledPoint]]]) -> None:
    """Write labels beside their points, inside their axes.

    A label is nearer to its own point than to any other, or a line leads from it to its point. Labels do not overlap
    where there is room, and avoid lines and error bars where they can.

    Limits and legend have to be final, as places are found on the figure as it will be drawn.
    """
    if any(label for _, points in points_by_axes for *_, label in points):
        figure.draw_without_rendering()
    for axes, points in points_by_axes:
        _label_points_of_axes(figure, axes, points)


def _label_points_of_axes(figure: Figure, axes: Axes, points: Sequence[LabelledPoint]) -> None:
    dot = figure.dpi / 72  # pixels per point
    at = [_FigurePoint(*(axes.transData.transform((x, y)) / dot)) for x, y, _ in points]
    obstacles = _LabelObstacles(axes, at, dot)
    choices: dict[int, list[_RatedBox]] = {}
    for number, (*_, label) in enumerate(points):
        if label:
            text = _write_label(axes, points[number], (0, 0), has_leader_line=False)
            size = text.get_window_extent()
            text.remove()
            boxes = _candidate_label_boxes(at[number], size.width / dot, size.height / dot)
            rated = [(obstacles.penalty(box, number) + PENALTY_PER_DISTANCE * far, box) for box, far in boxes]
            choices[number] = sorted(rated, key=lambda choice: choice[0])
    chosen = [_choose_label_places(choices, order) for order in ([*choices], [*choices][::-1])]
    best = min(chosen, key=lambda taken: sum(bad for bad, _ in taken.values()))
    for number, (_, box) in best.items():
        middle = ((box.x0 + box.x1) / 2 - at[number].x, (box.y0 + box.y1) / 2 - at[number].y)
        is_far = at[number].distance(box) > MIN_LEADER_LINE_DISTANCE
        _write_label(axes, points[number], middle, is_far or obstacles.is_nearer_to_another(box, number))


def _choose_label_places(choices: Mapping[int, Sequence[_RatedBox]], order: Sequence[int]) -> dict[int, _RatedBox]:
    """Return the place of each label: one after the other takes the best that the others leave, in several rounds."""
    taken: dict[int, _RatedBox] = {}
    for number in [*order] * PLACEMENT_ROUNDS:
        others = [box.padded(1) for other, (_, box) in taken.items() if other != number]
        free = (choice for choice in choices[number] if not choice[1].count_overlaps(others))
        bad, box = choices[number][0]
        taken[number] = next(free, (bad + LABEL_OVERLAP_PENALTY, box))
    return taken


def _write_label(axes: Axes, point: LabelledPoint, middle: tuple[float, float], has_leader_line: bool) -> Annotation:
    """Write a label with its middle this far from its point, in points, and a line to the point if it has one."""
    x, y, label = point
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 3}
    text = axes.annotate(
        escape_dollars(label),
        (x, y),
        xytext=middle,
        textcoords="offset points",
        ha="center",
        va="center",
        color=BLACK,
        fontsize=8.5,
        annotation_clip=False,
        arrowprops=line if has_leader_line else None,
        path_effects=[withStroke(linewidth=3, foreground="white")],  # a line may pass below it
        zorder=7,
    )
    text.set_in_layout(False)  # else the axes would move, and with them what the place was found by
    return text


class _FigurePoint(NamedTuple):
    """A place on a figure, in points of 1/72 inch."""

    x: float
    y: float

    def distance(self, box: Bbox) -> float:
        """Return how far it is from a box: 0 inside."""
        return hypot(max(box.x0 - self.x, 0, self.x - box.x1), max(box.y0 - self.y, 0, self.y - box.y1))


class _LabelObstacles:
    """What labels have to avoid in a panel: its edges, points, lines and error bars."""

    def __init__(self, axes: Axes, at: Sequence[_FigurePoint], dot: float) -> None:
        to_points = Affine2D().scale(1 / dot)
        self._at = at
        self._edges = axes.get_window_extent().transformed(to_points)
        bars = [each for each in axes.collections if isinstance(each, LineCollection)]
        self._lines = [(each.get_transform() + to_points).transform_path(each.get_path()) for each in axes.lines]
        self._bars = [
            (each.get_transform() + to_points).transform_path(path) for each in bars for path in each.get_paths()
        ]

    def penalty(self, box: Bbox, number: int) -> float:
        """Return how bad it is if a label of the point of this number stands here."""
        edges = self._edges
        beyond = max(0, edges.x0 - box.x0, box.x1 - edges.x1, edges.y0 - box.y0, box.y1 - edges.y1)
        wrong = (OUTSIDE_AXES_PENALTY + beyond) * (beyond > 0)
        wrong += POINT_OVERLAP_PENALTY * sum(place.distance(box) < MARK_RADIUS for place in self._at)
        wrong += NEARER_TO_OTHER_PENALTY * self.is_nearer_to_another(box, number)
        own = self._at[number]
        beside = min((place.distance(box) for place in self._at if place != own), default=inf)
        wrong += NEAR_OTHER_PENALTY * min(1.0, own.distance(box) / max(beside, 1.0))
        wrong += LINE_OVERLAP_PENALTY * sum(path.intersects_bbox(box.padded(1), filled=False) for path in self._lines)
        for path in self._bars:
            if path.intersects_bbox(box.padded(3), filled=False):
                ends = path.get_extents()
                is_own = hypot((ends.x0 + ends.x1) / 2 - own.x, (ends.y0 + ends.y1) / 2 - own.y) < 1
                wrong += OWN_ERROR_BAR_PENALTY if is_own else OTHER_ERROR_BAR_PENALTY
        return wrong

    def is_nearer_to_another(self, box: Bbox, number: int) -> bool:
        """Tell whether a label here would seem to be of another point than that of this number."""
        own = self._at[number]
        return any(place.distance(box) < own.distance(box) + NEARER_MARGIN for place in self._at if place != own)


def _candidate_label_boxes(place: _FigurePoint, width: float, height: float) -> Iterator[tuple[Bbox, float]]:
    """Return where a label of this size can stand, in points, with its distance from its point."""
    for distance, (across, up) in product(LABEL_DISTANCES, LABEL_DIRECTIONS):
        away = distance / hypot(across, up)
        x, y = place.x + across * (away + width / 2), place.y + up * (away + height / 2)
        yield Bbox.from_extents(x - width / 2, y - height / 2, x + width / 2, y + height / 2), distance
