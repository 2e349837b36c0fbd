"""Whether it pays to train the last stages of a pretrained network, or all of it, beside a classifier of its features.

    STUDY_DATA=... python tests/benchmarks/partly_frozen.py FOLDER [FOLDER ...]

Of EfficientNet-Lite0 on the folders of `photographs.py`, with bias labels. Partly frozen: the maps of a picture behind
the last frozen block are computed once, as halves; what follows it and a linear classifier of the features of all late
stages are trained on them by the balanced cross entropy, batch norm as it is. The classifier has the draft's scale and
decay and a rate of 0.001, either from nothing together with the stages (`together`), or first alone for 20 epochs
(`after`). Whole: a trial that begins from the weights. Printed are the accuracies of `photographs.py` on test, and the
CPU seconds of the training.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import photographs
import torch
from torch import Tensor, nn
from torch.nn.functional import relu6

from study import data, models
from study.data import Dataset
from study.losses.cross_entropy import bias_balanced_cross_entropy
from study.models.backbone import LATE_STAGES, Backbone
from study.training.device import Resident, keep_freed_memory

MODEL = {"name": "efficientnet_lite0", "weights": "imagenet"}
METHOD = {"name": "bias_balanced_cross_entropy"}
POOLED = [int(name.partition(".")[2]) for name, _ in LATE_STAGES["efficientnet_lite0"]]
DECAY, BATCH, CLASSES = 0.1, 64, len(photographs.CLASSES)
CUTS = {"last stage": 14, "last two stages": 10}
"""The last block that is frozen."""

Parts = tuple[Tensor, Tensor]
"""Maps (N, C, H, W) behind a block, and the pooled features (N, F) of the late stages up to it."""


class Stages(nn.Module):
    """The blocks behind one and the last convolution, from `Parts` to the features of all late stages."""

    def __init__(self, backbone: Backbone, cut: int) -> None:
        super().__init__()
        self.cut, self.net = cut, backbone.net

    def forward(self, maps: Tensor, pooled: Tensor) -> Tensor:
        features, maps = [pooled.float()], maps.float()
        for number, block in enumerate(self.net._blocks):
            if number > self.cut:
                maps = block(maps)
                features += [maps.mean((2, 3))] if number in POOLED else []
        return torch.cat([*features, relu6(self.net._bn1(self.net._conv_head(maps))).mean((2, 3))], 1)


@torch.inference_mode()
def trunk(backbone: Backbone, cut: int, dataset: Dataset) -> Mapping[str, Parts]:
    """What stays frozen, of each split."""
    net, found = backbone.net.eval(), {}
    for name, split in dataset.splits.items():
        pictures, parts = Resident(split, dataset.facts, torch.device("cpu")), list[Parts]()
        for rows in torch.arange(len(split)).split(BATCH):
            images = pictures.normalised(pictures.pixels(rows))
            scale, shift = backbone._scale, backbone._shift
            images = images if scale is None or shift is None else images * scale + shift
            maps, pooled = relu6(net._bn0(net._conv_stem(images))), list[Tensor]()
            for number, block in enumerate(net._blocks[: cut + 1]):
                maps = block(maps)
                pooled += [maps.mean((2, 3))] if number in POOLED else []
            parts.append((maps.half(), torch.cat(pooled, 1).half()))
        found[name] = torch.cat([one[0] for one in parts]), torch.cat([one[1] for one in parts])
    return found


@torch.inference_mode()
def features(stages: Stages, parts: Parts) -> Tensor:
    """Of all samples, (N, F)."""
    return torch.cat([stages(*both) for both in zip(*(part.split(256) for part in parts), strict=True)])


def partly(
    dataset: Dataset, kept: Mapping[str, Parts], cut: int, rate: float | None, first: bool, seed: int
) -> tuple[list[float], float]:
    """Accuracies on test, and CPU seconds; `rate`: of the stages, None: the classifier is trained alone."""
    torch.manual_seed(seed)
    backbone = models.build(MODEL, dataset.facts)
    assert isinstance(backbone, Backbone)
    stages, train = Stages(backbone, cut).eval(), dataset.splits["train"]
    assert train.bias is not None
    target, bias = torch.tensor(train.target), torch.tensor(train.bias)
    counts = torch.zeros(CLASSES, CLASSES).index_put((bias, target), torch.ones(len(target)), accumulate=True)
    before = features(stages, kept["train"])
    mean, own = before.mean(0), before.std(0, unbiased=False)
    scale = (own * own[own > 0].mean()).sqrt().where(own > 0, 1.0)
    classifier, order = nn.Linear(len(mean), CLASSES), torch.Generator().manual_seed(seed)

    def fit(epochs: int, alone: bool) -> None:
        groups = [{"params": list(classifier.parameters()), "lr": 0.001, "weight_decay": 0.0}]
        groups += [] if alone else [{"params": list(stages.parameters()), "lr": rate, "weight_decay": 0.05}]
        optimizer = torch.optim.AdamW(groups)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * -(-len(target) // BATCH))
        for _ in range(epochs):
            for rows in torch.randperm(len(target), generator=order).split(BATCH):
                seen = before[rows] if alone else stages(kept["train"][0][rows], kept["train"][1][rows])
                logits = classifier((seen - mean) / scale)
                confusion = counts / counts.sum(1, keepdim=True)
                loss = bias_balanced_cross_entropy(logits, target=target[rows], bias=bias[rows], confusion=confusion)
                optimizer.zero_grad()
                (loss + DECAY / 2 * classifier.weight.square().sum()).backward()
                optimizer.step()
                schedule.step()

    began = time.process_time()
    if first or rate is None:
        fit(20, True)
    if rate is not None:
        fit(6, False)
    seconds = time.process_time() - began
    scores = classifier((features(stages, kept["test"]) - mean) / scale)
    return photographs.accuracies(scores.argmax(1).numpy(), dataset), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", choices=photographs.FOLDERS)
    keep_freed_memory()

    def tell(*what: object) -> None:
        print(name, *what, flush=True)

    for name in parser.parse_args().folders:
        with tempfile.TemporaryDirectory() as scratch:
            photographs.write(photographs.FOLDERS[name], Path(scratch))
            section = {"name": "image_folder", "path": scratch, "target": "class", "bias": "mark", "split": "split"}
            dataset = data.load({**section, "val": "given", "size": 160})
        for cut in CUTS:
            backbone = models.build(MODEL, dataset.facts)
            assert isinstance(backbone, Backbone)
            kept = trunk(backbone, CUTS[cut], dataset)
            tell(cut, "the classifier alone", *partly(dataset, kept, CUTS[cut], None, True, 0))
            for rate, first, seed in product((1e-4, 3e-4, 1e-3), (False, True), (0, 1)):
                order = "after" if first else "together"
                tell(cut, f"{rate:g}", order, seed, *partly(dataset, kept, CUTS[cut], rate, first, seed))
        for factor in (0.1, 0.3):
            training = {"epochs": 5, "schedule": "cosine", "weight_decay": 1e-4}
            tell("whole", factor, *photographs.trials(dataset, {**MODEL, "lr_factor": factor}, METHOD, training, 1))


if __name__ == "__main__":
    main()
