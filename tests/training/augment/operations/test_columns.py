"""Random changes of tables' rows."""

import torch
from draws import generator
from torch.testing import assert_close

from study.training.augment.operations import ColumnCorruption, ColumnNoise


def test_the_share_asked_for_is_replaced_in_every_column_and_not_in_whole_rows() -> None:
    rows = torch.arange(50_000.0).view(5000, 10)
    replaced = (ColumnCorruption(0.3)(rows, generator()) != rows).float()
    assert_close(replaced.mean(0), torch.full((10,), 0.3), atol=0.025, rtol=0)
    assert_close(replaced.sum(1).var(), torch.tensor(10 * 0.3 * 0.7), atol=0.15, rtol=0)


def test_any_other_row_may_be_the_source() -> None:
    rows = torch.arange(5.0).view(5, 1).expand(5, 2000).contiguous()
    views = ColumnCorruption(1.0)(rows, generator())
    for index, view in enumerate(views):
        shares = torch.stack([(view == source).float().mean() for source in range(5)])
        assert shares[index] == 0
        assert_close(shares[torch.arange(5) != index], torch.full((4,), 0.25), atol=0.04, rtol=0)


def test_a_row_alone_has_nothing_to_take_from() -> None:
    rows = torch.rand(1, 4, generator=generator())
    assert torch.equal(ColumnCorruption(1.0)(rows, generator()), rows)


def test_noise_has_the_deviation_asked_for() -> None:
    added = ColumnNoise(0.25)(torch.ones(5000, 4), generator()) - 1.0
    assert_close(added.std(0), torch.full((4,), 0.25), atol=0.01, rtol=0)
    assert_close(added.mean(0), torch.zeros(4), atol=0.015, rtol=0)
