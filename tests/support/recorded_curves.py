"""A small table of learning curves that nobody recorded: what a configuration does is a formula."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from helpers import quickstart

from study.home.folder import Home
from study.home.ledger import Event, Ledger
from study.simulation import Cluster, Nodes, Table, simulate
from study.spec import StudySpec

EPOCHS, SEEDS = 9, 3
METRICS = ["val/accuracy", "test/accuracy", "train/loss"]


def space(*assignments: str) -> StudySpec:
    """The quickstart with nine epochs, rungs at 1 and 3, and nothing behind the search."""
    rule = "search.early_stopping={name: asha, grace: 1, reduction: 3}"
    return quickstart(f"train.epochs={EPOCHS}", "search.confirm={top: 0}", rule, *assignments)


def value(params: Mapping[str, Any], seed: int, epoch: int) -> float:
    """Better with lambda near 1, a little luck by seed, more with each epoch."""
    luck = random.Random(f"{sorted(params.items())} {seed}").uniform(-0.03, 0.03)
    best = 0.5 + 0.4 * math.exp(-((params.get("method.lambda", 0.0) - 1.0) ** 2))
    return (best + luck) * (1 - 0.5**epoch)


def rows(count: int = 40) -> list[dict[str, Any]]:
    """The quickstart's baseline, and configurations of its space."""
    drawn = random.Random(0)
    return [
        {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0},
        *(
            {
                "method.alpha": 10 ** drawn.uniform(-3, 0),
                "method.lambda": drawn.uniform(0, 2),
                "method.epsilon": drawn.choice([0.0, 0.1, 0.25, 0.5]),
            }
            for _ in range(count - 1)
        ),
    ]


def write(path: Path, given: Sequence[Mapping[str, Any]] | None = None, **other: Any) -> Path:
    """The table as a file; `other` parts take the place of its own, None: it lacks the part."""
    configurations = list(given or rows())
    values = np.zeros((SEEDS, len(configurations), EPOCHS, len(METRICS)), np.float16)
    for seed in range(SEEDS):
        for place, params in enumerate(configurations):
            course = [value(params, seed, epoch) for epoch in range(1, EPOCHS + 1)]
            values[seed, place, :, 0], values[seed, place, :, 1], values[seed, place, :, 2] = course, course, 1.0
    parts: dict[str, Any] = {
        "params": "\n".join(map(json.dumps, configurations)),
        "metrics": np.array(METRICS),
        "values": values,
        "seeds": np.arange(SEEDS),
        "seconds": np.full(len(configurations), 2.0),
        "study": space().to_yaml(),
        "command": "none",
    }
    np.savez(path, **{name: part for name, part in (parts | other).items() if part is not None})
    return path


def ran(home: Path, spec: StudySpec, seed: int = 0) -> None:
    """A study of the home that ran on two slots over these curves, as its ledger and its file tell it."""
    table = Table.load(write(home / "table.npz"))
    events: list[Event] = []
    cluster = Cluster((Nodes(slots=2, process=1.0),), begins=5.0, trial=0.5, ends=2.0)
    course = simulate(spec, table.within(spec).course(), cluster, seed, hears=events.append)
    folder = Home(home).create(spec)
    ledger = Ledger(folder.ledger_file)
    for event in events[1:]:  # its first is there
        fields = {name: value for name, value in event.items() if name not in ("event", "time", "node")}
        node = {"node": f"here:{event['trial'] % 2}"} if event["event"] == "started" else {}
        ledger.append(event["event"], **fields, **node, time=event["time"] + 1e9)
    ledger.append("closed", state="complete", time=course.seconds + 1e9)
    ledger.close()
