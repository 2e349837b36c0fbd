"""The text of a user's first study file: from a few answers to commented YAML that `study plan` accepts."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from study import data, methods
from study.commands import draft_parts as parts
from study.commands.draft_parts import Bias
from study.data import Facts
from study.metrics import METRICS
from study.spec.document import apply_profile, parse
from study.spec.load import resolve
from study.text import typed

SMALL = 64
"""Pixels of a side up to which a network keeps the image's size in its first layer."""

PHOTOS = 96
"""Pixels of a side from which published weights are pointed out."""

BATCHES, STEPS = (128, 64, 32), 20
"""Batch sizes, of which a study of images takes the first that gives an epoch so many steps, or the last: measured on
690 images by `tests/benchmarks/networks.py`."""

TEXT = """\
{schema}# {about}
# {plan} shows what would run, {trial} runs one trial, {run} all.
name: {name}

# The data set and its keys: study data list prints what there is.
{validation}{notes}data:   {data}
# The network; head: mlp puts a projection head between its features and the loss.
{begin}model:  {model}
# The loss; study spaces prints what each is.
{methods}
method: {method}
train:  {train}

search:
  # paper: the range that the papers' tables span. Others: {{low: 0.1, high: 1.0, log: true}}, {{choices: [0.1, 0.5]}}
  space:
{space}
  # What the result is compared with: the ordinary loss, at the file's own learning rate.
  baseline: {baseline}
{enqueue}  sampler: tpe
  trials: {trials}
  # {metric_words}
  # With a name that there is not, study plan lists all there are.
  metric: {metric}
  # At half of the epochs only the best third goes on. On biased data an earlier order misleads.
  early_stopping: {{name: asha, reduction: 3}}
  # The best configurations and the baseline run again on fresh seeds: that is the result.
  confirm: {{top: 2, seeds: 3}}

# What one trial takes; as many run at once as fit.
resources: {resources}
profiles:
  # With --profile {profile}:
  {profile}: {overrides}
"""

VALIDATION = {
    "biased": "# val: biased: validation is cut from training, and as biased; unbiased takes each pair of class\n"
    "# and bias as often, as far as there are samples.\n",
    "given": "# val: given: the validation split is your own.\n",
}
"""What is said of the validation split of the user's own files."""

BEGIN = """\
# From published weights, once study models prepare resnet18 has fetched them:
# model:  {name: resnet18, weights: imagenet, frozen: 2, lr_factor: 0.1}
"""

PAPERS = """\
  # What the papers found good is tried first.
  enqueue: papers
"""

OVERRIDES = {
    "cpu": {"train.epochs": 20, "train.precision": "float32", "resources.gpu": 0},
    "gpu": {"train.precision": "bfloat16", "resources.gpu": 0.25},
}
"""The profile of a study on the other kind of machine."""


@dataclass(frozen=True)
class Wishes:
    """The answers that a study file is made from.

    Attributes:
        data: its section.
        methods: one or several, which are then searched over.
        gpu: whether its trials have a GPU each, or a share of one.
        images: how many images of the user's are trained on; None: not known, or no images.
        bias: what the user knows of it.
        notes: what stands as comments above the data.
        papers: whether the papers' configurations are tried first, where there are some.
    """

    name: str
    data: Mapping[str, Any]
    methods: tuple[str, ...]
    gpu: bool
    trials: int
    bias: Bias
    images: int | None = None
    notes: tuple[str, ...] = ()
    papers: bool = True


def draft(wishes: Wishes, file: str, schema: str | None = None) -> str:
    """The text of a study file, checked by loading it with and without its profile.

    Args:
        file: its future name, for comments and messages.
        schema: where an editor finds the JSON Schema.

    Raises:
        UserError: the wishes contradict each other.
    """
    facts = data.describe(dict(wishes.data))
    bias = wishes.bias
    sections = parts.sections(wishes.methods, bias)
    names = [section["name"] for section in sections]
    plain = parts.section(parts.plain_name(names), bias)
    views = any(methods.needs(parts.complete(section)).views for section in [plain, *sections])
    epochs = 60 if wishes.gpu else 20
    train: dict[str, Any] = {"epochs": epochs, "batch_size": _batch_size(wishes.images), "learning_rate": 0.001}
    augmentation = parts.augmentation(facts, views, bias)
    train |= {"augmentation": augmentation} if augmentation else {}
    train |= {"precision": "bfloat16"} if wishes.gpu else {}
    space = parts.search_space(sections, facts, views, bias)
    metric = parts.metric(facts)
    train |= {"inferred_groups": "gce"} if METRICS[metric].of_inferred else {}
    profile = "cpu" if wishes.gpu else "gpu"
    text = TEXT.format(
        schema=f"# yaml-language-server: $schema={schema}\n" if schema else "",
        about=f"{wishes.name}: {', '.join(names)} on {facts.title or wishes.data['name']}.",
        **{verb: typed(verb, file) for verb in ("plan", "trial", "run")},
        name=wishes.name,
        notes="".join(f"# {note}\n" for note in wishes.notes),
        validation=VALIDATION.get(str(wishes.data.get("val")), ""),
        data=_flow(wishes.data),
        model=_flow(_model(facts, wishes.gpu, views)),
        begin=BEGIN if not facts.is_table and facts.shape[0] == 3 and min(facts.shape[1:]) >= PHOTOS else "",
        methods="\n".join(f"# {parts.words(section)}" for section in sections),
        method=_flow(sections[0]),
        train=_flow(train),
        space="\n".join(f"    {key}: {_value(domain)}" for key, domain in space.items()),
        baseline=_flow(parts.baseline(sections, space)),
        enqueue=PAPERS if wishes.papers and parts.in_papers(sections, space) else "",
        trials=wishes.trials,
        metric_words=METRICS[metric].about,
        metric=f"val/{metric}",
        resources="{cpu: 2, gpu: 0.5}" if wishes.gpu else "{cpu: 1, gpu: 0}",
        profile=profile,
        overrides=_flow(OVERRIDES[profile]),
    )
    for chosen in (None, profile):
        document = parse(text, file)
        apply_profile(document, chosen)
        resolve(document)
    return text


def _model(facts: Facts, gpu: bool, head: bool) -> dict[str, Any]:
    on_top = {"head": "mlp"} if head else {}
    if facts.is_table:
        return {"name": "mlp", **on_top}
    if not gpu:
        return {"name": "small_conv_net", **on_top}
    return {"name": "resnet18", "stem": "imagenet" if max(facts.shape[1:]) > SMALL else "cifar", **on_top}


def _batch_size(images: int | None) -> int:
    return next((size for size in BATCHES if images is None or images >= STEPS * size), BATCHES[-1])


def _flow(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {_value(value)}" for key, value in values.items()) + "}"


def _value(value: Any) -> str:
    """A value as it stands in a study file."""
    if isinstance(value, Mapping):
        return _flow(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w/-]*(\.\w+)*", value) and value.lower() not in WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
"""Words that some version of YAML does not read as text."""
