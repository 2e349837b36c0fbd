"""The papers' losses by name, for a training loop of one's own."""

from collections.abc import Callable
from typing import Any

from study.errors import UserError, did_you_mean
from study.losses import loss_catalogue


def loss(name: str) -> Callable[..., Any]:
    """Return a loss or regulariser of the papers, for a training loop of one's own. It needs PyTorch alone.

    Args:
        name: as `method.name` or `method.regulariser` has it in a study file: `eps_sup_info_nce`, `fair_kl`.

    Returns:
        A function of unit embeddings of shape (V, B, D), V views of B samples, or of logits (B, C) where the loss
        trains a classifier. Its other arguments are keywords, see its own documentation: `help(study.loss("sup_con"))`.

    Raises:
        UserError: there is no such loss; says which there are.

    Example:
        >>> import torch
        >>> import study
        >>> loss = study.loss("eps_sup_info_nce")
        >>> views = torch.nn.functional.normalize(torch.ones(2, 4, 8), dim=-1)
        >>> round(float(loss(views, target=torch.tensor([0, 0, 1, 1]), epsilon=0.0, temperature=0.1)), 4)
        1.6094
    """
    known = loss_catalogue.losses_by_name() | loss_catalogue.regularisers_by_name()
    known |= loss_catalogue.classification_losses_by_name()
    if name not in known:
        raise UserError(f"{name!r}: no such loss. {did_you_mean(name, known)}There are: {', '.join(sorted(known))}")
    return known[name]
