"""The losses as a textbook has them: whole n x n matrices, one equation after the other; equal to ours, but slower."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

TEMPERATURE, EPSILON, CLASSES = 0.1, 0.25, 10


def pair_scores(views: Tensor) -> tuple[Tensor, Tensor]:
    rows = views.flatten(0, 1)
    return rows @ rows.T / TEMPERATURE, torch.eye(len(rows), dtype=torch.bool)


def eps_sup_info_nce(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    scores, self_pair = pair_scores(views)
    same = target.repeat(len(views))[:, None] == target.repeat(len(views))
    positive = same & ~self_pair
    negatives = (scores.exp() * ~same).sum(1, keepdim=True)
    log_ratio = scores - ((scores - EPSILON).exp() + negatives).log()
    return -((log_ratio * positive).sum(1) / positive.sum(1).clamp(min=1)).mean()


def form_a(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    scores, self_pair = pair_scores(views)
    same = target[:, None] == target
    pairs = ((-scores).exp() * (same & ~self_pair)).sum(1) * (scores.exp() * ~same).sum(1)
    return (torch.exp(torch.tensor(-EPSILON)) + pairs).log().mean()


def form_b(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    scores, self_pair = pair_scores(views)
    same = target[:, None] == target
    inverse = ((-scores).exp() * (same & ~self_pair)).sum(1, keepdim=True)
    return ((torch.exp(torch.tensor(-EPSILON)) + scores.exp() * inverse).log() * ~same).sum(1).mean()


def form_d(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    scores, self_pair = pair_scores(views)
    same = target[:, None] == target
    pairs = (same & ~self_pair)[:, :, None] & ~same[:, None, :]
    gaps = (scores[:, None, :] - scores[:, :, None]).exp()
    return ((torch.exp(torch.tensor(-EPSILON)) + gaps).log() * pairs).sum((1, 2)).mean()


def fair_kl(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    similarity = pair_scores(views)[0] * TEMPERATURE
    same, aligned = target[:, None] == target, bias[:, None] == bias
    means, deviations = [], []
    for cell in (same & aligned, same & ~aligned, ~same & aligned, ~same & ~aligned):
        inside = similarity * cell
        means.append(inside.sum() / cell.sum().clamp(min=1))
        deviations.append(inside.std())
    (pa, pc, na, nc), (pa_sd, pc_sd, na_sd, nc_sd) = means, deviations
    return (pc - pa) ** 2 + (na - nc) ** 2 + (pa_sd - pc_sd) ** 2 + (na_sd - nc_sd) ** 2 - pc + na


def both(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    return eps_sup_info_nce(views, target, bias) + fair_kl(views, target, bias)


def sup_con(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    scores, self_pair = pair_scores(views)
    label = target.repeat(len(views))
    positive = (label[:, None] == label) & ~self_pair
    log_p = scores.masked_fill(self_pair, -torch.inf).log_softmax(1).masked_fill(self_pair, 0)
    return -((log_p * positive).sum(1) / positive.sum(1).clamp(min=1)).mean()


def info_nce(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    scores, self_pair = pair_scores(views)
    other = (torch.arange(len(scores)) + views.shape[1]) % len(scores)
    return cross_entropy(scores.masked_fill(self_pair, -torch.inf), other)


def fscl_plus(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    scores, self_pair = pair_scores(views)
    label, value = target.repeat(len(views)), bias.repeat(len(views))
    same, shared = label[:, None] == label, value[:, None] == value
    positive, group = same & ~self_pair, same & shared
    log_p = scores - (scores.exp() * (shared & ~same)).sum(1, keepdim=True).log()
    members = group.sum(1)
    in_group = members[None, :] - (group & positive).int()
    per_row = (log_p * positive / in_group).sum(1)
    return -(per_row / members).sum() / (1 / members).sum()


def hcl(views: Tensor, target: Tensor, bias: Tensor, beta: float = 1.0, tau_plus: float = 0.1) -> Tensor:
    scores, _ = pair_scores(views)
    samples = views.shape[1]
    negative = ~torch.eye(samples, dtype=torch.bool).repeat(2, 2)
    count = 2 * samples - 2
    exponentials = scores.exp() * negative
    weight = (beta * scores).exp() * negative
    hard = (exponentials * weight / (weight.sum(1, keepdim=True) / count)).sum(1)
    positive = ((views[0] * views[1]).sum(1) / TEMPERATURE).exp().repeat(2)
    floor = count * torch.exp(torch.tensor(-1 / TEMPERATURE))
    unbiased = torch.maximum((hard - tau_plus * count * positive) / (1 - tau_plus), floor)
    return -(positive / (positive + unbiased)).log().mean()


def dcl(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    return hcl(views, target, bias, beta=0.0)


def fair_cclk(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    samples = views.shape[1]
    colour = bias[:, None] / CLASSES
    with torch.no_grad():
        kernel = (-(torch.cdist(colour, colour) ** 2)).exp()
        weights = torch.linalg.inv(kernel + 0.1 * torch.eye(samples)) @ kernel
        weights = weights.masked_fill(torch.eye(samples, dtype=torch.bool) | (weights < 1e-6), 0)
    total = torch.zeros(())
    for x, y in (views, views.flip(0)):
        between, within = (x @ y.T / TEMPERATURE).exp(), (x @ x.T / TEMPERATURE).exp()
        conditional = ((between + within) * weights.T).sum(1)
        pair = between.diagonal()
        total = total - (pair / (pair + (samples - 1) * conditional)).log().mean() / 2
    return total
