"""Whether the sections of a trial go together, asked before anything starts."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from study import methods, models
from study.data.dataset import Facts
from study.training import augment
from study.training.config import TrialConfig

# Whether a trial can go on beyond its last epoch: not where what it does in an epoch depends on how many there are.


def bound(sections: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """The key that ties a trial to its number of epochs, and what would not; None: nothing does.

    A trial that nothing ties computes in each epoch what a longer one computes in it, bit for bit.

    Args:
        sections: complete, of one trial.
    """
    train, method = sections["train"], sections["method"]
    if train["schedule"] == "cosine":
        return "train.schedule", "cosine falls to lr_floor at the last epoch; constant does not depend on it"
    if train["schedule"] == "steps" and train["lr_milestones"]:
        return "train.lr_milestones", "they are shares of all epochs; without them the learning rate stays constant"
    if (key := methods.needs(method).total) is not None:
        return f"method.{key}", f"what {method['name']} does in an epoch depends on how many there are"
    return None


def identity(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The sections as a checkpoint knows them: without the number of epochs where nothing ties the trial to it."""
    if bound(sections) is not None:
        return dict(sections)
    return {**sections, "train": {key: value for key, value in sections["train"].items() if key != "epochs"}}


def problems(sections: Mapping[str, Mapping[str, Any]], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield what does not go together in complete sections: the key to change, as (section, key), and why.

    Args:
        facts: of the data set of the `data` section.
    """
    method, train, name = sections["method"], sections["train"], sections["data"]["name"]
    for key, why in methods.lacking(method, facts):
        yield ("method", key), f"{method[key]!r} given, it {why}, which data.name {name!r} lacks"
    augmentation = train["augmentation"]
    if reason := augment.suits(augmentation, facts):
        yield ("train", "augmentation"), f"{reason}, which data.name {name!r} is not"
    else:
        yield from _shapes(sections, facts)
    wish = methods.needs(method).views
    if wish and not augment.is_random(augmentation):
        random = [other for other in augment.names() if augment.is_random(other) and not augment.suits(other, facts)]
        why = f"{augmentation!r} given, method.{wish} {method[wish]!r} needs views that differ. "
        yield ("train", "augmentation"), f"{why}Allowed: {', '.join(random)}"
    if train["warmup_epochs"] > train["epochs"]:
        yield ("train", "warmup_epochs"), f"{train['warmup_epochs']} given, allowed is at most train.epochs"
    if late := [epoch for epoch in train["keep_epochs"] if epoch >= train["epochs"]]:
        yield ("train", "keep_epochs"), f"{late[0]} given, allowed is below train.epochs: the last epoch is always kept"
    if train["micro_batch"] is not None and train["compile"]:
        yield ("train", "micro_batch"), f"{train['micro_batch']} given, train.compile needs the whole batch: null"
    if train["graph"]:
        yield from _recording(method, train)
    if train["inferred_groups"] != "none":
        yield from _biased_network(sections, facts)
    needed = methods.needs(method).epochs
    if needed and train["epochs"] < needed[1]:
        why = f"{method[needed[0]]!r} given, it needs train.epochs of at least {needed[1]}, not {train['epochs']}"
        yield ("method", needed[0]), why


def _recording(method: Mapping[str, Any], train: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield why a step cannot be recorded."""
    if train["compile"]:
        yield ("train", "graph"), "True given, so is train.compile: allowed is one of the two"
    if train.get("micro_batch") is not None:
        yield ("train", "graph"), "True given, a step in parts (train.micro_batch) cannot be recorded"
    if (key := methods.needs(method).varies) is not None:
        yield ("train", "graph"), f"True given, a step with method.{key} {method[key]!r} differs from batch to batch"


def _biased_network(sections: Mapping[str, Mapping[str, Any]], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield why the network that finds groups cannot be trained: on classes, and samples as the data set has them."""
    kind, given = ("train", "inferred_groups"), f"{sections['train']['inferred_groups']!r} given"
    if facts.unlabelled:
        name = sections["data"]["name"]
        yield kind, f"{given}, it needs the class of every training sample, which data.name {name!r} lacks"
    elif reason := models.unsuited(sections["model"], facts):
        yield kind, f"{given}, its network sees samples as they are stored: {reason}"


def _shapes(sections: Mapping[str, Mapping[str, Any]], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield why the network cannot take what training and evaluation give it."""
    options = TrialConfig.from_document(sections).train
    trained = replace(facts, shape=augment.output_shape(options.augmentation, facts.shape, options))
    if reason := models.unsuited(sections["model"], trained):
        yield ("model", "name"), reason
        return
    size = options.evaluation_size
    evaluated = facts if facts.is_table or size is None else replace(facts, shape=(facts.shape[0], size, size))
    if reason := models.unsuited(sections["model"], evaluated):
        yield ("train", "evaluation_size"), f"{size!r} given. {reason}"
