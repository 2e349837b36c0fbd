"""Changes of a file's text, as hands, editors, merges and broken disks make them; and of a ledger's events."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

Mutation = Callable[[Random, str], str]

ODD = r"""
null ~ true no 0 -1 1e999 .inf -.inf .nan 0x1F 0o17 1_000 10000000000000000000000000000000 1e-400 12:30:45
2001-01-01 2001-13-45 '' "" [] {} [[]] [{}] {a:1} word paper papers val/accuracy test/accuracy ../x "\0"
"\ud800" "a\nb" ä 😀 <<: *x &x !!python/object:os.system !!binary !!set !!omap !!float x !!int "1" !!null !!str
|- >+ ? - , : # % @ ` ' " [1,2 {a {x:{}} [null] [nan] {low:0,high:1} {choices:[x]} {choices:[]} {low:1,high:0}
{when:{}} {range:paper} {method.alpha:0.5} [{method.alpha:0.5}] 99999999999999999999 0.1e 1.0e+400 -0 -0.0
4294967296 1d 90m 1h30m {1:2} {null:1} {"low":0,"high":1} {"choices":["x"]} {"low":1,"high":0} {"a":1}
{"name":"sup_con"} [0.1,0.2] ["a"] [0] [{"method.alpha":0.5}] {[1]:2} {true:false} eps_sup_info_nce sup_con
9223372036854775807 1e-300 1e308 -1e308 1e18 1000000000000 5e-324 {low:0,high:1e18,step:1} {low:1,high:1000000000}
wcl none fair_kl resnet18 mlp adult cifar10 image_folder table
"""
VALUES = [*ODD.split(), "9" * 400, "-" + "9" * 400, "9" * 5000, "word" * 5000]
"""What a word or number of a file can become."""

LINES = [
    "<<: {name: other}",
    "<<: [{name: other}, {train: {epochs: 1}}]",
    "x: &a [*a]",
    "x: &a {b: *a}",
    "--- \n",
    "...",
    "%YAML 1.1",
    "%TAG ! tag:x,2000:",
    "\tname: tab",
    "? [complex, key]\n: value",
    "? {a: b}\n: value",
    "!!set {a, b}: c",
    "name: !!python/name:os.system",
    "data: !ruby/object:Gem {}",
    "train: {epochs: &e 3, batch_size: *e}",
    "profiles: {cpu: {train.epochs: 1}, gpu: 3}",
    "profiles: [a]",
    "profiles: {cpu: {a.b.c.d: 1, '': 2, '.': 3, train: 4, train.epochs: 5}}",
    "profiles: {cpu: {search.space: [], search.space.method.alpha.low.x: 1}}",
    "final_seeds: [0, 0, -1]",
    "final_seeds: 3",
    "origin: {study: x}",
    "1: 2",
    "null: 3",
    "true: 4",
    "? \n",
    "'': 5",
    "a.b: 6",
    "name:",
    "  name: deeper",
    "data: {name: image_folder, path: nowhere}",
    "data: {name: table, path: nowhere.csv, target: x}",
    "data: {name: image_folder, path: ., labels: .}",
    "data: {name: image_folder, path: '', labels: '/'}",
    "data: {name: image_folder, path: ., labels: ../x.csv}",
    "data: {name: table, path: ~nobody-of-this-name/x.csv, target: x}",
    "name: ../x",
    "data: {name: table, path: ., target: x}",
    'data: {name: table, path: "\\0", target: x}',
    "data: {name: imagenet100, class_file: ., condition_file: x}",
    "data: {name: celeba, target: x+y+z, sensitive: +}",
    "data: {name: utkface, severity: 99, train_samples: 4}",
    "data: {name: imagenet9, clustering: 3, size: 1}",
    "data: {name: [biased_digits]}",
    "data: {name: {a: b}}",
    "model: {name: null}",
    "method: {name: 3}",
    "search: {enqueue: papers}",
    "search: {enqueue: [papers]}",
    "search: {alternatives: {method: {x: {}}}}",
    "search: {alternatives: {method: {x: 3}}}",
    "search: {alternatives: {train: {x: {name: y}}}}",
    "search: {space: {method.name: {choices: [sup_con, sup_con, 3, null]}}}",
    "search: {space: {method.name: {low: 0, high: 1}}}",
    "search: {space: {method.alpha: {low: 0, high: 1, when: {method.alpha: [0]}}}}",
    "search: {space: {name: 3, a.b.c: 4, method: 5, .x: 6, x.: 7}}",
    "search: {space: {data.name: {choices: [biased_digits, adult]}}}",
    "search: {baseline: {method.name: [x], data.name: {}, a: 1, b.c.d: 2}}",
    "search: {enqueue: [{method.name: [x]}, 3, {data.name: {}}]}",
    "search: {metric: []}",
    "search: {constraints: [x, 'val/accuracy >= 1e999', 'val/accuracy <= .']}",
    "search: {replicates: [0, 1], sampler: grid, time: 0s}",
    "search: {sampler: grid, space: {method.alpha: {low: 0, high: 1, step: 1e-300}}}",
    "search: {sampler: grid, space: {train.batch_size: {low: 2, high: 1000000000000000000}}}",
    "search: {space: {train.batch_size: {low: 2, high: 9223372036854775807, step: 1}}}",
    f"train: {{epochs: {'9' * 400}}}",
    "train: {epochs: 9223372036854775807, learning_rate: 1e308, lr_milestones: [1e-300]}",
    "search: {early_stopping: {name: asha, grace: 1}, trials: 9223372036854775807}",
    f"search: {{space: {{{', '.join(f'method.x{number}: 1' for number in range(1000))}}}}}",
    f"data: {{{', '.join(f'x{number}: 1' for number in range(3000))}}}",
    f"profiles: {{cpu: {{{', '.join(f'a{number}.b: 1' for number in range(1000))}}}}}",
    f"search: {{enqueue: [{', '.join(['{method.alpha: 0.5}'] * 1000)}]}}",
]


LETTERS = ["", "x", " ", "\n", ".", "_", "\u00e9", "\u2028", "\x85", "\ufeff", "\x00", "\x1b", "\ud800"]


def change_line(random: Random, text: str) -> str:
    """Gone with the next one or without, there twice, indented, elsewhere, or behind one of `LINES`."""
    lines = text.splitlines(keepends=True)
    place, other = (random.randrange(max(1, len(lines))) for _ in range(2))
    line, moved = "".join(lines[place : place + 1]), "".join(lines[other : other + 1])
    given = f"{' ' * random.choice([0, 0, 2, 4])}{random.choice(LINES)}\n{line}"
    indented = random.choice(["  ", "\t", " "]) + line
    lines[place : place + random.choice([1, 1, 1, 2])] = random.choice(["", line * 2, given, indented, moved + line])
    return "".join(lines)


def truncate(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def _tokens(text: str) -> list[tuple[int, int]]:
    """Where words, numbers and bits of punctuation begin and end, comments left out."""
    found = []
    at = 0
    for line in text.splitlines(keepends=True):
        body = line.split("#")[0]
        found += [(at + one.start(), at + one.end()) for one in re.finditer(r"[\w./-]+|[{}\[\]:,]", body)]
        at += len(line)
    return found or [(0, 0)]


def change_token(random: Random, text: str) -> str:
    """Another value, none, another letter in it, or what another place has."""
    (start, end), (first, last) = (random.choice(_tokens(text)) for _ in range(2))
    place = random.randrange(start, max(end, start + 1))
    spelled = text[start:place] + random.choice(LETTERS) + text[place + random.randrange(2) : end]
    value = random.choice(VALUES)
    return text[:start] + random.choice([value, value, value, "", spelled, text[first:last]]) + text[end:]


MUTATIONS: list[Mutation] = [*[change_line] * 5, truncate, *[change_token] * 6]


def mutate_bytes(random: Random, content: bytes) -> bytes:
    """A text file with some changes, and perhaps one of its bytes."""
    text = content.decode()
    for _ in range(random.choice([1, 1, 2, 3])):
        text = random.choice(MUTATIONS)(random, text)
    content = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        place = random.randrange(len(content) + 1)
        content = content[:place] + bytes([random.randrange(256)]) + content[place + 1 :]
    return content


ODD_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**400, -(10**30), 0.5, -0.0, 1e308, 1e-320, float("nan")),
    *(float("inf"), "", "x", "0", "\0", "\ud800", "\U0001f600", "val/accuracy", "search", "complete", "../x", "%s{0}"),
    *([], [[]], [0], {}, {"a": {}}, {"val/accuracy": "x"}, {"": 1}, {"method.alpha": []}, {"unknown": 3}, "[red]x"),
]
"""What a field of an event can become."""


def mutate_events(random: Random, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events with one change: of a field, or of their order."""
    changed = [dict(event) for event in events]
    place, kind = random.randrange(len(changed)), random.choice(["value", "value", "value", "inner", "key", "line"])
    event = changed[place]
    if kind == "line":
        moved = changed.pop(place)
        for _ in range(random.choice([0, 1, 2])):  # lost, moved or doubled
            changed.insert(random.randrange(len(changed) + 1), moved)
        return changed
    field = random.choice(list(event))
    if kind == "inner" and isinstance(event[field], dict) and event[field]:
        inner = random.choice(list(event[field]))
        event[field] = {**event[field], inner: random.choice(ODD_VALUES)}
    elif kind == "key":
        event[random.choice([field, "repeats", "kind", "reason", "epoch", "x"])] = event.pop(field)
    else:
        event[field] = random.choice(ODD_VALUES)
    return changed
