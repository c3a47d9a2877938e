"""The search of tools/grammar/judge_masks.py: prefixes of JSON texts, and texts that complete them."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools/grammar"))
from json_prefix import START, Witnesses, run  # noqa: E402

TEXTS = ['{"a": [1, -0.5e+3, true, null], "é\\u00e9\\n": {"b": ""}}', "[[], {}, [\n  0.10\n]]", '"\U0001F600"', "false", "-12.5E7"]


@pytest.mark.parametrize("text", TEXTS)
def test_every_beginning_of_a_text_has_a_state(text):
    data = text.encode()
    for end in range(len(data)):
        assert run(START, data[:end]) is not None
    mode, stack = run(START, data)
    assert stack == "" and mode in ("end", "exp")


@pytest.mark.parametrize("text", ["{a", "[1,]", "01", "1.x", '"\t', '"\\x', '{"a" 1', "[}", "nul ", "-a", '{"a":}', "1 2", '"\xff'])
def test_what_begins_no_json_text_has_none(text):
    assert run(START, text.encode("latin-1")) is None


def test_beginnings_are_ended_by_parts_of_valid_texts():
    def valid(text):
        try:
            pairs = json.loads(text, object_pairs_hook=list)
        except ValueError:
            return False
        value = dict(pairs) if isinstance(pairs, list) and text[:1] == b"{" else {}
        return len(value) == len(pairs or []) and isinstance(value.get("n"), int) and value.get("kind") in ("red", "green")

    witnesses = Witnesses([b'{"kind": "red", "n": 12}'], [b"kind", b"n"], [b'"red"', b'"green"'])
    for beginning in [b"{", b'{"ki', b'{"kind": "gr', b'{"new', b'{"kind": "red", "n": 1', b'{"n": 7, ', b'{"kind": "red", "n": 12']:
        assert any(valid(text) for text in witnesses.ends(beginning, len(beginning), 90)), beginning
    for beginning in [b'{"kind": "blue', b'{"kind": 1', b"["]:
        assert not any(valid(text) for text in witnesses.ends(beginning, len(beginning), 90)), beginning
