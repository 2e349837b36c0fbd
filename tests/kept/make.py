"""Runs the studies whose ledgers are kept, with today's program: `python tests/kept/make.py HOME [NAME ...]`, HOME
a folder to run them in.

Needed only where a study is to be added, or where no ledger of before can be read any more: new ledgers have new times,
and with those all kept values of the study change (`python tests/kept/rewrite.py`). Takes about ten minutes.
"""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import study
from study.api.notebook import create_progress_view
from study.commands.ablate_study import AblationRequest as Ablation
from study.driver.resume import run_ablation
from study.home.driver_requests import DriverRequest, submit_request
from study.home.events import entry_to_event
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger, read_entries
from study.knobs import read_knobs
from study.spec.schema import SearchOptions, TrialResources
from study.training.config import TrainOptions

KEPT = Path(__file__).parent / "studies"
DIGITS = """\
name: {name}
data:   {{name: biased_digits, rho: 0.9}}
model:  {{name: small_conv_net, width: 4}}
method: {{name: eps_sup_info_nce, temperature: 0.1, regulariser: fair_kl}}
train:  {{epochs: 4, batch_size: 256, learning_rate: 0.005}}
search:
  space:
    method.alpha:   {{low: 0.001, high: 1.0, log: true}}
    method.lambda:  {{low: 0.0, high: 2.0}}
  baseline: {{method.alpha: 1.0, method.lambda: 0.0}}
"""
ASHA = {"name": "asha", "grace": 1, "reduction": 2}
PLANE = {"x": (0.0, 1.0), "y": (1e-3, 1.0, "log")}


def curve(config: dict[str, Any], seed: int, epochs: int) -> Iterator[dict[str, float]]:
    """Nears a value that is best at x = .7, y = .1, with a little luck by seed."""
    luck = random.Random(f"{sorted(config.items())} {seed}")
    height = 0.9 - (config["x"] - 0.7) ** 2 - 0.05 * abs(config["y"] - 0.1) + luck.gauss(0, 0.02)
    for epoch in range(1, epochs + 1):
        value = height * (1 - 0.5**epoch) + luck.gauss(0, 0.01)
        yield {"val/accuracy": value, "val/cost": config["x"] + 0.1 * epoch, "test/accuracy": value - 0.02}


def slow(config: dict[str, Any], seed: int, epochs: int) -> Iterator[dict[str, float]]:
    """The same in a fifth of a second an epoch."""
    for metrics in curve(config, seed, epochs):
        time.sleep(0.2)
        yield metrics


def fails(config: dict[str, Any], seed: int, epochs: int) -> Iterator[dict[str, float]]:
    """The same, but it fails at large x in its second epoch, and gives no number at small y."""
    for epoch, metrics in enumerate(curve(config, seed, epochs), 1):
        if config["x"] > 0.75 and epoch == 2:
            raise ValueError("x is too large")
        yield metrics | ({"val/accuracy": float("nan")} if config["y"] < 0.02 else {})


def digits(name: str, **keys: Any) -> study.Study:
    """A study of biased digits; `keys` with two underscores for a dot."""
    file = Path(os.environ["STUDY_HOME"]) / f"{name}-file.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(DIGITS.format(name=name))
    return study.run(file, set=_dotted(keys), quiet=True)


def function(name: str, train: Any = curve, space: Any = PLANE, epochs: int = 4, **keys: Any) -> study.Study:
    """A study of a function."""
    given = {key: keys.pop(key) for key in ("metric", "maximize", "baseline", "fixed") if key in keys}
    return study.run(train=train, name=name, space=space, epochs=epochs, set=_dotted(keys), quiet=True, **given)


def _dotted(keys: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("__", "."): value for key, value in keys.items()}


def single() -> None:
    digits("single", search__trials=12, search__early_stopping=ASHA, search__confirm={"top": 2, "seeds": 3})


def several() -> None:
    metrics = ["val/accuracy", "val/equalized_odds"]
    confirm = {"top": 2, "seeds": 2}
    digits("several", search__metric=metrics, search__trials=10, search__confirm=confirm)


def constrained() -> None:
    digits(
        "constrained",
        search__constraints=["val/equalized_odds <= 0.6"],
        search__trials=10,
        search__sampler="tpe",
        search__early_stopping={"name": "asha", "reduction": 2},
        search__epoch="best",
        search__confirm={"top": 1, "seeds": 2},
    )


def conditional() -> None:
    space = {
        "method.name": {"choices": ["sup_con", "eps_sup_info_nce"]},
        "method.temperature": {"low": 0.05, "high": 0.5, "log": True},
        "method.epsilon": {"low": 0.0, "high": 0.5, "when": {"method.name": ["eps_sup_info_nce"]}},
    }
    digits(
        "conditional",
        method={"name": "eps_sup_info_nce"},
        search__space=space,
        search__baseline=None,
        search__sampler="random",
        search__trials=8,
        train__epochs=2,
    )


def grid() -> None:
    function("grid", space={"x": [0.1, 0.5, 0.7], "y": [0.01, 0.1, 0.5]}, search__sampler="grid", search__trials=20)


def replicated() -> None:
    function(
        "replicated",
        search__replicates=2,
        search__trials=9,
        search__early_stopping=ASHA,
        baseline={"x": 0.2, "y": 0.5},
        search__confirm={"top": 3, "seeds": 3},
    )


def ruled() -> None:
    digits(
        "ruled",
        search__trials=8,
        search__sampler="random",
        train__report_test=True,
        search__confirm={"top": 1, "seeds": 2, "rules": True},
    )


def ablated() -> None:
    digits("ablated", search__trials=6, search__sampler="qmc", search__confirm={"top": 1, "seeds": 3})
    run_ablation(Home.locate(), "ablated", create_progress_view(True), Ablation())


def final() -> None:
    """A search of its own, which is not kept, and its best configuration trained."""
    found = digits("found", search__trials=4, train__epochs=2)
    found.train(seeds=[0, 1, 2], name="final", quiet=True)


def own() -> None:
    function(
        "own",
        search__sampler="gp",
        search__trials=30,
        baseline={"x": 0.2, "y": 0.5},
        search__enqueue=[{"method.x": 0.5, "method.y": 0.2}],
        metric="val/cost",
        maximize=False,
        search__constraints=["val/accuracy >= 0.7"],
    )


def failing() -> None:
    function("failing", fails, search__trials=20, search__retries=0)


def begin_killed() -> None:
    function("killed", slow, search__sampler="qmc", search__trials=16, search__early_stopping=ASHA)


def resume_killed() -> None:
    study.load("killed").resume(quiet=True)


def killed() -> None:
    """Its driver is killed twice, and a configuration is asked for before it goes on."""
    folder = StudyFolder(Home.locate().path / "killed")
    _until(folder, 30, "begin_killed")
    submit_request(folder.requests_folder, DriverRequest("enqueue", {"method.x": 0.66, "method.y": 0.15}))
    _until(folder, 60, "resume_killed")
    resume_killed()


def _until(folder: StudyFolder, events: int, part: str) -> None:
    """Run a part of this script in a process that is killed once the study's ledger has so many events."""
    process = subprocess.Popen([sys.executable, __file__, str(folder.path.parent), part])
    while process.poll() is None and not (
        folder.ledger_file.exists() and len(read_entries(folder.ledger_file)) >= events
    ):
        time.sleep(0.05)
    assert process.poll() is None, "it came to its end before"
    process.kill()
    process.wait()


def large() -> None:
    function("large", epochs=9, search__trials=300, search__early_stopping={"name": "asha", "grace": 1, "reduction": 3})


STUDIES = {
    make.__name__: make for make in (grid, own, replicated, failing, killed, single, several, constrained, conditional)
} | {make.__name__: make for make in (ruled, ablated, final, large)}


def keep(folder: StudyFolder) -> None:
    """Copy a study's file and ledger, without what tells of this machine and its user."""
    with tempfile.TemporaryDirectory() as draft:
        path = Path(draft) / "ledger.jsonl"
        Ledger.create(path)
        ledger = Ledger(path)
        for event in read_entries(folder.ledger_file)[1:]:
            ledger.append(entry_to_event(_plain(event)))
        ledger.close()
        KEPT.mkdir(exist_ok=True)
        target = KEPT / f"{folder.name}.jsonl.gz"
        target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        (KEPT / f"{folder.name}.yaml").write_text(short(folder.spec_file), encoding="utf-8")


def short(file: Path) -> str:
    """A resolved study file without what is the default, so that a key which goes need not go from it, too."""
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    defaults = {"search": SearchOptions().model_dump(), "resources": TrialResources().model_dump()}
    defaults["train"] = {knob.key: knob.default for knob in read_knobs(TrainOptions)}
    for section, of in defaults.items():
        given = values.get(section, {})
        values[section] = {key: value for key, value in given.items() if key not in of or value != of[key]}
    return yaml.safe_dump({section: value for section, value in values.items() if value != {}}, sort_keys=False)


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    """An event of a machine called `here` and a user called `ada`."""
    told = {"owner": "ada", "node": "here", "commit": "0" * 40}
    return event | {key: value for key, value in told.items() if key in event}


def main(home: str, *names: str) -> None:
    """Run studies in a home, and keep them."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["STUDY_HOME"] = home
    for name in names or STUDIES:
        if part := PARTS.get(name):
            part()
            continue
        began = time.monotonic()
        STUDIES[name]()
        folder = Home.locate().find_study(name)
        keep(folder)
        print(name, f"{time.monotonic() - began:.0f} s", study.load(name).state, flush=True)


PARTS = {part.__name__: part for part in (begin_killed, resume_killed)}

if __name__ == "__main__":
    main(*sys.argv[1:])
