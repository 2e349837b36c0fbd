"""Whether it pays to train the last stages of a pretrained network, or all of it, beside a classifier of its features.

    STUDY_DATA=... python tests/benchmarks/partly_frozen.py FOLDER [FOLDER ...] [--trained last_two] [--seeds 1]

Of EfficientNet-Lite0 on the folders of `photographs.py`, with bias labels: trials of the draft's classifier for six
epochs with `model.trained_stages`, and trials of the whole network that begin from its weights. Printed are the
accuracies of `photographs.py` on test, and the CPU seconds of a trial; the features are computed before it.
"""

import argparse
import tempfile
from pathlib import Path

import photographs

from study import data
from study.training import features

WHOLE = {"name": "efficientnet_lite0", "weights": "imagenet"}
FROZEN = {**WHOLE, "frozen": True, "joined": 4, "adapter": 0}
METHOD = {"name": "bias_balanced_cross_entropy"}
FACTORS = {"none": (1.0,), "last": (0.1, 0.3, 1.0), "last_two": (0.1, 0.3), "whole": (0.1, 0.3)}
"""Of the learning rate 0.001."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", choices=photographs.FOLDERS)
    parser.add_argument("--trained", nargs="+", choices=FACTORS, default=list(FACTORS))
    parser.add_argument("--factors", nargs="+", type=float)
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    for name in chosen.folders:
        with tempfile.TemporaryDirectory() as scratch:
            photographs.write(photographs.FOLDERS[name], Path(scratch))
            section = {"name": "image_folder", "path": scratch, "target": "class", "bias": "mark", "split": "split"}
            pictures = data.load({**section, "val": "given", "size": 160})
        for trained in chosen.trained:
            model = WHOLE if trained == "whole" else {**FROZEN, "trained_stages": trained}
            epochs, weight_decay = (5, 1e-4) if trained == "whole" else (6, 0.1)
            training = {"epochs": epochs, "weight_decay": weight_decay}
            dataset = features.replace_inputs_with_frozen_features(model, pictures, photographs.CPU)
            for factor in chosen.factors or FACTORS[trained]:
                given = dataset, {**model, "lr_factor": factor}, METHOD, {"schedule": "cosine", **training}
                print(name, trained, factor, *photographs.trials(*given, chosen.seeds), flush=True)


if __name__ == "__main__":
    main()
