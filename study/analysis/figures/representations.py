"""Figures of learned features. Each gives a Matplotlib figure, or None where the data do not allow it."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from study.analysis.figures.style import BLUE, GREY, PALETTE, VERMILLION, new, plain, styled
from study.analysis.statistics.embedding import Embedding

COLOURS = "cividis"  # made for colour-blind readers (Nuñez et al. 2018)
SIGNS = ("positive: of one class", "negative: of two classes")
POINTS = 1000
"""Samples in a t-SNE: more take minutes and hide one another."""


@styled
def similarities(embeddings: Sequence[Embedding]) -> Figure | None:
    """Draw histograms of the cosines of pairs, within one bias class and across two (FairKL paper Fig. 5).

    Each embedding with bias classes has a row.
    """
    with_bias = [embedding for embedding in embeddings if embedding.bias is not None]
    if not with_bias:
        return None
    figure, panels = new(
        "Cosines of pairs of samples, by class and bias class", 0.9 + 2.3 * len(with_bias), 2, len(with_bias)
    )
    edges = np.linspace(-1, 1, 51)
    for row, embedding in enumerate(with_bias):
        counts = similarity_histogram(embedding)
        for column, sign in enumerate(SIGNS):
            axes = panels[2 * row + column]
            for kind, name, colour in ((0, "aligned: one bias class", BLUE), (1, "conflicting: two", VERMILLION)):
                share = counts[column, kind] / max(1, int(counts[column, kind].sum()))
                axes.stairs(share, edges, color=colour, linewidth=1.8, label=name)
            axes.set_title(f"{embedding.label}, {sign}", loc="left")
            axes.set_xlabel("cosine" if row == len(with_bias) - 1 else "")
            axes.set_ylabel("share of pairs" if column == 0 else "")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=2)
    return figure


@styled
def groups(embeddings: Sequence[Embedding]) -> Figure | None:
    """Draw compactness and separation of each (class, bias class) group (FSCL paper Fig. 2)."""
    with_groups = [
        embedding
        for embedding in embeddings
        if embedding.is_main and embedding.bias is not None and embedding.facts.bias_classes
    ]
    if not with_groups:
        return None
    figure, panels = new(
        "Mean cosines by class and bias class", 0.7 + 2.9 * len(with_groups), 2, len(with_groups), sharey=False
    )
    measures = (("within the group", group_similarity), ("to other classes", class_similarity))
    for column, (name, measure) in enumerate(measures):
        tables = [measure(embedding) for embedding in with_groups]
        ends = min(np.nanmin(table) for table in tables), max(np.nanmax(table) for table in tables)
        for row, (embedding, table) in enumerate(zip(with_groups, tables, strict=True)):
            axes = panels[2 * row + column]
            _heat(axes, table, ends)
            axes.set_title(f"{embedding.label}, {name}\nspread {spread(table):.4f}", loc="left")
            axes.set_xlabel("bias class" if row == len(with_groups) - 1 else "")
            axes.set_ylabel("class" if column == 0 else "")
    return figure


@styled
def tsne(embeddings: Sequence[Embedding]) -> Figure | None:
    """Draw the features in the plane by t-SNE, coloured by class and by bias class (FSCL paper Fig. 3)."""
    embeddings = [embedding for embedding in embeddings if embedding.is_main]
    if min((len(embedding.target) for embedding in embeddings), default=0) < 10:
        return None
    kinds = ["class", *(["bias class"] if all(embedding.bias is not None for embedding in embeddings) else [])]
    size = (len(kinds), len(embeddings))
    figure, panels = new("t-SNE of features: near samples are similar", 0.6 + 3.1 * size[1], *size, sharey=False)
    for row, embedding in enumerate(embeddings):
        sample = slice(None, None, -(-len(embedding.target) // POINTS))
        points = _tsne(embedding.features[sample])
        for column, (kind, label) in enumerate(zip(kinds, (embedding.target, embedding.bias), strict=False)):
            assert label is not None  # bias class is among the kinds only if all have it
            axes = panels[row * len(kinds) + column]
            _cloud(axes, points, label[sample])
            axes.set_title(f"{embedding.label}, by {kind}", loc="left")
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
    return figure


MODEL_FIGURES: dict[str, Callable[[Sequence[Embedding]], Figure | None]] = {
    "similarities": similarities,
    "groups": groups,
    "tsne": tsne,
}


# Measures of unit features. Means of cosines over pairs of groups come from sums of features, since the sum of products
# is the product of the sums; samples without a class or a bias class do not count.


def similarity_histogram(embedding: Embedding, bins: int = 50) -> NDArray[np.int64]:
    """Count the cosines of all ordered pairs of different samples: (2, 2, bins), equal bins from -1 to 1.

    The first index is 0 for pairs of one class and 1 for pairs of two, the second 0 for pairs of one bias class.
    """
    features, target, bias = _known(embedding)
    cosine = (features @ features.T).clip(-1, 1)
    itself = np.eye(len(target), dtype=bool)
    kind = np.where(itself, -1, 2 * (target[:, None] != target) + (bias[:, None] != bias))
    counts = [np.histogram(cosine[kind == number], bins, (-1, 1))[0] for number in range(4)]
    return np.reshape(counts, (2, 2, bins))


def group_similarity(embedding: Embedding) -> NDArray[np.float64]:
    """Return the compactness of each (class, bias class) group: the mean cosine of two different samples of it.

    nan where a group has no two samples (FSCL paper 4.7, Fig. 2).
    """
    sums, sizes = _group_sums(embedding)
    pairs = sizes * (sizes - 1)
    return np.where(pairs > 0, (np.square(sums).sum(2) - sizes) / np.maximum(pairs, 1), np.nan)


def class_similarity(embedding: Embedding) -> NDArray[np.float64]:
    """Return the separation of each group: the mean cosine of its samples to those of other classes, or nan."""
    sums, sizes = _group_sums(embedding)
    others = sums.sum((0, 1)) - sums.sum(1)
    pairs = sizes * (sizes.sum() - sizes.sum(1))[:, None]
    return np.where(pairs > 0, (sums * others[:, None]).sum(2) / np.maximum(pairs, 1), np.nan)


def spread(similarity: NDArray[np.float64]) -> float:
    """Return the standard deviation over groups of their similarities, scaled to sum to one (FSCL paper Fig. 2)."""
    return float(np.nanstd(similarity / np.nansum(similarity)))


def _group_sums(embedding: Embedding) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum of the features (classes, bias classes, F) and the number of samples of each group."""
    features, target, bias = _known(embedding)
    sums = np.zeros((embedding.facts.classes, embedding.facts.bias_classes or 1, features.shape[1]))
    sizes = np.zeros(sums.shape[:2])
    np.add.at(sums, (target, bias), features)
    np.add.at(sizes, (target, bias), 1)
    return sums, sizes


def _known(embedding: Embedding) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    assert embedding.bias is not None
    known = (embedding.target >= 0) & (embedding.bias >= 0)
    return embedding.features[known], embedding.target[known], embedding.bias[known]


def _heat(axes: Axes, table: NDArray[np.float64], ends: tuple[float, float]) -> None:
    """Draw a table as colours between two values, with its numbers where there is room."""
    image = axes.imshow(table, cmap=COLOURS, aspect="auto", vmin=ends[0], vmax=ends[1])
    axes.grid(visible=False)
    for axis, count in ((axes.yaxis, table.shape[0]), (axes.xaxis, table.shape[1])):
        axis.set_major_locator(MaxNLocator(min(count, 12), integer=True))
    if table.size <= 16:
        middle = sum(ends) / 2
        for (y, x), value in np.ndenumerate(table):
            colour = "white" if value < middle else "black"
            axes.annotate(f"{value:.2f}", (x, y), ha="center", va="center", color=colour)
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.colorbar(image, ax=axes, pad=0.02)


def _cloud(axes: Axes, points: NDArray[np.float64], label: NDArray[np.int64]) -> None:
    """Draw points in the colours of their labels, each label written at the median of its points."""
    for name in np.unique(label[label >= 0]):
        members = points[label == name]
        colour = PALETTE[int(name) % len(PALETTE)]
        marker = "os^Dv"[int(name) // len(PALETTE) % 5]
        axes.scatter(
            members[:, 0], members[:, 1], s=7, color=colour, marker=marker, alpha=0.7, linewidths=0, rasterized=True
        )
        middle = np.median(members, axis=0)
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": colour, "alpha": 0.85}
        axes.annotate(plain(str(name)), (middle[0], middle[1]), ha="center", va="center", fontsize=8.5, bbox=box)
    unknown = points[label < 0]
    axes.scatter(unknown[:, 0], unknown[:, 1], s=5, color=GREY, linewidths=0, rasterized=True)


def _tsne(features: NDArray[np.float64]) -> NDArray[np.float64]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(30.0, (len(features) - 1) / 3)
    with threadpool_limits(1):  # the same picture on any number of cores; with few points several are no faster
        points: NDArray[np.float64] = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(features)
    return points
