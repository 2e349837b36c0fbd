"""Events as types: each is written as ever, and read as what it was."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from study.home.events import EVENT_CLASSES, entry_to_event, event_to_entry
from study.home.ledger_line import decode_entry, encode_entry

KEPT = sorted((Path(__file__).parents[1] / "kept" / "studies").glob("*.jsonl.gz"))

LINES = (
    """
{"event":"created","time":1.5,"id":"x"}
{"event":"opened","time":1.5,"version":"1","commit":"a","dirty":false,"python":"3","libraries":{"ray":"2"},"node":"n",\
"gpus":["H100"],"owner":"ada","data":"d","dataset":"D","spec":"s","datasets":{"k":{"title":"t","digest":"d","shape":[1]\
,"rows":{"val":3},"sources":[]}},"weights":[{"name":"w","file":"f","sha256":"0"}],"function":[{"name":"w","file":"f","\
sha256":"0"}],"placement":{"resources.cpu":2},"groups":{"val":[[1,2]],"classes":["a"]}}
{"event":"extended","time":1.5,"trials":9}
{"event":"retried","time":1.5,"trials":[]}
{"event":"confirming","time":1.5,"top":2,"seeds":3,"rules":false}
{"event":"ablating","time":1.5,"trial":1,"steps":[["a","b"],["c"]],"first":1,"seeds":3}
{"event":"evaluated","time":1.5,"trial":1,"split":"test","by":"study evaluate"}
{"event":"trial","time":1.5,"trial":1,"stage":"confirm","params":{"a":1,"b":0.5,"c":true,"d":"x"},"seed":1,"repeats":0}
{"event":"trial","time":1.5,"trial":1,"stage":"search","params":{"a":null},"seed":1,"enqueued":true}
{"event":"trial","time":1.5,"trial":1,"stage":"search","params":{},"seed":1,"fold":2}
{"event":"started","time":1.5,"trial":1,"node":"n","epoch":0,"note":"x","device":{"name":"cpu"}}
{"event":"unusable","time":1.5,"node":"n","reason":"r"}
{"event":"report","time":1.5,"trial":1,"epoch":1,"metrics":{"a":1.0,"b":null},"note":"n","asleep":3.5}
{"event":"lost","time":1.5,"trial":1,"attempt":1,"kind":"OOM","reason":"r","alone":true,"node_died":true}
{"event":"ended","time":1.5,"trial":1,"state":"failed","kind":"BUG","reason":"r"}
{"event":"ended","time":1.5,"trial":1,"state":"pruned","reason":"asha"}
{"event":"judged","time":1.5,"trial":1,"predicted":"c$"}
{"event":"joined","time":1.5,"trial":1,"runs":[3,4],"metrics":{"val/a":0.5},"draws":{"val/a":[0.4,0.6]}}
{"event":"ensemble","time":1.5,"trials":[1,2],"metrics":{"val/a":0.5,"val/b":null}}
{"event":"reference","time":1.5,"name":"majority","metrics":{"val/a":0.5,"val/b":null},"seconds":1.5,"draws":{"val/a":[0.5]}}
{"event":"reference","time":1.5,"name":"majority","reason":"r"}
{"event":"tested","time":1.5,"trial":1,"metrics":{"a":1,"b":1.0,"c":null},"note":"n"}
{"event":"untested","time":1.5,"trial":1,"reason":"r"}
{"event":"enqueued","time":1.5,"request":"q","params":{"a":1}}
{"event":"stopping","time":1.5,"request":"q","trial":1}
{"event":"ending","time":1.5,"request":"q"}
{"event":"refused","time":1.5,"request":"q","reason":"r"}
{"event":"closed","time":1.5,"state":"complete","enough":"trials"}
""".strip()
    .encode()
    .splitlines()
)
"""An event of each kind with each of its fields, as every version has written it."""


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(decode_entry(line)["event"]))
def test_an_event_is_written_as_it_was_read(line: bytes) -> None:
    event = entry_to_event(decode_entry(line))
    assert encode_entry(event_to_entry(event)) == line
    assert replace(event) == event, "and a driver makes the same"


def test_each_kind_is_among_them() -> None:
    assert {decode_entry(line)["event"] for line in LINES} == EVENT_CLASSES.keys()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.partition(".")[0])
def test_the_ledgers_of_kept_studies_are_written_byte_for_byte(path: Path) -> None:
    with gzip.open(path) as lines:
        for line in lines:
            entry = decode_entry(line)
            assert encode_entry(event_to_entry(entry_to_event(entry))) == encode_entry(entry)
