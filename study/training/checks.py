"""Whether the sections of a trial go together, asked before anything starts."""

from collections.abc import Iterator, Mapping
from typing import Any

from study import methods, models
from study.data.dataset import Facts
from study.training import augment


def problems(sections: Mapping[str, Mapping[str, Any]], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """What does not go together in complete sections: the key to change, as (section, key), and why.

    Args:
        facts: of the data set of the `data` section.
    """
    method, train, name = sections["method"], sections["train"], sections["data"]["name"]
    for key, why in methods.lacking(method, facts):
        yield ("method", key), f"{method[key]!r} given, it {why}, which data.name {name!r} lacks"
    if reason := models.unsuited(sections["model"], facts):
        yield ("model", "name"), reason
    augmentation = train["augmentation"]
    if reason := augment.suits(augmentation, facts):
        yield ("train", "augmentation"), f"{reason}, which data.name {name!r} is not"
    wish = methods.needs(method).views
    if wish and not augment.is_random(augmentation):
        random = [one for one in augment.names() if augment.is_random(one) and not augment.suits(one, facts)]
        why = f"{augmentation!r} given, method.{wish} {method[wish]!r} needs views that differ. "
        yield ("train", "augmentation"), f"{why}Allowed: {', '.join(random)}"
    if train["warmup_epochs"] > train["epochs"]:
        yield ("train", "warmup_epochs"), f"{train['warmup_epochs']} given, allowed is at most train.epochs"
