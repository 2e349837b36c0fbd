"""Every method of the benchmark: its name, how it is made, and what package it needs.

Packages are imported when a method of theirs is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from curve_table import Table
from game import Method, RandomSearch


@dataclass(frozen=True)
class Peer:
    """A method.

    Attributes:
        label: for tables.
        package: as `uv run --with` takes it; empty for what needs none.
        settings: what differs from the package's defaults.
        make: of a table and a seed.
    """

    label: str
    package: str
    settings: str
    make: Callable[[Table, int], Method]


FAILED: Mapping[str, str] = {
    "neps-ifbo": "ifbo 0.4.1 comes without its weights: it downloads them from api.figshare.com at first use",
    "MOBSTER, Hyper-Tune, DyHPO of syne-tune 0.16": "that release is without them: 0.14.2 is played",
}
"""What was asked for and cannot be played, and why."""

OPTUNA = "optuna==5.0.0"
NEPS = "neural-pipeline-search==0.17.0"
SYNE_OLD = "syne-tune[gpsearchers]==0.14.2"
SYNE = "syne-tune==0.16.0"
SMAC = "smac==2.4.1"


def _optuna(pruner: Callable[[Any, Table], Any], sampler: str = "TPESampler", **options: Any) -> Any:
    def make(table: Table, seed: int) -> Method:
        import optuna
        from by_optuna import ByOptuna

        made = getattr(optuna.samplers, sampler)(seed=seed, **options)
        return ByOptuna(table, seed, made, pruner(optuna.pruners, table))

    return make


def _hyperband(pruners: Any, table: Table) -> Any:
    return pruners.HyperbandPruner(min_resource=1, max_resource=table.epochs)


def _hyperband_grace(pruners: Any, table: Table) -> Any:
    return pruners.HyperbandPruner(min_resource=table.grace, max_resource=table.epochs)


def _halving(pruners: Any, table: Table) -> Any:
    return pruners.SuccessiveHalvingPruner(min_resource=1)


def _halving_grace(pruners: Any, table: Table) -> Any:
    return pruners.SuccessiveHalvingPruner(min_resource=table.grace, reduction_factor=3)


def _median(pruners: Any, table: Table) -> Any:
    return pruners.MedianPruner()


def _none(pruners: Any, table: Table) -> Any:
    return pruners.NopPruner()


def _check(sampler: str, **options: Any) -> Any:
    def make(table: Table, seed: int) -> Method:
        import optuna
        from by_optuna import AshaAnew, ByOptuna

        made = getattr(optuna.samplers, sampler)(seed=seed, **options)
        return ByOptuna(table, seed, made, AshaAnew(table.epochs, table.grace))

    return make


def _neps(name: str, grace: bool = False, prior: bool = False, **options: Any) -> Any:
    def make(table: Table, seed: int) -> Method:
        from by_neps import ALGORITHMS, ByNePS

        return ByNePS(table, seed, ALGORITHMS[name], table.grace if grace else 1, prior, **options)

    return make


def _legacy(name: str, grace: bool = False, **options: Any) -> Any:
    def make(table: Table, seed: int) -> Method:
        from by_syne_tune import Legacy

        return Legacy(table, seed, name, table.grace if grace else 1, **options)

    return make


def _current(name: str, grace: bool = False, **options: Any) -> Any:
    def make(table: Table, seed: int) -> Method:
        from by_syne_tune import Current

        return Current(table, seed, name, table.grace if grace else 1, **options)

    return make


def _smac(grace: bool = False) -> Any:
    def make(table: Table, seed: int) -> Method:
        from by_smac import BySMAC

        return BySMAC(table, seed, table.grace if grace else 1)

    return make


PEERS: Mapping[str, Peer] = {
    "random": Peer("random search", "", "each row in full", lambda table, seed: RandomSearch(table, seed)),
    "optuna-tpe": Peer("Optuna TPE", OPTUNA, "no pruner", _optuna(_none)),
    "optuna-tpe-hyperband": Peer("Optuna TPE + Hyperband", OPTUNA, "min_resource 1", _optuna(_hyperband)),
    "optuna-tpe-hyperband-grace": Peer(
        "Optuna TPE + Hyperband, our grace", OPTUNA, "min_resource = grace", _optuna(_hyperband_grace)
    ),
    "optuna-tpe-halving": Peer(
        "Optuna TPE + SuccessiveHalving", OPTUNA, "min_resource 1, reduction 4", _optuna(_halving)
    ),
    "optuna-tpe-halving-grace": Peer(
        "Optuna TPE + SuccessiveHalving, our grace",
        OPTUNA,
        "min_resource = grace, reduction 3",
        _optuna(_halving_grace),
    ),
    "optuna-tpe-median": Peer("Optuna TPE + Median", OPTUNA, "defaults", _optuna(_median)),
    "optuna-random-halving-grace": Peer(
        "Optuna random + SuccessiveHalving, our grace",
        OPTUNA,
        "min_resource = grace, reduction 3",
        _optuna(_halving_grace, "RandomSampler"),
    ),
    "check-tpe-asha": Peer(
        "this project's TPE + ASHA, written anew",
        OPTUNA,
        "multivariate, constant liar; our grace, reduction 3",
        _check("TPESampler", multivariate=True, constant_liar=True),
    ),
    "check-random-asha": Peer(
        "random + this project's ASHA, written anew", OPTUNA, "our grace, reduction 3", _check("RandomSampler")
    ),
    "neps-priorband": Peer("NePS PriorBand", NEPS, "min 1, prior: papers", _neps("priorband", prior=True)),
    "neps-priorband-grace": Peer(
        "NePS PriorBand, our grace", NEPS, "min = grace, prior: papers", _neps("priorband", grace=True, prior=True)
    ),
    "neps-priorband-asha": Peer(
        "NePS PriorBand on ASHA", NEPS, "min 1, prior: papers, base asha", _neps("priorband", prior=True, base="asha")
    ),
    "neps-hyperband": Peer("NePS Hyperband", NEPS, "min 1", _neps("hyperband")),
    "syne-asha": Peer("Syne Tune random + ASHA", SYNE_OLD, "grace 1, promotion", _legacy("ASHA", type="promotion")),
    "syne-asha-stopping": Peer(
        "Syne Tune random + ASHA, stopping", SYNE_OLD, "grace 1, stopping", _legacy("ASHA", type="stopping")
    ),
    "syne-asha-grace": Peer(
        "Syne Tune random + ASHA, our grace",
        SYNE_OLD,
        "grace = ours, promotion",
        _legacy("ASHA", grace=True, type="promotion"),
    ),
    "syne-mobster": Peer(
        "Syne Tune MOBSTER",
        SYNE_OLD,
        "grace 1, promotion, GP fitted at each third trial",
        _legacy("MOBSTER", type="promotion", opt_skip_period=3),
    ),
    "syne-mobster-grace": Peer(
        "Syne Tune MOBSTER, our grace",
        SYNE_OLD,
        "grace = ours, promotion, GP fitted at each third trial",
        _legacy("MOBSTER", True, type="promotion", opt_skip_period=3),
    ),
    "syne-hypertune": Peer(
        "Syne Tune Hyper-Tune",
        SYNE_OLD,
        "grace 1, promotion, 4 brackets, GP fitted at each third trial",
        _legacy("HyperTune", type="promotion", brackets=4, opt_skip_period=3),
    ),
    "syne-dyhpo": Peer("Syne Tune DyHPO", SYNE_OLD, "grace 1, rungs 2 epochs apart", _legacy("DyHPO")),
    "syne-cqr": Peer("Syne Tune ASHA + CQR", SYNE, "grace 1, stopping", _current("ASHACQR")),
    "syne-bohb": Peer("Syne Tune BOHB", SYNE, "grace 1, stopping", _current("BOHB")),
    "smac-hyperband": Peer("SMAC3 multi-fidelity", SMAC, "min_budget 1", _smac()),
    "smac-hyperband-grace": Peer("SMAC3 multi-fidelity, our grace", SMAC, "min_budget = grace", _smac(True)),
}
