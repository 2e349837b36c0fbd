"""Where a hyperparameter's limit turns one loss into another, and what the parts of a loss must add up to."""

import pytest
import torch
from small_batch import BIAS, INFO_NCE, LABEL, OTHERS, ROWS, SAMPLES, SCORES, TARGET, TEMPERATURE, VIEWS, close
from torch import Tensor
from torch.nn.functional import normalize

from study.losses.cclk import fair_info_nce, weakly_supervised_info_nce
from study.losses.debiased_info_nce import share_of_floored_rows
from study.losses.eps_sup_info_nce import eps_sup_info_nce
from study.losses.fair_kl import fair_kl
from study.losses.info_nce import info_nce
from study.losses.own_gradients import (
    cell_sums_by_matmul,
    cell_sums_one_by_one,
    entry_gradients_by_matmul,
    entry_gradients_one_by_one,
    pair_softplus_of_masked_rows,
    pair_softplus_of_row,
)
from study.losses.pairs import equality_mask, gram_matrix, index_label_groups
from study.losses.sup_con import sup_con, sup_con_in


def test_info_nce_is_the_cross_entropy_of_the_other_view() -> None:
    close(info_nce(VIEWS, temperature=TEMPERATURE), INFO_NCE)


def test_form_d_is_the_same_on_a_cpu_and_elsewhere() -> None:
    positive, negative = (LABEL[:, None] == LABEL) & OTHERS, LABEL[:, None] != LABEL
    for row, ours in enumerate(zip(*pair_softplus_of_masked_rows(SCORES, positive, negative), strict=True)):
        for one, theirs in zip(ours, pair_softplus_of_row(SCORES[row], positive[row], negative[row]), strict=True):
            close(one, theirs)


@pytest.mark.parametrize("soft", [False, True])
def test_the_sums_of_fair_kl_are_the_same_on_a_cpu_and_elsewhere(soft: bool) -> None:
    one_class = (LABEL[:, None] == LABEL).double()
    aligned = SCORES.sigmoid() if soft else (BIAS.repeat(2)[:, None] == BIAS.repeat(2)).double()
    matrices = SCORES, one_class, aligned
    for ours, theirs in zip(cell_sums_one_by_one(*matrices), cell_sums_by_matmul(*matrices, soft), strict=True):
        close(ours, theirs)
    level, slope = torch.randn(2, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    close(
        entry_gradients_one_by_one(*matrices, level, slope, soft),
        entry_gradients_by_matmul(*matrices, level, slope, soft),
    )


@pytest.mark.parametrize("label", [LABEL, LABEL - 1, LABEL * 2**40])
def test_masks_are_the_same_on_a_cpu_and_elsewhere(label: Tensor) -> None:
    close(equality_mask(label, torch.float64), equality_mask(index_label_groups(label).double(), torch.float64))


def test_with_one_positive_each_all_forms_of_sup_con_agree() -> None:
    close(sup_con(VIEWS, temperature=TEMPERATURE), INFO_NCE)
    close(sup_con_in(VIEWS, temperature=TEMPERATURE), INFO_NCE)


def test_floored_share_counts_the_rows_without_a_gradient_through_their_negatives() -> None:
    assert share_of_floored_rows(VIEWS, temperature=1.0, tau_plus=0.0) == 0
    agreeing = VIEWS[:1].expand_as(VIEWS)
    assert share_of_floored_rows(agreeing, temperature=0.05, tau_plus=0.3) == 1


def test_clusters_are_classes() -> None:
    ours = weakly_supervised_info_nce(VIEWS, bias=BIAS, temperature=TEMPERATURE)
    close(ours, sup_con(VIEWS, target=BIAS, temperature=TEMPERATURE))
    close(fair_info_nce(VIEWS, bias=torch.zeros_like(BIAS), temperature=TEMPERATURE), INFO_NCE)


@pytest.mark.parametrize("variant", ["reference", "kl", "mean"])
def test_fair_kl_weighs_positive_and_negative_pairs_on_their_own(variant: str) -> None:
    weighted = fair_kl(VIEWS, target=TARGET, bias=BIAS, variant=variant, positive_weight=2.0, negative_weight=3.0)
    positive, negative = (
        fair_kl(VIEWS, target=TARGET, bias=BIAS, variant=variant, positive_weight=p, negative_weight=1.0 - p)
        for p in (1.0, 0.0)
    )
    close(weighted, 2 * positive + 3 * negative)


def test_soft_bias_with_one_hot_features_against_the_printed_means() -> None:
    """Appendix B.2.4: mean of d b against mean of d (1 - b), over the pairs of the term."""
    features = torch.nn.functional.one_hot(BIAS).double()
    ours = fair_kl(VIEWS, target=TARGET, bias_features=features, variant="mean")
    distance, aligned = 2 - 2 * ROWS @ ROWS.T, BIAS.repeat(2)[:, None] == BIAS.repeat(2)
    same_label = LABEL[:, None] == LABEL
    expected = sum(
        ((distance * aligned)[pairs].mean() - (distance * ~aligned)[pairs].mean()).square()
        for pairs in (same_label & OTHERS, ~same_label)
    )
    close(ours, expected)


def test_soft_reference_against_its_four_cells() -> None:
    features = torch.rand(SAMPLES, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    share = (normalize(features, dim=1) @ normalize(features, dim=1).T).repeat(2, 2)
    cosine, positive = ROWS @ ROWS.T, (LABEL[:, None] == LABEL).double()
    cells = [cosine * p * b for p in (positive, 1 - positive) for b in (share, 1 - share)]
    pairs = [positive.sum(), positive.sum(), (1 - positive).sum(), (1 - positive).sum()]
    pa, pc, na, nc = (cell.sum() / count for cell, count in zip(cells, pairs, strict=True))
    pa_sd, pc_sd, na_sd, nc_sd = (cell.std() for cell in cells)
    expected = (pc - pa) ** 2 + (na - nc) ** 2 + (pa_sd - pc_sd) ** 2 + (na_sd - nc_sd) ** 2 - pc + na
    close(fair_kl(VIEWS, target=TARGET, bias_features=features), expected)


def test_a_shared_similarity_matrix_gives_the_same_value_and_gradient() -> None:
    def objective(share: bool) -> tuple[Tensor, Tensor]:
        views = VIEWS.clone().requires_grad_()
        similarity = gram_matrix(views) if share else None
        loss = eps_sup_info_nce(views, target=TARGET, epsilon=0.25, similarity=similarity)
        loss = loss + fair_kl(views, target=TARGET, bias=BIAS, similarity=similarity)
        return loss, torch.autograd.grad(loss, views)[0]

    for ours, theirs in zip(objective(True), objective(False), strict=True):
        close(ours, theirs)
