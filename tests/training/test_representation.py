"""Measures of the features against the plain way over all pairs."""

from itertools import permutations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from study.data import Facts
from study.training import representation

FACTS = Facts(3, 2, (4,))


@pytest.fixture(params=[2**22, 60])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs at once, and a few rows at a time."""
    monkeypatch.setattr(representation, "CHUNK", request.param)


def samples(count: int = 40, unlabelled: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = normalize(torch.randn(count, 5, generator=generator) + 0.5, dim=1)
    target, bias = (torch.randint(0, top, (count,), generator=generator) for top in (3, 2))
    target[:unlabelled] = -1
    bias[unlabelled : 2 * unlabelled] = -1
    return features, target, bias


def mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan


@pytest.mark.parametrize("unlabelled", [0, 4])
def test_similarities_within_and_between_are_the_means_over_pairs(unlabelled: int) -> None:
    features, target, bias = samples(unlabelled=unlabelled)
    cosine = (features.double() @ features.double().T).numpy()
    known = [i for i in range(40) if target[i] >= 0 and bias[i] >= 0]
    pairs = [(i, j) for i, j in permutations(known, 2)]
    groups = [(y, s) for y in range(3) for s in range(2)]
    label = [(int(y), int(s)) for y, s in zip(target, bias, strict=True)]
    within = [mean([cosine[i, j] for i, j in pairs if label[i] == label[j] == one]) for one in groups]
    between = [mean([cosine[i, j] for i, j in pairs if label[i] == one and label[j][0] != one[0]]) for one in groups]
    group = representation.group_similarity(features, target, bias, FACTS)
    np.testing.assert_allclose(group, within, rtol=1e-5)
    np.testing.assert_allclose(representation.class_similarity(features, target, bias, FACTS), between, rtol=1e-5)
    assert float(representation.spread(group)) == pytest.approx(np.std(np.array(within) / sum(within)), rel=1e-4)


def test_groups_without_a_pair_do_not_count() -> None:
    features = normalize(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    target, bias = torch.tensor([0, 0, 1]), torch.tensor([0, 0, 1])
    facts = Facts(2, 2, (2,))
    group = representation.group_similarity(features, target, bias, facts)
    assert group.nan_to_num(-1).tolist() == [1.0, -1.0, -1.0, -1.0]
    between = representation.class_similarity(features, target, bias, facts)
    assert between.nan_to_num(-1).tolist() == [0.0, -1.0, -1.0, 0.0]


def test_the_spread_of_the_papers_figure_is_of_shares() -> None:
    values = torch.tensor([0.2, 0.4, torch.nan, 0.2], dtype=torch.float64)
    assert float(representation.spread(values)) == pytest.approx(np.std([0.25, 0.5, 0.25]))


@pytest.mark.usefixtures("chunk")
def test_the_histogram_counts_each_pair_once_in_its_kind() -> None:
    features, target, bias = samples(unlabelled=3)
    found = representation.similarity_histogram(features, target, bias, bins=10)
    expected = np.zeros((2, 2, 10), int)
    cosine = (features @ features.T).numpy()
    for i, j in permutations(range(6, 40), 2):
        place = min(9, int((cosine[i, j] + 1) * 5))
        expected[int(target[i] != target[j]), int(bias[i] != bias[j]), place] += 1
    assert found.tolist() == expected.tolist()
