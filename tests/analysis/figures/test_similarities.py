"""Measures of the features against the plain way over all pairs."""

from itertools import permutations

import numpy as np
import pytest

from study.analysis.figures.representations import class_similarity, group_similarity, similarity_histogram, spread
from study.analysis.statistics.embedding import Embedding
from study.data import Facts


def samples(unlabelled: int) -> Embedding:
    draw = np.random.default_rng(0)
    features = draw.normal(0.5, 1, (40, 5))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    target, bias = draw.integers(0, 3, 40), draw.integers(0, 2, 40)
    target[:unlabelled] = -1
    bias[unlabelled : 2 * unlabelled] = -1
    return Embedding("trial 1", "val", Facts(3, 2, (4,)), features.astype(np.float32), target, bias)


def mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan


@pytest.mark.parametrize("unlabelled", [0, 4])
def test_every_measure_is_that_of_all_pairs(unlabelled: int) -> None:
    found = samples(unlabelled)
    target, bias = found.target, found.bias
    assert bias is not None
    cosine = found.features @ found.features.T
    pairs = list(permutations(range(2 * unlabelled, 40), 2))
    groups = [(y, s) for y in range(3) for s in range(2)]
    label = list(zip(target.tolist(), bias.tolist(), strict=True))
    within = [mean([cosine[i, j] for i, j in pairs if label[i] == label[j] == one]) for one in groups]
    between = [mean([cosine[i, j] for i, j in pairs if label[i] == one and label[j][0] != one[0]]) for one in groups]
    np.testing.assert_allclose(group_similarity(found).ravel(), within, rtol=1e-5)
    np.testing.assert_allclose(class_similarity(found).ravel(), between, rtol=1e-4)
    assert spread(group_similarity(found)) == pytest.approx(np.std(np.array(within) / sum(within)), rel=1e-4)
    counts = np.zeros((2, 2, 10), int)
    for i, j in pairs:
        counts[int(target[i] != target[j]), int(bias[i] != bias[j]), min(9, int((cosine[i, j] + 1) * 5))] += 1
    assert similarity_histogram(found, 10).tolist() == counts.tolist()


def test_groups_without_a_pair_do_not_count() -> None:
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], np.float32)
    found = Embedding("trial 1", "val", Facts(2, 2, (2,)), features, np.array([0, 0, 1]), np.array([0, 0, 1]))
    assert np.nan_to_num(group_similarity(found), nan=-1).tolist() == [[1.0, -1.0], [-1.0, -1.0]]
    assert np.nan_to_num(class_similarity(found), nan=-1).tolist() == [[0.0, -1.0], [-1.0, 0.0]]
    assert spread(np.array([0.2, 0.4, np.nan, 0.2])) == pytest.approx(np.std([0.25, 0.5, 0.25]))
