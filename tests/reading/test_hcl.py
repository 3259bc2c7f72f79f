"""What a file of Terraform states literally, and what only Terraform evaluates."""

from typing import Any

import pytest

from kthena_components.reading.hcl import Block, Call, Expression, HclError, blocks_in
from tests.support.for_each import for_each

VALUES: dict[str, Any] = {
    '"a"': "a",
    r'"a\"b\n\u0041$${x}"': 'a"b\nA${x}',
    "4": 4,
    "-1.5": -1.5,
    "true # yes": True,
    "null // none": None,
    '["a", 4, /* five */ [true],\n]': ["a", 4, [True]],
    '{ a = 1, "b.c" : { d = "e" }\n f = [] }': {"a": 1, "b.c": {"d": "e"}, "f": []},
    "<<EOT\n a: 1\n  b\nEOT": " a: 1\n  b\n",
    "<<-EOT\n  a: 1\n    b: $${c}\n  EOT": "a: 1\n  b: ${c}\n",
    "<<EOT\na: ${b}\nEOT": Expression("a: ${b}\n"),
    'yamlencode({ a = var.b, c = "d" })': Call(
        "yamlencode", ({"a": Expression("var.b"), "c": "d"},)
    ),
    "var.a": Expression("var.a"),
    '"a${var.b}"': Expression("a${var.b}"),
    '"${var.a == "x" ? "y" : "z"}"': Expression('"${var.a == "x" ? "y" : "z"}"'),
    "[for each in var.a : { b = each }]": Expression("[for each in var.a : { b = each }]"),
    "{ (var.a) = 1 }": Expression("{ (var.a) = 1 }"),
    '{ "${var.a}" = 1 }': Expression('{ "${var.a}" = 1 }'),
    "1 + 2": Expression("1 + 2"),
    'var.a ? "b" : "c"': Expression('var.a ? "b" : "c"'),
    'merge({\n a = 1\n}, {\n b = "}"\n})': Call("merge", ({"a": 1}, {"b": "}"})),
}


@for_each("text", VALUES)
def test_a_value_is_read_as_stated(text: str) -> None:
    for written in (f'resource "a" "b" {{\n  c = {text}\n  d = 1\n}}\n',):
        (found,) = blocks_in(written, "resource")
        assert isinstance(found, Block)
        assert found.attributes == {"c": VALUES[text], "d": 1}


def test_blocks_have_blocks() -> None:
    text = (
        '# resource "x" "y" {\nlocals { a = 1 }\nresource "helm_release" "chat" {\n'
        '  set {\n    name = "a"\n    value = 1 }\n\n  dynamic "set" {\n'
        "    for_each = var.a\n    content { name = set.key }\n  }\n}\n"
    )
    local, found = blocks_in(text, "locals", "resource")
    assert isinstance(local, Block)
    assert isinstance(found, Block)
    assert (local.labels, local.attributes) == ((), {"a": 1})
    assert found.labels == ("helm_release", "chat")
    assert [each.kind for each in found.blocks] == ["set", "dynamic"]
    assert found.blocks[0].attributes == {"name": "a", "value": 1}


@pytest.mark.parametrize(
    "text",
    ["resource {", 'resource "a" "b" {\n c = "\n}', "resource a {\n = 1\n}", "resource a { b", "é"],
)
def test_what_is_not_understood_raises_nothing(text: str) -> None:
    assert all(isinstance(each, HclError) for each in blocks_in(text, "resource"))


def test_deep_values_are_not_understood() -> None:
    (found,) = blocks_in(f"locals {{\n a = {'[' * 10_000}\n}}", "locals")
    assert isinstance(found, HclError | Block)
