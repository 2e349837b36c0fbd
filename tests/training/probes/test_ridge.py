"""The linear prediction of a continuous attribute."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from study.training import evaluation


def data(count: int = 300, features: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(count, features, generator=generator)
    colours = 128 + 40 * rows[:, :3] + 25 * torch.randn(count, 3, generator=generator)
    return rows, colours


@pytest.mark.parametrize("l2", [1e-6, 0.5])
def test_it_is_the_ridge_regression_of_scikit_learn(l2: float) -> None:
    rows, colours = data()
    predict = evaluation.fit_ridge(rows, colours, l2)
    # scikit-learn minimises the sum of squared errors of all three channels + alpha * ||W||^2
    peer = Ridge(alpha=l2 * colours.numel()).fit(rows.double().numpy(), colours.double().numpy())
    np.testing.assert_allclose(predict(rows).numpy(), peer.predict(rows.double().numpy()), rtol=1e-8)


def test_the_error_is_in_squared_units_and_that_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, colours = data(4000)
    predict = evaluation.fit_ridge(rows[:3000], colours[:3000])
    found = evaluation.mean_squared_error(predict, rows[3000:], colours[3000:])
    assert float(found) == pytest.approx(25**2, rel=0.06)
    monkeypatch.setattr(evaluation, "CHUNK", 700)
    in_chunks = evaluation.fit_ridge(rows[:3000], colours[:3000])
    torch.testing.assert_close(evaluation.mean_squared_error(in_chunks, rows[3000:], colours[3000:]), found)


def test_features_that_know_nothing_give_the_variance() -> None:
    _, colours = data()
    rows = torch.ones(len(colours), 4)
    found = evaluation.mean_squared_error(evaluation.fit_ridge(rows, colours), rows, colours)
    torch.testing.assert_close(found, colours.double().var(0, correction=0).mean())
