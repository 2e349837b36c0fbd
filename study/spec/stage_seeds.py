"""The training seeds of each stage of a study; no stage reuses a seed by which an earlier one may have chosen.

The search has its own; confirm and rule trials have the seeds after these; an ablation those of the confirmation, or
later ones; and a final training those after all that the study used.
"""

from collections.abc import Sequence

from study.spec.schema import ConfirmOptions

N_ABLATION_SEEDS, N_FINAL_SEEDS = 5, 3
"""Number of seeds of an ablation, and of a final training, where neither the user nor a confirmation says it."""


def search_seeds(first: int, replicates: int | Sequence[int]) -> Sequence[int]:
    """Return the seeds of each configuration of the search: its own and those of its replicates."""
    return range(first, first + replicates) if isinstance(replicates, int) else replicates


def confirm_seeds(searched: Sequence[int], plan: ConfirmOptions, folds: int | None) -> range:
    """Return the seeds of the confirm and rule trials, none of which the search saw.

    With folds, each seed has one of its own, all folds in turn (`StudySpec.fresh_fold`).
    """
    first = max(searched) + 1
    return range(first, first + (plan.seeds * (folds or 1) if plan.top or plan.rules else 0))


def ablation_seeds(confirmed: range, chose_best: bool, before: range | None, count: int | None) -> range:
    """Return the seeds of an ablation: none of those that the best was chosen by, as it was lucky on these.

    Args:
        confirmed: the seeds of the confirmation.
        chose_best: whether several configurations were confirmed: then the ablation has the seeds behind these; else
            the same ones, whose trials of baseline and best then count.
        before: the seeds of an earlier ablation of the same configuration, which it keeps, and gets more of.
        count: number of seeds that was asked for.
    """
    if before is not None:
        return range(before.start, before.start + max(len(before), count or 0))
    first = confirmed.stop if chose_best else confirmed.start
    return range(first, first + (count or len(confirmed) or N_ABLATION_SEEDS))


def final_seeds(unused: int, is_fitted: bool) -> range:
    """Return the seeds of a final training where none are named.

    Args:
        unused: the smallest seed above all that the study used.
        is_fitted: whether the model is fitted at once: it knows no seed, or hardly, so that one is enough.
    """
    return range(unused, unused + (1 if is_fitted else N_FINAL_SEEDS))
