"""What there is to train on a GPU, from the catalogues: a new method, network or switch need not be named here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from study import methods, models
from study.data.dataset import Facts
from study.knobs import Knob, read_knobs
from study.training import augment, probes
from study.training.config import TrainOptions

Section = dict[str, Any]

COLOUR = {"mean": (0.5, 0.5, 0.5), "deviation": (0.5, 0.5, 0.5)}
FACTS = {
    "images": Facts(4, 4, (3, 40, 40), condition=3, **COLOUR),
    "small images": Facts(4, 4, (3, 32, 32), condition=3, **COLOUR),
    "two classes": Facts(2, 2, (3, 40, 40), condition=3),
    "table": Facts(2, 2, (12,), condition=3),
}
"""Data by kind; a case takes the first kind that lacks nothing of what its method needs."""

NETWORKS: list[Section] = [{"name": "small_conv_net"}, {"name": "mlp"}]
"""The first that suits the data is what methods are tried with."""

MARGIN: Section = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "lambda": 1.0, "alpha": 0.1, "epsilon": 0.5}
"""A loss of pairs with a regulariser: what networks, optimizers and options are tried with."""

SWITCHED_AS_RESNET18 = ("resnet50", "torchvision")
"""Networks whose switches are those of resnet18 and do the same, in more seconds."""


GIVEN: dict[str, Section] = {
    "views": {"views": 2},
    "pooled": {"views": 2, "pooled": False},
    "positives": {"positives": 3},
    "classifier_epochs": {"classifier_epochs": 1},
}
"""Numbers that a method's key is also tried with."""

WITH: dict[str, Section] = {"regulariser": {"lambda": 1.0}, "bias_source": {"bias_epochs": 1}}
"""What comes with a switch: a regulariser has a weight, a network that stands in for labels is trained briefly."""

TRAINED: list[Section] = [
    {"clip_norm": 1.0},
    {"weight_decay": 1e-4, "warmup_epochs": 1},
    {"crop_size": 24, "evaluation_size": 32, "augmentation": "simclr"},
    {"data_share": 0.5},
    {"crop_scale": 0.5, "jitter": 0.5, "augmentation": "simclr"},
]
"""Options of `train` that take numbers."""


@dataclass(frozen=True)
class Case:
    """One configuration: the kind of data, and the sections of a study file. One epoch is enough for a short one."""

    label: str
    facts: str
    model: Section
    method: Section
    train: Section = field(default_factory=dict)
    short: bool = False

    def document(self) -> dict[str, Any]:
        """The sections that a trial is made of."""
        train = {"epochs": 2, "batch_size": 32, **self.train}
        model = {key: knob.default for key, knob in models.model_knobs(self.model).items()} | self.model
        return {"data": {}, "model": model, "method": complete(self.method), "train": train}


def complete(method: Mapping[str, Any]) -> Section:
    """A method section with all its keys."""
    return {key: knob.default for key, knob in methods.method_knobs(method).items()} | dict(method)


def cases() -> Iterator[Case]:
    """Every case once, by label."""
    seen = set()
    for case in (*_methods(), *_networks(), *_augmentations(), *_training()):
        if case.label not in seen:
            seen.add(case.label)
            yield case


def _case(
    label: str, method: Section, facts: str = "", model: Section | None = None, head: str = "none", **train: Any
) -> Iterator[Case]:
    """The case, if there are data for it; without `model` on a small network with this head."""
    whole, choice = complete(method), [model] if model else NETWORKS
    for kind in [kind for kind in FACTS if kind.endswith(facts)]:
        networks = [network for network in choice if models.why_network_unsuited(network, FACTS[kind]) is None]
        if networks and not list(methods.unmet_needs(whole, FACTS[kind])):
            break
    else:
        return
    if methods.method_needs(whole).views_key and "augmentation" not in train:
        train["augmentation"] = "noise" if FACTS[kind].is_table else "simclr"
    network = networks[0] if head == "none" else {**networks[0], "head": head}
    yield Case(label, kind, network, method, train)


def _methods() -> Iterator[Case]:
    for name in methods.method_names():
        base = {"name": name}
        yield from _case(f"method {name}", base)
        yield from _case(f"method {name}, table", base, "table")
        yield from _case(f"method {name}, head, bfloat16", base, head="mlp", precision="bfloat16")
        for key, section in _switched(base, methods.method_knobs):
            short = "classifier_epochs" not in section  # it is trained in the second
            yield from (replace(case, short=short) for case in _case(f"method {name}, {key}", section))


def _switched(base: Section, keys: Callable[[Section], Mapping[str, Knob]]) -> Iterator[tuple[str, Section]]:
    """A section with each value of each switch that is not its default, and of the switches that come with it."""
    waiting, tried = [base], set()
    while waiting:
        section = waiting.pop()
        for key, knob in keys(section).items():
            for value in _values(knob):
                if value == knob.default or (key, value) in tried:
                    continue
                tried.add((key, value))
                changed = {**section, key: value, **WITH.get(key, {})}
                yield f"{key}={value}", changed
                if section is base:
                    waiting.append(changed)
            if key in GIVEN and key not in tried:
                tried.add(key)
                yield f"{key}={GIVEN[key][key]}", section | {k: v for k, v in GIVEN[key].items() if k in keys(section)}


def _values(knob: Knob) -> tuple[Any, ...]:
    return knob.choices or ((True, False) if bool in knob.plain_types else ())


def _networks() -> Iterator[Case]:
    for name in models.CATALOGUE.listed_names():
        facts = "table" if name in ("linear", "mlp") else "images"  # of any size
        for precision in ("float32", "bfloat16"):
            yield from _case(f"network {name}, {precision}", MARGIN, facts, {"name": name}, precision=precision)
        for key, section in _switched({"name": name}, models.model_knobs):
            if key.partition("=")[0] not in ("weights",) and name not in SWITCHED_AS_RESNET18:
                yield from _case(f"network {name}, {key}", MARGIN, facts, section)


def _augmentations() -> Iterator[Case]:
    for name in augment.AUGMENTATION_CHECKS:
        for facts in ("images", "table"):
            if augment.why_augmentation_unsuited(name, FACTS[facts]) is None:
                options = {"augmentation": name, "precision": "bfloat16"}
                yield from _case(f"augmentation {name}, {facts}", {"name": "sup_con"}, facts, **options)


def _training() -> Iterator[Case]:
    for knob in read_knobs(TrainOptions):
        for value in _values(knob):
            if value != knob.default:
                yield from _case(f"train {knob.key}={value}", MARGIN, **{knob.key: value})
    final = next(knob for knob in read_knobs(TrainOptions) if knob.key == "final")
    for name in {*probes.PROBE_FITTERS, *get_args(get_args(final.plain_types[0])[0])}:
        yield from _case(f"final {name}", MARGIN, final=(name,))
    for options in TRAINED:
        label = ", ".join(f"{key}={value}" for key, value in options.items())
        yield from _case(f"train {label}", MARGIN, **options)
    yield from _case("train two classes", {"name": "cross_entropy"}, "two classes")
