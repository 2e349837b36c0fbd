"""Where a hyperparameter's limit turns one loss into another, and what the parts of a loss must add up to."""

import pytest
import torch
from small_batch import (
    BIAS,
    INFO_NCE,
    LABEL,
    NEGATIVES,
    OTHER_VIEW,
    OTHERS,
    ROWS,
    SAMPLES,
    SCORES,
    TARGET,
    TEMPERATURE,
    VIEWS,
    close,
    log_sum,
)
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from study.losses.cclk import fair_info_nce, weakly_supervised_info_nce
from study.losses.cross_entropy import bias_balanced_cross_entropy, generalized_cross_entropy
from study.losses.debiased import debiased_info_nce, floored_share, hard_negative_info_nce
from study.losses.difficulty import difficulty_weighted_info_nce
from study.losses.end import end
from study.losses.fair_kl import fair_kl, spread_by_products, spread_in_turn, sums_by_products, sums_in_turn
from study.losses.fair_sup_con import fair_sup_con
from study.losses.info_nce import eps_info_nce, info_nce
from study.losses.margin import eps_sup_info_nce, masked_pairs, picked_pairs
from study.losses.pairs import equal, gram, group
from study.losses.sup_con import eps_sup_con, sup_con, sup_con_in


def test_info_nce_is_the_cross_entropy_of_the_other_view() -> None:
    close(info_nce(VIEWS, temperature=TEMPERATURE), INFO_NCE)


def test_epsilon_0_is_the_loss_without_a_margin() -> None:
    close(eps_info_nce(VIEWS, temperature=TEMPERATURE, epsilon=0.0), INFO_NCE)
    close(eps_sup_info_nce(VIEWS, temperature=TEMPERATURE, epsilon=0.0), INFO_NCE)
    ours, theirs = (loss(VIEWS, target=TARGET, temperature=TEMPERATURE) for loss in (eps_sup_con, sup_con))
    positive = (LABEL[:, None] == LABEL) & OTHERS
    textbook = ((log_sum(OTHERS)[:, None] - SCORES) * positive).sum(1) / positive.sum(1)
    close(ours, textbook.mean())
    close(theirs, textbook.mean())


def test_epsilon_to_infinity_is_info_l1o() -> None:
    """FairKL paper Eq. 3, right: -log(e^s+ / sum over negatives)."""
    expected = (log_sum(NEGATIVES) - OTHER_VIEW).mean()
    close(eps_info_nce(VIEWS, temperature=TEMPERATURE, epsilon=1e3), expected)
    close(eps_sup_info_nce(VIEWS, temperature=TEMPERATURE, epsilon=1e3), expected)


def test_form_d_is_the_same_on_a_cpu_and_elsewhere() -> None:
    positive, negative = (LABEL[:, None] == LABEL) & OTHERS, LABEL[:, None] != LABEL
    for row, ours in enumerate(zip(*masked_pairs(SCORES, positive, negative), strict=True)):
        for one, theirs in zip(ours, picked_pairs(SCORES[row], positive[row], negative[row]), strict=True):
            close(one, theirs)


@pytest.mark.parametrize("soft", [False, True])
def test_the_sums_of_fair_kl_are_the_same_on_a_cpu_and_elsewhere(soft: bool) -> None:
    one_class = (LABEL[:, None] == LABEL).double()
    aligned = SCORES.sigmoid() if soft else (BIAS.repeat(2)[:, None] == BIAS.repeat(2)).double()
    matrices = SCORES, one_class, aligned
    for ours, theirs in zip(sums_in_turn(*matrices), sums_by_products(*matrices, soft), strict=True):
        close(ours, theirs)
    level, slope = torch.randn(2, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    close(spread_in_turn(*matrices, level, slope, soft), spread_by_products(*matrices, level, slope, soft))


@pytest.mark.parametrize("label", [LABEL, LABEL - 1, LABEL * 2**40])
def test_masks_are_the_same_on_a_cpu_and_elsewhere(label: Tensor) -> None:
    close(equal(label, torch.float64), equal(group(label).double(), torch.float64))


def test_with_one_positive_each_all_forms_of_sup_con_agree() -> None:
    close(sup_con(VIEWS, temperature=TEMPERATURE), INFO_NCE)
    close(sup_con_in(VIEWS, temperature=TEMPERATURE), INFO_NCE)


def test_tau_plus_0_is_info_nce() -> None:
    close(debiased_info_nce(VIEWS, temperature=TEMPERATURE, tau_plus=0.0), INFO_NCE)
    close(hard_negative_info_nce(VIEWS, temperature=TEMPERATURE, tau_plus=0.0, beta=0.0), INFO_NCE)
    small = debiased_info_nce(VIEWS, temperature=TEMPERATURE, tau_plus=1e-9)
    torch.testing.assert_close(small, INFO_NCE, rtol=1e-6, atol=0)


def test_beta_0_is_the_debiased_loss() -> None:
    ours = hard_negative_info_nce(VIEWS, temperature=TEMPERATURE, tau_plus=0.05, beta=0.0)
    close(ours, debiased_info_nce(VIEWS, temperature=TEMPERATURE, tau_plus=0.05))


def test_extra_positives_equal_to_the_other_view_change_nothing() -> None:
    first = VIEWS[:1].expand_as(VIEWS)
    ours = debiased_info_nce(first, extra_positives=VIEWS[:1].repeat(3, 1, 1), temperature=1.0, tau_plus=0.05)
    close(ours, debiased_info_nce(first, temperature=1.0, tau_plus=0.05))


def test_floored_share_counts_the_rows_without_a_gradient_through_their_negatives() -> None:
    assert floored_share(VIEWS, temperature=1.0, tau_plus=0.0) == 0
    agreeing = VIEWS[:1].expand_as(VIEWS)
    assert floored_share(agreeing, temperature=0.05, tau_plus=0.3) == 1


def test_wcl_with_identical_encoders_weighs_every_negative_the_same() -> None:
    """Dd = Db: w = 1.5, so that InfoNCE's negatives count one and a half times."""
    ours = difficulty_weighted_info_nce(VIEWS, biased_views=VIEWS, temperature=TEMPERATURE, tau_plus=0.0)
    close(ours, torch.log1p(1.5 * (log_sum(NEGATIVES) - OTHER_VIEW).exp()).mean())


def test_clusters_are_classes() -> None:
    ours = weakly_supervised_info_nce(VIEWS, bias=BIAS, temperature=TEMPERATURE)
    close(ours, sup_con(VIEWS, target=BIAS, temperature=TEMPERATURE))
    close(fair_info_nce(VIEWS, bias=torch.zeros_like(BIAS), temperature=TEMPERATURE), INFO_NCE)


def test_fscl_with_one_sensitive_value_has_all_other_classes_as_negatives() -> None:
    positive = (LABEL[:, None] == LABEL) & OTHERS
    negative = log_sum(LABEL[:, None] != LABEL)
    expected = ((negative[:, None] - SCORES) * positive).sum(1) / positive.sum(1)
    ours = fair_sup_con(VIEWS, target=TARGET, bias=torch.zeros_like(BIAS), temperature=TEMPERATURE)
    close(ours, expected.mean())


def test_group_norm_changes_nothing_where_each_class_has_one_group_of_the_same_size() -> None:
    for denominator in ("same_bias", "all"):
        plain, normed = (
            fair_sup_con(VIEWS, target=TARGET, bias=TARGET, group_norm=norm, denominator=denominator)
            for norm in (False, True)
        )
        close(normed, plain)


def test_fair_kl_is_0_where_aligned_and_conflicting_pairs_have_the_same_distances() -> None:
    """Two copies of the embeddings, one of each bias: between classes each distance comes with and without it."""
    views = VIEWS[:1].repeat(1, 2, 1)
    target, bias = TARGET.repeat(2), torch.arange(2).repeat_interleave(SAMPLES)
    for variant in ("kl", "kl_reverse", "jeffreys", "moments", "mean", "mean_similarity"):
        options = {"target": target, "bias": bias, "variant": variant}
        close(fair_kl(views, **options, positive_weight=0.0), 0.0)
    assert fair_kl(VIEWS, target=TARGET, bias=BIAS, variant="kl") > 0


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


def test_end_of_embeddings_without_bias_is_small() -> None:
    """Pairs that share the bias orthogonal, pairs of one class and two biases identical: both terms vanish."""
    views = torch.eye(3, dtype=torch.float64).repeat(2, 1)[None]
    target, bias = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 0, 0, 1, 1, 1])
    close(end(views, target=target, bias=bias), 0.0)


LOGITS = torch.randn(SAMPLES, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_generalized_cross_entropy_ends_at_cross_entropy_and_at_the_missing_probability() -> None:
    torch.testing.assert_close(
        generalized_cross_entropy(LOGITS, target=TARGET, q=1e-9), cross_entropy(LOGITS, TARGET), rtol=1e-6, atol=0
    )
    right = LOGITS.softmax(1).gather(1, TARGET[:, None])
    close(generalized_cross_entropy(LOGITS, target=TARGET, q=1.0), (1 - right).mean())


def test_bias_balanced_cross_entropy_without_bias_is_cross_entropy() -> None:
    confusion = torch.full((4, 3), 1 / 3, dtype=torch.float64)
    ours = bias_balanced_cross_entropy(LOGITS, target=TARGET, bias=BIAS, confusion=confusion)
    close(ours, cross_entropy(LOGITS, TARGET))


def test_a_shared_similarity_matrix_gives_the_same_value_and_gradient() -> None:
    def objective(share: bool) -> tuple[Tensor, Tensor]:
        views = VIEWS.clone().requires_grad_()
        similarity = gram(views) if share else None
        loss = eps_sup_info_nce(views, target=TARGET, epsilon=0.25, similarity=similarity)
        loss = loss + fair_kl(views, target=TARGET, bias=BIAS, similarity=similarity)
        return loss, torch.autograd.grad(loss, views)[0]

    for ours, theirs in zip(objective(True), objective(False), strict=True):
        close(ours, theirs)


def test_base_temperature_is_a_factor() -> None:
    plain = sup_con(VIEWS, target=TARGET, temperature=0.1)
    close(sup_con(VIEWS, target=TARGET, temperature=0.1, base_temperature=0.07), plain / 0.7)


def test_one_sample_with_negatives_of_its_own_is_enough_for_dcl() -> None:
    ours = debiased_info_nce(VIEWS[:, :1], negatives=VIEWS[0, 1:, None], temperature=TEMPERATURE, tau_plus=0.0)
    close(ours, torch.log1p((SCORES[0, 1:12].logsumexp(0) - OTHER_VIEW[0]).exp()))
