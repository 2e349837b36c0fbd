"""The losses' counterparts to the golden definitions: a case's inputs, and which of our calls is meant by each name."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from study.losses.bias_con import bias_con, soft_con
from study.losses.cclk import fair_cclk, hard_negative_cclk, weakly_supervised_cclk
from study.losses.cross_entropy import bias_balanced_cross_entropy, generalized_cross_entropy
from study.losses.debiased_info_nce import debiased_info_nce, hard_negative_info_nce
from study.losses.end import end
from study.losses.eps_sup_info_nce import eps_sup_info_nce
from study.losses.fair_kl import fair_kl
from study.losses.fair_sup_con import fair_sup_con
from study.losses.info_nce import eps_info_nce, info_nce
from study.losses.pairs import gram_matrix
from study.losses.sup_con import eps_sup_con, sup_con, sup_con_in
from study.losses.wcl_losses import biased_triplet, difficulty_weighted_info_nce


@cache
def arrays(folder: Path) -> Any:
    return np.load(folder / "losses.npz")


class Case:
    """The inputs of a golden case as float64 tensors; those that the loss is differentiated by are leaves."""

    def __init__(self, entry: dict[str, Any], folder: Path) -> None:
        self.entry, self.folder = entry, folder
        self.hyper: dict[str, Any] = entry["hyperparameters"]
        self.leaves: dict[str, Tensor] = {}
        for name in entry["arrays"]:
            if name.startswith("h"):
                rows = self.array(name)
                rows = normalize(rows, dim=-1) if entry["rows_normalised"] else rows
                self.leaves[{"h": "z"}.get(name, name.replace("h_biased", "z_biased").removeprefix("h_"))] = rows
            elif name in ("logits", "condition1", "condition2"):
                self.leaves[name] = self.array(name)
        self.leaves = {name: leaf.detach().requires_grad_() for name, leaf in self.leaves.items()}

    def array(self, name: str) -> Tensor:
        value = torch.as_tensor(arrays(self.folder)[f"{self.entry['case']}/{name}"])
        return value.double() if value.is_floating_point() else value.long()

    @property
    def views(self) -> Tensor:
        return self.leaves["z"].transpose(0, 1)

    @property
    def target(self) -> Tensor | None:
        return None if str(self.hyper.get("labels", "")).startswith("none") else self.array("labels")

    @property
    def bias(self) -> Tensor:
        return self.array("sensitive" if "sensitive" in self.entry["arrays"] else "bias")

    def given(self, *names: str) -> dict[str, Any]:
        """Hyperparameters under their golden names, which are ours."""
        return {name: self.hyper[name] for name in names}


SCALED = ("temperature", "base_temperature")
MARGIN = ("temperature", "epsilon")


def cclk(loss: Callable[..., Tensor], form: str = "released", gradient: bool = False) -> Callable[[Case], Tensor]:
    def run(case: Case) -> Tensor:
        first = case.leaves["condition1"]
        if "grad_condition2" in case.entry["grad_arrays"]:
            case.leaves.setdefault("condition2", first.detach().clone().requires_grad_())
        return loss(
            case.views,
            condition=torch.stack([first, case.leaves["condition2"]]) if "condition2" in case.leaves else first,
            temperature=case.hyper["temperature"],
            kernel=case.hyper["kernel"].lower(),
            sigma2=case.hyper["temp_z"],
            ridge=case.hyper["lambda_"],
            form=form,
            kernel_gradient=gradient,
        )

    return run


def fairkl(variant: str) -> Callable[[Case], Tensor]:
    return lambda case: fair_kl(
        case.views,
        target=case.target,
        bias=case.bias,
        variant=variant,
        pooled=case.hyper["reduction"] == "pooled",
        min_count=case.hyper["min_count"],
        variance_floor=1e-12,
    )


def objective(alphas: int) -> Callable[[Case], Tensor]:
    """alpha (once or, as released, twice) * loss + lambda * FairKL, both on one similarity matrix."""

    def run(case: Case) -> Tensor:
        views = normalize(case.views, dim=-1)
        contrastive = {"eps_supcon": eps_sup_con, "eps_supinfonce": eps_sup_info_nce}[case.hyper["contrastive"]]
        shared = {"target": case.target, "similarity": gram_matrix(views)}
        loss = contrastive(views, **shared, **case.given(*SCALED, "epsilon"), guard=1e-6)
        return case.hyper["alpha"] ** alphas * loss + case.hyper["lambda_"] * fair_kl(
            views, bias=case.bias, **shared, kld=case.hyper["kld"]
        )

    return run


def explicit_dcl(case: Case) -> Tensor:
    views = torch.stack([case.leaves["anchor"], case.leaves["positive"]])
    extra, negatives = case.leaves["extra_positives"].transpose(0, 1), case.leaves["negatives"].transpose(0, 1)
    return debiased_info_nce(views, extra_positives=extra, negatives=negatives, **case.given("temperature", "tau_plus"))


def wcl(form: str, floor: bool, gradient: bool = False) -> Callable[[Case], Tensor]:
    return lambda case: difficulty_weighted_info_nce(
        case.views,
        biased_views=case.leaves["z_biased"].transpose(0, 1),
        form=form,
        floor=floor,
        weight_gradient=gradient,
        **case.given("temperature", "tau_plus"),
    )


def wcl_with_gradient(case: Case) -> Tensor:
    return wcl(case.hyper["form"], case.hyper["clamp"], gradient=True)(case)


def fscl(factor: float = 1.0, scaled: bool = True, **options: Any) -> Callable[[Case], Tensor]:
    """FairSupCon; `factor` of the rows (negative) or plain turns our mean into a printed sum."""
    names = SCALED if scaled else SCALED[:1]

    def run(case: Case) -> Tensor:
        rows = case.views.shape[0] * case.views.shape[1]
        loss = fair_sup_con(case.views, target=case.array("labels"), bias=case.bias, **case.given(*names), **options)
        return loss * (rows if factor < 0 else factor)

    return run


def dagger(scaled: bool = True, **options: Any) -> Callable[[Case], Tensor]:
    names = SCALED if scaled else SCALED[:1]
    return lambda case: fair_sup_con(case.views, bias=case.bias, **case.given(*names), **options)


def rows_times(loss: Callable[..., Tensor]) -> Callable[[Case], Tensor]:
    """A paper's sum over rows where we take the mean, without the temperature factor."""

    def run(case: Case) -> Tensor:
        rows = case.views.shape[0] * case.views.shape[1]
        return rows * loss(case.views, target=case.target, **case.given("temperature"))

    return run


def margin(loss: Callable[..., Tensor], *names: str, **options: Any) -> Callable[[Case], Tensor]:
    return lambda case: loss(case.views, target=case.target, **case.given(*names), **options)


COUNTERPARTS: dict[str, Callable[[Case], Tensor]] = {
    "eps_infonce.eq2": lambda case: eps_info_nce(case.views, **case.given(*MARGIN)),
    "eps_supinfonce.exact": margin(eps_sup_info_nce, *SCALED, "epsilon"),
    "eps_supinfonce.code": margin(eps_sup_info_nce, *SCALED, "epsilon", guard=1e-6),
    "eps_supinfonce.literal": margin(eps_sup_info_nce, *MARGIN, reduction="sum"),
    "eps_supcon.exact": margin(eps_sup_con, *SCALED, "epsilon"),
    "eps_supcon.code": margin(eps_sup_con, *SCALED, "epsilon", guard=1e-6),
    "eps_supcon.literal": lambda case: margin(eps_sup_con, *MARGIN)(case) + case.hyper["epsilon"],
    "eps_supinfonce_in.code": margin(sup_con_in, *SCALED, "epsilon", mean_positives=True),
    "fairklpaper.eq17a": margin(eps_sup_info_nce, *MARGIN, form="a"),
    "fairklpaper.eq17b": margin(eps_sup_info_nce, *MARGIN, form="b"),
    "fairklpaper.eq17d": margin(eps_sup_info_nce, *MARGIN, form="d"),
    "fairklpaper.eq7": margin(sup_con_in, "temperature"),
    "supcon.code_current": margin(sup_con, *SCALED),
    "supcon.code_current.contrast_mode_one": margin(sup_con, *SCALED, anchors="first"),
    "supcon.code_older": margin(sup_con, *SCALED),
    "supcon.literal": rows_times(sup_con),
    "pml.SupConLoss": margin(sup_con, "temperature"),
    "fairkl.code": lambda case: fair_kl(case.views, target=case.target, bias=case.bias, **case.given("kld")),
    "objective.code": objective(2),
    "objective.alpha_once": objective(1),
    "dcl.easy": lambda case: info_nce(case.views, **case.given("temperature")),
    "hcl.easy": lambda case: info_nce(case.views, **case.given("temperature")),
    "dcl.code": lambda case: debiased_info_nce(case.views, **case.given("temperature", "tau_plus")),
    "dcl.eq_M": explicit_dcl,
    "hcl.code": lambda case: hard_negative_info_nce(case.views, **case.given("temperature", "tau_plus", "beta")),
    "cclk.code.fair": cclk(fair_cclk),
    "cclk.code.hardneg": cclk(hard_negative_cclk),
    "cclk.code.weaklysup": cclk(weakly_supervised_cclk),
    "cclk.code.hardneg.kernel_gradient": cclk(hard_negative_cclk, gradient=True),
    "cclk.code.weaklysup.kernel_gradient": cclk(weakly_supervised_cclk, gradient=True),
    "cclk.paper.fair": cclk(fair_cclk, "paper"),
    "cclk.paper.hardneg": cclk(hard_negative_cclk, "paper"),
    "cclk.paper.weaklysup": cclk(weakly_supervised_cclk, "paper"),
    "fscl.code": fscl(),
    "fscl.eq4": fscl(-1, scaled=False),
    "fscl_plus.code": fscl(group_norm=True, group_form="released"),
    "fscl_plus.eq5": fscl(scaled=False, group_norm=True, group_form="sum"),
    "fscl_plus.eq5_scaled": fscl(1 / 8, group_norm=True, group_form="sum"),
    "fscl_plus.eq5_groupmean": fscl(scaled=False, group_norm=True),
    "fscl_dagger.code": dagger(),
    "fscl_dagger.eq26": dagger(scaled=False),
    "fscl_dagger.eq26_literal": dagger(scaled=False, anchor_in_denominator=True),
    "fscl_dagger_plus.code": dagger(group_norm=True, group_form="released"),
    "supcon_fscl_plus.code": fscl(group_norm=True, group_form="released", denominator="all"),
    "simclr_fscl.code": lambda case: info_nce(case.views, **case.given(*SCALED)),
    "biascon.code": lambda case: bias_con(
        case.views, target=case.target, bias=case.bias, guard=1e-9, **case.given("temperature")
    ),
    "biascon.exact": lambda case: bias_con(case.views, target=case.target, bias=case.bias, **case.given("temperature")),
    "softcon.code": lambda case: soft_con(
        case.views, target=case.target, bias_features=case.array("bias_features"), guard=1e-9, temperature=0.1
    ),
    "softcon.exact": lambda case: soft_con(
        case.views, target=case.target, bias_features=case.array("bias_features"), temperature=0.1
    ),
    "biasbal.code": lambda case: bias_balanced_cross_entropy(
        case.leaves["logits"],
        target=case.target,
        bias=case.bias,
        confusion=case.array("confusion"),
        **case.given("min_prob"),
    ),
    "gce.code": lambda case: generalized_cross_entropy(
        case.leaves["logits"], target=case.target, form="released", **case.given("q")
    ),
    "gce.true": lambda case: generalized_cross_entropy(case.leaves["logits"], target=case.target, **case.given("q")),
    "end.code": lambda case: end(case.views, target=case.target, bias=case.bias, all_pairs=False),
    "end.all_pairs": lambda case: end(case.views, target=case.target, bias=case.bias),
    "wcl.sum": wcl("sum", floor=False),
    "wcl.sum.clamped": wcl("sum", floor=True),
    "wcl.per_negative": wcl("per_negative", floor=False),
    "wcl.per_negative.clamped": wcl("per_negative", floor=True),
    "wcl.sum.weights_with_gradient": wcl_with_gradient,
    "wcl.per_negative.weights_with_gradient": wcl_with_gradient,
    "wcl.triplet": lambda case: biased_triplet(case.leaves["z_biased"].transpose(0, 1)),
    "wcl.triplet.debiased": lambda case: biased_triplet(
        case.leaves["z_biased"].transpose(0, 1), **case.given("tau_plus")
    ),
    **{
        f"fairkl.paper.{theirs}.{reduction}": fairkl(ours)
        for reduction in ("pooled", "per_anchor")
        for theirs, ours in {
            "kl": "kl",
            "kl_reverse": "kl_reverse",
            "jeffreys": "jeffreys",
            "simplified": "moments",
            "mean": "mean",
            "mean.abssim": "mean_similarity",
        }.items()
    },
}

# By definition or, where only that case of it has none, by case.
WITHOUT_COUNTERPART = {
    "pml_supconloss__b16d8c2_t0.1_singleton": "drops rows without positives; ours count 0 and stay in the mean",
    "pml.NTXentLoss": "mean over all positive pairs of the batch: large classes weigh more; no paper here uses it",
    "equalized_odds.code": "a metric of predictions, not a loss of embeddings",
    "equalized_odds.eq6": "a metric of predictions, not a loss of embeddings",
}

# Printed equations that can be nan; ours are nan there too. Everywhere else a non-finite reference is finite here.
NAN_AS_PRINTED = {"cclk.paper.fair", "cclk.paper.hardneg", "cclk.paper.weaklysup"}
