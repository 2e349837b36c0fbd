"""How well `study guide WORDS` answers: at which place the passages that are shown whole have the answer.

    python tests/benchmarks/guide_search.py

Asks 88 questions as users type them, each with words that an answer has, with and without each of the weights
`study.commands.guide.IN_HEADING`, `LATE` and `RANK`, which were chosen on these questions. Printed: how many are
answered by the first, second, third passage and by none of these, and which are not by the first with the weights as
they are.
"""

from collections import Counter
from unittest import mock

from study.commands import guide

QUESTIONS = {
    "run more trials in a finished study": "--trials +50",
    "predict on new pictures with the final model": "study predict",
    "train the best with 5 seeds and compare with cross entropy": "name: cross_entropy",
    "which method for fairness with two sensitive attributes": "gender+race",
    "use only 2 of 8 GPUs two hours": "CUDA_VISIBLE_DEVICES=0,1",
    "only 2 of 8 GPUs, two hours": "CUDA_VISIBLE_DEVICES=0,1",
    "add my own loss": "adding-things.md",
    "disk full": "free disk space",
    "free disk space": "study delete",
    "shrunk_unbiased_accuracy": "cells",
    "shrunk small cell how computed": "(right + 10 p)",
    "small cells shrunk": "(right + 10 p)",
    "what is epsilon and which values are sensible": "`method.epsilon`",
    "epsilon range paper": "`method.epsilon`",
    "put it on our Slurm": "study.sbatch",
    "Slurm Ray token shared folder": "study.sbatch",
    "ASHA stops too early": "grace",
    "pruned too early grace": "grace",
    "how many seeds do I need": "five seeds",
    "seeds": "five seeds",
    "only two GPUs": "CUDA_VISIBLE_DEVICES=0,1",
    "reproduce Table 12 of the paper": "reproduce fairkl-table12",
    "MLflow on another machine with a password": "MLFLOW_TRACKING_PASSWORD",
    "fairness equalized odds must stay below 5 points": "search.constraints",
    "equalized odds limit": "search.constraints",
    "trial failed why": "study logs",
    "trial 7 failed: why": "study logs",
    "my validation set is as biased as training: what do I type": "val/shrunk_unbiased_accuracy",
    "labels in a csv beside the images": "labels.csv",
    "no bias labels": "--bias none",
    "out of memory on the GPU": "train.micro_batch",
    "continue after the machine rebooted": "study resume",
    "use a pretrained ResNet": "models prepare",
    "pretrained": "models prepare",
    "compare two studies": "study compare",
    "predict new images": "study predict",
    "tabular data with missing values": "missing: fill",
    "limit time": "time: 2h",
    "4 GPUs": "CUDA_VISIBLE_DEVICES=0,1",
    "another process is running this study": "its driver is alive",
    "export the best configuration": "study export",
    "own training loop": "study.run",
    "what does pruned mean": "arly stopping ended it",
    "register model mlflow load": "load_model",
    "delete a study": "study delete",
    "laptop submit": "study submit",
    "two objectives front": "front",
    "grid search": "`grid`",
    "which command shows progress": "study status",
    "stop one trial": "--trial",
    "early stopping hyperband": "`hyperband`",
    "unknown bias": "bias none",
    "image size": "size",
    "how do I limit memory": "search.concurrency",
    "class weights": "method.class_weights",
    "export to ONNX": "no export",
    "is my test split biased": "test/unbiased_accuracy",
    "what if I change the file after a stop": "studies/NAME/study.yaml",
    "exclude a column": "--without",
    "missing sensitive attribute": "bias_gaps",
    "what does shrunk_unbiased_log_loss mean": "ean of the log losses",
    "early stopping off": "early_stopping.name=none",
    "limit memory": "search.concurrency",
    "ONNX": "no export",
    "my own network": "adding-things.md",
    "how do I stop a study": "Ctrl-C",
    "where are my results saved": "STUDY_HOME",
    "change the metric": "search.metric",
    "run on two GPUs": "CUDA_VISIBLE_DEVICES=0,1",
    "what is a validation split": "data.val",
    "how long will it take": "study plan",
    "use my own loss function": "adding-things.md",
    "semicolons instead of commas": "separator",
    "decimal comma": 'decimal: ","',
    "what is equalized odds": "Mean gap between bias classes",
    "a class with few samples": "method.class_weights",
    "fine tune a pretrained network": "lr_factor",
    "delete an old study": "study delete",
    "use more CPU cores": "resources.cpu",
    "why was my trial pruned": "arly stopping ended it",
    "load the trained model in Python": "Classifier.load",
    "rename a study": "--name",
    "do not search the learning rate": "its value in the place of its range",
    "same result twice": "train.deterministic",
    "missing values in my table": "fill",
    "GPU out of memory": "train.micro_batch",
    "copy a study to another computer": "copy the whole home",
    "predict a number instead of a class": "target_bins",
}


def places() -> dict[str, int | None]:
    """The place of the passage with the answer, from 1 on, of each question; None: not among those shown whole."""
    every = [
        passage for page, text in guide.pages().items() if page != guide.INDEX for passage in guide.passages(page, text)
    ]
    found = {}
    for question, answer in QUESTIONS.items():
        sections: dict[tuple[str, str], guide.Passage] = {}
        passages = guide.find(question.split(), every)
        for passage in passages:
            sections.setdefault((passage.page, passage.heading), passage)
        shown = [
            f"{one.heading}\n{guide._shown(one, question.split(), passages)}"
            for one in list(sections.values())[: guide.WHOLE]
        ]
        found[question] = next((place for place, text in enumerate(shown, 1) if answer in text), None)
    return found


def main() -> None:
    print("| weights | first | second | third | none |\n|---|---|---|---|---|")
    chosen = {"IN_HEADING": guide.IN_HEADING, "LATE": guide.LATE, "RANK": guide.RANK}
    for without in (dict.fromkeys(chosen, 0), *({name: 0} for name in chosen), {}):
        with mock.patch.multiple(guide, **chosen | without):
            found = places()
        counts = Counter(found.values())
        weights = ", ".join(f"{name} {weight}" for name, weight in (chosen | without).items())
        print(f"| {weights} | {' | '.join(str(counts[place]) for place in (1, 2, 3, None))} |")
    print("\nNot by the first passage:")
    for question, place in found.items():
        if place != 1:
            print(f"- {question}: {place or 'none'}")


if __name__ == "__main__":
    main()
