"""Trains cases on the simulated device, one line of JSON for each: problems, waits within a step, launches per step.

    python tests/support/gpu_scan.py [regular expression of labels]    print what is found
    python tests/support/gpu_scan.py --write                          write the launches as budgets
    python tests/support/gpu_scan.py --deterministic                  with `train.deterministic`
    python tests/support/gpu_scan.py --recorded                       with `train.graph`, where a step can be recorded

Each case trains two epochs, writes a checkpoint between them, goes on from it in a second trial, and measures the test
split with saved weights; a short one trains one epoch. Within a step (phases `data` and `training`) a wait for the
device is an error.

Memory is all zeros, what is computed is never written: what depends on it is left out here (checks for what is not
finite), or done with values by the CPU (`NEEDS_VALUES`; see real_values.py).
"""

import json
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from gpu_cases import FACTS, Case, cases
from simulated_gpu import counts, gpu_environment, launches

BUDGETS = Path(__file__).parents[1] / "gpu" / "launches.yaml"

NEEDS_VALUES = re.compile("method equalized_odds_postprocessing|final (knn|lbfgs|mlp)")
"""Cases that read classes or groups back from the device and go on with what they read. Their launches are not told:
in place of cuDNN other kernels are launched."""

READS_BACK = re.compile(
    f"{NEEDS_VALUES.pattern}|final|bias_balanced|bias_source=(model|some_labels)|bias_field|inferred_groups"
)
DETERMINISTIC, RECORDED = "--deterministic", "--recorded"

STEP = ("data", "training")
SAMPLES = {"train": 96, "val": 40, "test": 40}

Finding = dict[str, Any]


@cache
def dataset(kind: str) -> Any:
    """Random samples of a kind of `FACTS`."""
    from study.data.dataset import Dataset, Split

    facts, generator = FACTS[kind], np.random.default_rng(0)

    def split(size: int) -> Split:
        index, shape = np.arange(size), (size, *facts.shape)
        images = generator.integers(0, 255, shape, dtype=np.uint8)
        inputs = generator.normal(size=shape).astype(np.float32) if facts.is_table else images
        condition = generator.normal(size=(size, 3)).astype(np.float32)
        return Split(inputs, index % facts.classes, index // 2 % (facts.bias_classes or 1), condition)

    return Dataset(facts, {name: split(size) for name, size in SAMPLES.items()})


class Watched:
    """A phase of an epoch that counts what the device is given in it, and where a step must not wait for the device."""

    def __init__(self, name: str, phase: Any, steps: list[dict[str, int]]) -> None:
        self._name, self._phase, self._steps = name, phase, steps

    def __enter__(self) -> None:
        import torch

        # A recording finds waits itself; PyTorch takes random numbers in one for a wait.
        finds = RECORDED not in sys.argv and self._name in STEP
        torch.cuda.set_sync_debug_mode("error" if finds else "default")
        self._phase.__enter__()
        self._launches, self._waits = launches(), counts()["waits"]

    def __exit__(self, *problem: object) -> None:
        import torch

        self._steps.append({"launches": launches() - self._launches, "waits": counts()["waits"] - self._waits})
        self._phase.__exit__(*problem)
        torch.cuda.set_sync_debug_mode("default")

    def seconds(self) -> float:
        return float(self._phase.seconds())


def watch() -> dict[str, list[dict[str, int]]]:
    """Have every clock that is made from here on count; what the last one counted, step by step, by phase."""
    from study.training import device

    told: dict[str, list[dict[str, int]]] = {}
    begin = device.EpochProfiler.__init__

    def watched(self: Any, device: Any) -> None:
        begin(self, device)
        told.clear()
        for name, phase in self._phases.items():
            self._phases[name] = Watched(name, phase, told.setdefault(name, []))

    device.EpochProfiler.__init__ = watched  # type: ignore[method-assign]
    return told


def leave_out_values() -> None:
    """Without kernels "all are finite" is never written, and stays 0."""
    from study.training import evaluation, loop

    loop.check_loss_is_finite = loop.check_networks_are_finite = lambda *values: None
    evaluation.check_features_are_finite = lambda *values: None  # type: ignore[assignment]


def scan(chosen: list[Case]) -> Iterator[Finding]:
    """What each case shows: `case`, `problem` or None, `waits` in all steps, and most `launches` of a step by phase."""
    told = watch()
    leave_out_values()
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            yield {"case": case.label, **_tried(case, told, Path(folder))}


def _tried(case: Case, told: dict[str, list[dict[str, int]]], folder: Path) -> Finding:
    import torch
    from real_values import real_values

    with_values = bool(NEEDS_VALUES.search(case.label))
    try:
        with real_values() if with_values else nullcontext():
            _train(case, folder)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [
            f"{frame.filename.rpartition('/study/')[2]}:{frame.lineno}"
            for frame in frames
            if "/study/" in frame.filename
        ]
        first = str(error).partition("\n")[0]
        where = ", ".join(reversed(own[-3:]))
        return {"problem": f"{type(error).__name__}: {first} ({where})", "waits": 0, "launches": dict.fromkeys(STEP, 0)}
    finally:
        torch.cuda.set_sync_debug_mode("default")
    later = {name: steps[1:] for name, steps in told.items() if name in STEP}  # the first one makes the state
    return {
        "problem": None,
        "waits": sum(step["waits"] for steps in later.values() for step in steps),
        "launches": {
            name: 0 if with_values else max(step["launches"] for step in steps) for name, steps in later.items()
        },
    }


def is_recordable(case: Case) -> bool:
    """Whether its study file may say `train.graph: true`, and nothing is read back from memory, which is not zeros."""
    from study import methods

    whole = "micro_batch" not in case.train
    return whole and methods.method_needs(case.method).varying_key is None and not READS_BACK.search(case.label)


def _train(case: Case, folder: Path) -> None:
    from study.training.config import TrialConfig
    from study.training.trial import Trial

    config, of = TrialConfig.from_document(case.document()), dataset(case.facts)
    trial, checkpoint = Trial(config, of), folder / "state.pt"
    assert trial.device.type == "cuda"
    checkpoint.unlink(missing_ok=True)
    epochs = trial.train_epochs(checkpoint)
    next(epochs)
    if case.short:
        epochs.close()
        return
    next(epochs)
    epochs.close()
    again = Trial(config, of)
    assert len(list(again.train_epochs(checkpoint))) == 1
    trial.save_model(folder / "weights.safetensors")
    again.load_model(folder / "weights.safetensors")
    if not config.train.with_val:
        again.evaluate("test", final=True)


def main(*arguments: str) -> None:
    warnings.filterwarnings("ignore")
    if RECORDED not in arguments:  # a recording takes no new memory
        os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # memory is new, so zeros, and so every run the same
    writes, pattern = "--write" in arguments, next((one for one in arguments if not one.startswith("--")), "")
    chosen = [case for case in cases() if re.search(pattern, case.label) and "graph" not in case.train]
    changed = {"graph": RECORDED in arguments, "deterministic": DETERMINISTIC in arguments}
    if RECORDED in arguments:
        chosen = [case for case in chosen if is_recordable(case)]
    short = RECORDED not in arguments  # a recording begins some steps later
    chosen = [replace(case, train={**case.train, **changed}, short=case.short and short) for case in chosen]
    found: list[Finding] = []
    for one in scan(chosen):
        found.append(one)
        print(json.dumps(one), flush=True)
    if writes:
        write(found)


def write(found: list[Finding]) -> None:
    """The launches of a scan as the budgets of tests/gpu/test_catalogue.py."""
    steps = {one["case"]: one["launches"] for one in found if one["launches"]["training"]}
    lines = ["# Most launches of a step on a CUDA device by case, of 32 samples, counted on the simulated device;"]
    lines.append("# `training`: network, loss, backward, optimizer, probe; `data`: the batch and its views.")
    lines.append("# Written by: python tests/support/gpu_scan.py --write")
    lines += [
        f"{json.dumps(case)}: {{training: {of['training']}, data: {of['data']}}}" for case, of in sorted(steps.items())
    ]
    BUDGETS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    if "SIMULATED_GPUS" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], gpu_environment() | {"OMP_NUM_THREADS": "1"})
    main(*sys.argv[1:])
