"""Settings that Pulumi would read differently are refused, with their line; the others are read.

What Pulumi makes of each form is checked by Pulumi itself in test_agreed_laws.py.
"""

import json

import pytest

from kthena_components.reading.project import ProjectError, parse_mapping
from kthena_components.reading.settings import parse_kube_map
from tests.support.for_each import for_each

NUMBER = "which not every program reads in the same way: write it as a decimal number"
TEXT = "which not every program reads as a string: write it in quotes"
VALUE = "which not every program reads as the same value"
REFUSED = {
    "!!binary YWJj": "f.yaml:1:4: has the tag '!!binary'",
    "!!str 8": "f.yaml:1:4: has the tag '!!str'",
    "!x 8": "f.yaml:1:4: has the tag '!x', which not every program reads in the same way",
    "! 8": "f.yaml:1:4: has the tag '!'",
    "!!map {b: 1}": "f.yaml:1:4: has the tag '!!map'",
    "[!!seq [1]]": "f.yaml:1:5: has the tag '!!seq'",
    "{<<: {b: 1}}": "f.yaml:1:5: has a merge key (<<): write the keys that it adds",
    **{
        f"{{{form}: {{b: 1}}}}": "f.yaml:1:5: has a merge key (<<): write the keys that it adds"
        for form in ("'<<'", '"<<"', r'"\x3c<"')
    },
    "<<": "f.yaml:1:4: has << as a value",
    "[&x b, {*x : 1}]": "f.yaml:1:12: has an alias as a key: write a string",
    "{[b]: 1}": "f.yaml:1:5: has a map or a list as a key: write a string",
    "{b: 1, 'b': 2}": "f.yaml:1:11: states 'b' twice in one map: remove one of the two",
    "{1: b}": f"f.yaml:1:5: has the key 1, {TEXT}",
    "{yes: b}": f"f.yaml:1:5: has the key yes, {TEXT}",
    "{~: b}": f"f.yaml:1:5: has the key ~, {TEXT}",
    "{2026-01-01: b}": f"f.yaml:1:5: has the key 2026-01-01, {TEXT}",
    **{
        form: f"f.yaml:1:4: has the number {form}, {NUMBER}"
        for form in (
            "8.0", "8.", "08", "010", "0x10", "0o10", "0b10", "1e1", "1E3", "1_000", "+8", "-0",
            "0.0", "1_0.5", "0b-1", "0x_1", "9007199254740993", "18446744073709551616", "1e400",
        )
    },
    **{
        form: f"f.yaml:1:4: has {form}, {VALUE}: write true or false, or write it in quotes"
        for form in ("yes", "No", "ON", "off", "y", "N")
    },
    **{form: f"f.yaml:1:4: has {form}, {VALUE}: write it in" for form in (".inf", "-.INF", ".nan")},
    **{
        form: f"f.yaml:1:4: has {form}, which some programs read as a date: write it in quotes"
        for form in ("2026-01-01", "2026-1-1", "2026-01-01T00:00:00Z", "2026-01-01 10:00:00")
    },
    '"\\nb"': "f.yaml:1:4: has a string that starts with a line break, which Pulumi drops",
    "|\n\n  b": "f.yaml:1:4: has a string that starts with a line break",
    '"\\tb\\n"': "f.yaml:1:4: has a string that has several lines and starts with a tab",
    '"\\u2028b\\n"': "f.yaml:1:4: has a string that starts with a line break",
    "b\rc: 1": "f.yaml:1:5: contains the character U+000D",
    "b\x85c: 1": "f.yaml:1:5: contains the character U+0085",
    "b # c\u2028c: 1": "f.yaml:1:9: contains the character U+2028",
    "'\ufeff'": "f.yaml:1:5: contains the character U+FEFF",
}  # fmt: skip
READ: dict[str, object] = {
    "8": 8, "0": 0, "-3": -3, "9007199254740992": 2**53,
    "0.5": 0.5, ".5": 0.5, "+.5": 0.5, "1e-3": 0.001, "0.00001": 0.00001,
    "'8.0'": "8.0", "'yes'": "yes", '"2026-01-01"': "2026-01-01", "'<<'": "<<",
    "true": True, "False": False, "NULL": None, "~": None, "": None,
    "1.2.3": "1.2.3", "10Gi": "10Gi", "1:30": "1:30", "2026-01": "2026-01", "=": "=",
    "[&x {b: 1}, *x]": [{"b": 1}, {"b": 1}],
    "|\n  b\n  c\n": "b\nc\n", ">-\n  b\n  c": "b c", "b\n  c": "b c", '"\\tb\\u2028"': "\tb\u2028",
    "{'1': b, 'yes': c}": {"1": "b", "yes": "c"},
}  # fmt: skip


@for_each(("stated", "told"), REFUSED.items(), ids=map(repr, REFUSED))
def test_a_form_that_programs_read_differently_is_refused_with_its_place(
    stated: str, told: str
) -> None:
    with pytest.raises(ProjectError) as refused:
        parse_mapping(f"a: {stated}\n", "f.yaml")
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


@for_each(("stated", "value"), READ.items(), ids=map(repr, READ))
def test_a_form_that_all_programs_read_alike_is_read(stated: str, value: object) -> None:
    read = parse_mapping(f"a: {stated}\n", "f.yaml")["a"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("%YAML 1.1\n---\na: 1\n", "f.yaml:1:1: has a directive, which not every program reads"),
        ("%TAG ! tag:x,1:\n---\na: 1\n", "f.yaml:1:1: has a directive"),
        ("a: 1\n---\nb: 1\n", "f.yaml:2:1: has a second document after ---"),
        ("a: 1\n...\nb: 1\n", "f.yaml:"),
        ("!!map\na: 1\n", "f.yaml:1:1: has the tag"),
        ("\ufeff\ufeffa: 1\n", "f.yaml:1:1: contains the character U+FEFF"),
        ("a: 1\na: 2\n", "f.yaml:2:1: states 'a' twice in one map"),
        ("a:\n\tb: 1\n", "f.yaml:2:1: is not valid YAML"),
    ],
)
def test_a_document_that_programs_read_differently_is_refused(text: str, told: str) -> None:
    with pytest.raises(ProjectError) as refused:
        parse_mapping(text, "f.yaml")
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    "text", ["a: 1\r\nb: |\r\n  c\r\n  d\r\n", "\ufeffa: 1\nb: |\n  c\n  d\n"], ids=["CRLF", "BOM"]
)
def test_line_ends_of_windows_and_one_mark_of_byte_order_are_read(text: str) -> None:
    assert parse_mapping(text, "f.yaml") == {"a": 1, "b": "c\nd\n"}


JSON = {
    '{"a": 1, "b": {"c": 1,\n "c": 2}}': "f.json:2:2: states 'c' twice in one map",
    '{"a": 1,\n"\\u0061": 2}': "f.json:2:1: states 'a' twice in one map",
    '{"a":\n 8.0}': f"f.json:2:2: has the number 8.0, {NUMBER}",
    '{"a": [1e1]}': f"f.json:1:8: has the number 1e1, {NUMBER}",
    '{"a": -0}': f"f.json:1:7: has the number -0, {NUMBER}",
    '{"a": 9007199254740993}': f"f.json:1:7: has the number 9007199254740993, {NUMBER}",
    '{"a": NaN}': f"f.json:1:7: has the number NaN, {NUMBER}",
    '{"a": -Infinity}': f"f.json:1:7: has the number -Infinity, {NUMBER}",
    '{"a": "\\ud800"}': "f.json:1:7: has half of a surrogate pair, which is not a character",
    '{"\\udc00": 1}': "f.json:1:2: has half of a surrogate pair",
}


@pytest.mark.parametrize(("text", "told"), JSON.items(), ids=JSON)
def test_json_that_programs_read_differently_is_refused_with_its_place(
    text: str, told: str
) -> None:
    with pytest.raises(ProjectError) as refused:
        parse_mapping(text, "f.json")
    assert str(refused.value).startswith(told)


def test_other_json_is_read() -> None:
    text = (
        '\ufeff{"a": [1, 0.5, -3, {"b": {}, "c": "\\ud83d\\ude00 8.0 {\\"a\\": 1e1}"}], "b": null}'
    )
    assert parse_mapping(text, "f.json") == json.loads(text.removeprefix("\ufeff"))


def test_a_kustomization_may_have_what_kubernetes_reads() -> None:
    text = "a: yes\nb: 8.0\nc: 2026-01-01\n"
    assert parse_kube_map(text, "k.yaml") == {"a": True, "b": 8.0, "c": "2026-01-01"}
