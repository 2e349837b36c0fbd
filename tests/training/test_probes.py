"""What every classifier of features must do, and each against an independent implementation."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from study.errors import UserError
from study.training import probes

CLASSES = 3


def clusters(seed: int, count: int = 240, features: int = 8, spread: float = 2.0) -> tuple[Tensor, Tensor]:
    """Correlated features in three overlapping clusters."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(count) % CLASSES
    centres = torch.randn(CLASSES, features, generator=torch.Generator().manual_seed(99))
    mixing = torch.randn(features, features, generator=torch.Generator().manual_seed(98))
    return (centres[target] + spread * torch.randn(count, features, generator=generator)) @ mixing, target


@pytest.fixture(params=list(probes.PROBE_FITTERS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_it_learns_and_says_so_on_other_samples(name: str) -> None:
    classify = probes.PROBE_FITTERS[name](*clusters(0, spread=0.3), CLASSES, 0)
    features, target = clusters(1, count=90, spread=0.3)
    scores = classify(features)
    assert scores.shape == (90, CLASSES)
    assert scores.isfinite().all()
    assert (scores.argmax(1) == target).double().mean() > 0.9


def test_samples_without_a_class_are_left_out(name: str) -> None:
    features, target = clusters(0)
    unlabelled = torch.where(torch.arange(len(target)) % 2 == 0, target, -1)
    some = probes.PROBE_FITTERS[name](features, unlabelled, CLASSES, 0)(features)
    assert torch.equal(some, probes.PROBE_FITTERS[name](features[::2], target[::2], CLASSES, 0)(features))
    with pytest.raises(UserError, match="none of 240 samples has a class"):
        probes.PROBE_FITTERS[name](features, torch.full_like(target, -1), CLASSES, 0)


def test_the_same_seed_gives_the_same_bits_and_no_other_generator_is_touched(name: str) -> None:
    features, target = clusters(0)
    state = torch.random.get_rng_state()
    first = probes.PROBE_FITTERS[name](features, target, CLASSES, 3)(features)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.rand(5)
    assert torch.equal(probes.PROBE_FITTERS[name](features, target, CLASSES, 3)(features), first)


def test_a_class_that_no_sample_has_and_a_constant_feature_do_no_harm(name: str) -> None:
    features, target = clusters(0)
    features[:, 2] = 5.0
    scores = probes.PROBE_FITTERS[name](features, target, CLASSES + 1, 0)(features)
    assert scores.isfinite().all()
    assert (scores.argmax(1) < CLASSES).all()


def test_features_may_come_with_a_graph_or_without_gradients(name: str) -> None:
    features, target = clusters(0)
    plain = probes.PROBE_FITTERS[name](features, target, CLASSES, 0)(features)
    assert not plain.requires_grad
    with torch.no_grad():
        assert torch.equal(
            probes.PROBE_FITTERS[name](features.requires_grad_(), target, CLASSES, 0)(features.detach()), plain
        )


@pytest.mark.parametrize(("seed", "l2"), [(2, 1e-6), (3, 1e-6), (4, 1e-3)])
def test_lbfgs_comes_to_the_lowest_value_of_its_objective(seed: int, l2: float) -> None:
    """Within what float32 tells of it; scikit-learn's is that of float64."""
    features, target = clusters(seed, spread=2.0)
    classify = probes.fit_lbfgs_probe(features, target, CLASSES, 0, l2=l2)
    rows, labels = features.double(), target.numpy()
    # scikit-learn minimises C * sum of cross entropies + ||W||^2 / 2
    peer = LogisticRegression(C=1 / (2 * l2 * len(labels)), tol=1e-12, max_iter=20_000).fit(rows.numpy(), labels)

    def value(bias: Tensor, weight: Tensor) -> float:
        return float(cross_entropy(rows @ weight.T + bias, target) + l2 * weight.square().sum())

    bias = classify(torch.zeros(1, 8))[0]
    found = value(bias.double(), (classify(torch.eye(8)) - bias).T.double())
    lowest = value(torch.from_numpy(peer.intercept_), torch.from_numpy(peer.coef_))
    assert found - lowest < 1e-7


def test_a_weighted_sample_counts_as_so_many() -> None:
    features, target = clusters(0, count=60)
    twice = torch.arange(60) % 3 == 0
    weights = torch.where(twice, 2.0, 1.0)
    weighted = probes.fit_lbfgs_probe(features, target, CLASSES, 0, l2=1e-3, weights=weights / weights.mean())
    repeated = probes.fit_lbfgs_probe(
        torch.cat([features, features[twice]]), torch.cat([target, target[twice]]), CLASSES, 0, 1e-3
    )
    assert torch.allclose(weighted(features), repeated(features), atol=2e-3)
    assert not torch.allclose(
        probes.fit_lbfgs_probe(features, target, CLASSES, 0, 1e-3)(features), repeated(features), atol=2e-3
    )


def test_knn_votes_as_scikit_learn_does_and_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    features, target = clusters(0, spread=1.5)
    queries, _ = clusters(1, count=31, spread=1.5)

    def weigh(distances: np.ndarray) -> np.ndarray:
        return np.exp((1 - distances) / 0.1)

    peer = KNeighborsClassifier(n_neighbors=20, metric="cosine", weights=weigh, algorithm="brute")
    expected = peer.fit(features.numpy(), target.numpy()).predict_proba(queries.numpy())
    whole = probes.fit_knn_probe(features, target, CLASSES, 0, 20, 0.1)(queries)
    np.testing.assert_allclose(whole.numpy(), expected, atol=1e-5)
    monkeypatch.setattr(probes, "MAX_SIMILARITIES_AT_ONCE", 7 * len(features))
    torch.testing.assert_close(probes.fit_knn_probe(features, target, CLASSES, 0, 20, 0.1)(queries), whole)


def test_knn_with_few_samples_and_a_tiny_temperature() -> None:
    features, target = clusters(0, count=6)
    scores = probes.fit_knn_probe(features, target, CLASSES, 0, temperature=1e-3)(features)
    assert torch.equal(scores.argmax(1), target)
    torch.testing.assert_close(scores.sum(1), torch.ones(6))


def test_mlp_learns_what_no_linear_classifier_can() -> None:
    generator = torch.Generator().manual_seed(0)
    features = normalize(torch.randn(800, 2, generator=generator))
    target = (features[:, 0] * features[:, 1] > 0).long()
    classifiers = (
        probes.fit_lbfgs_probe(features, target, 2, 0),
        probes.fit_mlp_probe(features, target, 2, 0, learning_rate=0.01, batch_size=64),
    )
    straight, bent = ((classify(features).argmax(1) == target).double().mean() for classify in classifiers)
    assert straight < 0.7
    assert bent > 0.9


# The linear prediction of a continuous attribute.


def coloured(count: int = 300, features: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(count, features, generator=generator)
    colours = 128 + 40 * rows[:, :3] + 25 * torch.randn(count, 3, generator=generator)
    return rows, colours


@pytest.mark.parametrize("l2", [1e-6, 0.5])
def test_it_is_the_ridge_regression_of_scikit_learn(l2: float) -> None:
    rows, colours = coloured()
    predict = probes.fit_ridge_probe(rows, colours, l2)
    # scikit-learn minimises the sum of squared errors of all three channels + alpha * ||W||^2
    peer = Ridge(alpha=l2 * colours.numel()).fit(rows.double().numpy(), colours.double().numpy())
    np.testing.assert_allclose(predict(rows).numpy(), peer.predict(rows.double().numpy()), rtol=1e-8)


def test_the_error_is_in_squared_units_and_that_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, colours = coloured(4000)
    predict = probes.fit_ridge_probe(rows[:3000], colours[:3000])
    found = probes.mean_squared_error(predict, rows[3000:], colours[3000:])
    assert float(found) == pytest.approx(25**2, rel=0.06)
    monkeypatch.setattr(probes, "ROWS_PER_CHUNK", 700)
    in_chunks = probes.fit_ridge_probe(rows[:3000], colours[:3000])
    torch.testing.assert_close(probes.mean_squared_error(in_chunks, rows[3000:], colours[3000:]), found)
