"""Prints GiB of peak memory of a trial of every shipped study file, by PyTorch's allocator on the simulated device.

The file's own configuration without its search, for as many samples as a step and a batch of evaluation take. Not in
it: the samples of the real data, CUDA's context, what cuDNN's algorithms work with beyond 1 MiB each.
"""

import gc
import warnings
from typing import Any

import numpy as np

GIB = 2**30
LEAST = 2048
"""Samples of each split at least: a batch of evaluation."""

Peaks = dict[str, float]


def shipped() -> list[str]:
    """The study files that train networks of ours."""
    from study.spec import load_study
    from study.spec.yaml_document import shipped_studies_folder

    names = sorted(path.stem for path in shipped_studies_folder().glob("*.yaml"))
    return [name for name in names if not load_study(name).training_function]


def peaks(name: str) -> Peaks:
    """GiB of `training` and `evaluation` of the trial of a shipped file, networks and optimizer included."""
    import torch

    from study.data.dataset import Dataset, Split
    from study.spec import load_study
    from study.training.trial import Trial

    spec = load_study(name, ["train.data_share=1.0"])
    config = spec.trial_config({}, seed=0)
    facts = spec.facts_of_data(config.data)

    def split(size: int) -> Split:
        inputs = np.zeros((size, *facts.shape), np.float32 if facts.is_table else np.uint8)
        index = np.arange(size)
        condition = None if facts.condition is None else np.zeros((size, max(facts.condition, 1)), np.float32)
        bias = None if facts.bias_classes is None else index // 2 % facts.bias_classes
        return Split(inputs, index % facts.classes, bias, condition)

    gc.collect()  # a trial is a ring of references
    before = torch.cuda.memory_allocated()
    size = max(LEAST, config.train.batch_size)
    trial = Trial(config, Dataset(facts, {name: split(size) for name in facts.splits}), "cuda")
    data = sum(one.inputs.nbytes for one in trial._splits.values())
    measured.clear()
    next(trial.train_epochs())
    return {phase: (peak - data - before) / GIB for phase, peak in measured.items()}


measured: dict[str, int] = {}
"""Bytes at the peak of each phase of the trial that runs."""


def watch() -> None:
    """Have every evaluation told apart from the training before it."""
    import torch

    from study.data.dataset import Split
    from study.training import evaluation, loop
    from study.training.trial import BiasNetwork

    loop.check_loss_is_finite = loop.check_networks_are_finite = lambda *values: None
    evaluation.check_features_are_finite = lambda *values: None  # type: ignore[assignment]
    evaluate = evaluation.SplitEvaluator.__call__

    def watched(self: Any, split: str, final: bool = False) -> dict[str, float]:
        measured.setdefault("training", torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
        told = evaluate(self, split, final)
        measured["evaluation"] = max(measured.get("evaluation", 0), torch.cuda.max_memory_allocated())
        return told

    evaluation.SplitEvaluator.__call__ = watched  # type: ignore[method-assign]
    outputs = BiasNetwork._outputs_as_table

    def within(self: BiasNetwork, of: Any, split: str) -> Split:
        """Classes that there are: what was never computed may be any number."""
        told = outputs(self, of, split)
        return Split(told.inputs, told.target % self.dataset.facts.classes)

    BiasNetwork._outputs_as_table = within  # type: ignore[method-assign]


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    watch()
    for name in shipped():
        print(f"{name}: {max(peaks(name).values()):.2f}", flush=True)
