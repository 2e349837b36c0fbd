"""What a study would run, before anything starts."""

from typing import Any

from study.spec import StudySpec


def plan(spec: StudySpec) -> dict[str, Any]:
    """Configurations, trials and epochs of a study, as plain values.

    Epochs are the cost's unit: `most` if no trial were stopped, `expected` if trials at each rung were like each other,
    so that ASHA let one in `reduction` go on.
    """
    search, facts, goal = spec.search, spec.facts, spec.objective
    baseline = int(search.baseline is not None)
    searched = spec.trials - baseline
    confirm = confirm_trials(spec, spec.trials)
    return {
        "name": spec.name,
        "hash": spec.hash,
        "data": dict(spec.base["data"]),
        "title": facts.title or spec.base["data"]["name"],
        "classes": facts.classes,
        "bias_classes": facts.bias_classes,
        "space": {key: domain.model_dump(exclude_none=True) for key, domain in search.space.items()},
        "baseline": search.baseline,
        "enqueued": len(search.enqueue),
        "metric": ", ".join(f"{name} ({mode})" for name, mode in zip(goal.metrics, goal.modes, strict=True)),
        "constraints": search.constraints,
        "limits": [f"{name} {value}" for name in ("time", "gpu_hours", "plateau") if (value := getattr(search, name))],
        "sampler": search.sampler,
        "early_stopping": search.early_stopping.model_dump(),
        "trials": {
            "baseline": baseline,
            "search": searched,
            "replicate": spec.trials * (search.replicates - 1),
            "confirm": confirm,
        },
        "epochs_per_trial": spec.epochs,
        "epochs": {
            "most": (spec.trials * search.replicates + confirm) * spec.epochs,
            "expected": round(
                (baseline * search.replicates + confirm) * spec.epochs
                + searched * search.replicates * _expected_epochs(spec)
            ),
        },
        "resources_per_trial": spec.resources.model_dump(),
    }


def confirm_trials(spec: StudySpec, configurations: int) -> int:
    """How many trials confirm the best of so many configurations, and the baseline."""
    confirm, baseline = spec.search.confirm, int(spec.search.baseline is not None)
    return (min(confirm.top, configurations - baseline) + baseline) * confirm.seeds if confirm.top else 0


def text(document: dict[str, Any]) -> str:
    """The same for people."""
    trials, epochs, stopping = document["trials"], document["epochs"], document["early_stopping"]
    resources = document["resources_per_trial"]
    rule = f"asha, rungs from epoch {stopping['grace']}, one in {stopping['reduction']} goes on"
    replicates = f" + {trials['replicate']} on further seeds" if trials["replicate"] else ""
    limits = [f"the search ends earlier at: {', '.join(document['limits'])}"] if document["limits"] else []
    lines = [
        f"study {document['name']} ({document['hash']}), nothing is started",
        f"data: {document['title']}: {', '.join(f'{key} {value}' for key, value in document['data'].items())}",
        "search space:" if document["space"] else "search space: empty, one configuration",
        *(f"  {key}: {_domain(domain)}" for key, domain in document["space"].items()),
        f"metric: {', '.join([document['metric'], *document['constraints']])}; sampler {document['sampler']}",
        f"early stopping: {rule if stopping['name'] == 'asha' else 'none'}",
        f"trials: {trials['baseline']} baseline + {trials['search']} searched{replicates}, then {trials['confirm']} "
        "to confirm",
        *limits,
        f"epochs: {document['epochs_per_trial']} per full trial; in all about {epochs['expected']}, "
        f"at most {epochs['most']}",
        f"each trial takes {resources['cpu']:g} CPU, {resources['gpu']:g} GPU",
    ]
    return "\n".join(lines)


def _domain(domain: dict[str, Any]) -> str:
    if "choices" in domain:
        return "one of " + ", ".join(map(str, domain["choices"]))
    step = f", step {domain['step']:g}" if "step" in domain else ""
    return f"{domain['low']:g} to {domain['high']:g}{', log' if domain['log'] else ''}{step}"


def _expected_epochs(spec: StudySpec) -> float:
    """Mean epochs of a searched trial if each rung lets one in `reduction` go on."""
    rule = spec.search.early_stopping
    if rule.name == "none":
        return spec.epochs
    total, share, done, rung = 0.0, 1.0, 0, rule.grace
    while rung < spec.epochs:
        total += share * (rung - done)
        share, done, rung = share / rule.reduction, rung, rung * rule.reduction
    return total + share * (spec.epochs - done)
