"""What is passed over without parsing it, and that a parser would have passed it over as well."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kthena_components.cli.sources import is_wanted
from kthena_components.reading import documents
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable
from kthena_components.reading.identity import Head, identity, read_head
from kthena_components.reading.loader import Loader
from tests.support.for_each import for_each

CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
BODY = "metadata:\n  name: a\nspec:\n  names:\n    kind: A\n"
FOUND = Head(version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition", line=0)

CLEAR = {
    "nothing else": (CRD, 0),
    "no line feed at the end": (CRD.rstrip(), 0),
    "a body": (CRD + BODY, 0),
    "the kind first": ("".join(reversed(CRD.splitlines(keepends=True))) + BODY, 0),
    "a marker": (f"---\n{CRD}{BODY}", 1),
    "a marker with a comment": (f"---  # a\n{CRD}{BODY}", 1),
    "comments and empty lines": (f"# a\n\n  # b\n---\n\n#c\n{CRD}\n# d\n{BODY}", 6),
    "a comment between": (CRD.replace("\nkind", "\n # a\n\nkind") + BODY, 0),
    "comments behind": (CRD.replace("\n", "  # a\n") + BODY, 0),
    "double quotes": (CRD.replace(": ", ': "').replace("\n", '"\n') + BODY, 0),
    "single quotes": (CRD.replace(": ", ":  '").replace("\n", "' \n") + BODY, 0),
    "a list in the first column": (f"{CRD}list:\n- kind: Pod\n-\n  kind: Pod\n", 0),
    "a kind inside": (f"{CRD}spec:\n  kind: Pod\n  apiVersion: v1\n", 0),
    "a kind in a string": (f"{CRD}text: |\n  kind: Pod\n\n  apiVersion: v1\n", 0),
    "a kind in a comment": (f"{CRD}# kind: Pod\n{BODY}", 0),
    "anchors and tags inside": (f"{CRD}spec:\n  a: &a !!str 1\n  b: *a\n  <<: {{}}\n", 0),
    "brackets inside": (f"{CRD}spec: {{a: [1,\n  2]}}\n", 0),
    "templates inside": (f"{CRD}spec:\n  a: {{{{ .Values.a }}}}\n", 0),
}
DOUBTFUL = {
    "nothing": "",
    "text": "a",
    "JSON": '{"apiVersion": "v1", "kind": "Node"}',
    "JSON as a value": f"--- {{a: 1}}\n{CRD}",
    "flow style": "{\napiVersion: v1,\nkind: Node\n}",
    "an indented map": " apiVersion: v1\n kind: Node\n",
    "an indented map around a string": ' a: "\napiVersion: v1\nkind: Node\n"\n kind: Pod\n',
    "a string before": f'a: "\n{CRD}"\n',
    "another key before": f"metadata:\n  name: a\n{CRD}",
    "no kind": "apiVersion: v1\nmetadata: {}\n",
    "no version": "kind: Node\nmetadata: {}\n",
    "another key between": CRD.replace("\nkind", "\nmetadata: {}\nkind"),
    "a kind twice": f"{CRD}{BODY}kind: Pod\n",
    "the same kind twice": f"{CRD}{BODY}kind: CustomResourceDefinition\n",
    "a version twice": f"{CRD}{BODY}apiVersion: v1\n",
    "a kind twice, spaced": f"{CRD}{BODY}kind : Pod\n",
    "a kind twice, in quotes": f'{CRD}{BODY}"kind": Pod\n',
    "a kind twice, escaped": f'{CRD}{BODY}"\\x6bind": Pod\n',
    "a kind twice, explicitly": f"{CRD}{BODY}? kind\n: Pod\n",
    "a kind twice, tagged": f"{CRD}{BODY}!!str kind: Pod\n",
    "a kind twice, anchored": f"{CRD}{BODY}&a kind: Pod\n",
    "a kind by an alias": f"{CRD}a: &a kind\n*a : Pod\n",
    "a kind after another line break": f"{CRD}a: b\u2028kind: Pod\n",
    "a kind after a carriage return": f"{CRD}a: b\rkind: Pod\n",
    "a kind after a next line": f"{CRD}a: b\x85kind: Pod\n",
    "a mark of byte order": f"\ufeff{CRD}",
    "a merge": f"{CRD}<<: {{kind: Pod}}\n",
    "a tag": CRD.replace("Custom", "!!str Custom"),
    "an anchor": CRD.replace("Custom", "&a Custom"),
    "an alias": "a: &a Node\napiVersion: v1\nkind: *a\n",
    "a block scalar": "apiVersion: v1\nkind: |-\n  Node\n",
    "a value in the next line": "apiVersion: v1\nkind:\n  Node\n",
    "a value that goes on": "apiVersion: v1\nkind: Node\n  Pool\n",
    "a value that goes on after an empty line": "apiVersion: v1\nkind: Node\n\n  Pool\n",
    "a value that goes on in between": "apiVersion: v1\n  1\nkind: Node\n",
    "a value with an escape": 'apiVersion: v1\nkind: "Nod\\x65"\n',
    "a quote that is not closed": 'apiVersion: v1\nkind: "Node\n"\n',
    "a comment that is none": "apiVersion: v1\nkind: Node#a\n",
    "a null": "apiVersion: v1\nkind: ~\n",
    "a template as a value": "apiVersion: v1\nkind: {{ .Values.kind }}\n",
    "a template in the first column": f"{CRD}{{{{- if .Values.a }}}}\n{BODY}{{{{- end }}}}\n",
    "a conflict": f"{CRD}<<<<<<< HEAD\nspec: 1\n=======\nspec: 2\n>>>>>>> a\n",
    "a directive": f"%YAML 1.1\n---\n{CRD}",
    "an anchor of the document": f"--- &a\n{CRD}",
    "a tab": f"{CRD}\tspec: 1\n",
    "a tab in the first column": f"{CRD}spec:\n\tname: 1\n",
    "a string in the first column": f'{CRD}a: "\nb"\n',
}


@pytest.mark.parametrize(("text", "line"), CLEAR.values(), ids=CLEAR)
def test_a_head_is_found(text: str, line: int) -> None:
    head = read_head(text)
    assert head is not None
    assert (head.version, head.kind, head.line) == (FOUND.version, FOUND.kind, line)


@for_each("text", DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_is_in_doubt_is_left_to_the_parser(text: str) -> None:
    assert read_head(text) is None


def strictly(text: str) -> list[tuple[object, object, int]]:
    """Give apiVersion, kind and line of each document as a parser reads them."""
    loader: Any = Loader(text)
    try:
        found: list[tuple[object, object, int]] = []
        while loader.check_node():
            node = loader.get_node()
            found.append((*identity(node), node.start_mark.line))
        return found
    finally:
        loader.dispose()


KEYS = ["apiVersion: v1", "apiVersion: apps/v1", "kind: Pod", "kind: Node", "kind: List", "kind:"]
KEYS += ["kind: 'Pod'", 'kind: "Node"', '"kind": Pod', "kind : Pod", "? kind\n: Pod", "{kind: Pod}"]
KEYS += ["metadata:", "spec: {", "}", "a: [1,", "2]", "a: &a kind", "*a : Pod", "<<: *a", "- a"]
KEYS += ["- kind: Pod", "a: |", "a: >2", "a: '", "b'", 'a: "', 'b"', "# a", "", "---", "--- # a"]
KEYS += ["--- {", "!!map", "&a", "%YAML 1.1", "{{ a }}", "a", "\t", "? a", ": b", "a: - b"]
BREAKS = ["\n"] * 12 + ["\r\n", "\r", "\x85", "\u2028", "\n\n", " # a\n", " \n", "\n\ufeff", ""]
INDENTS = [""] * 6 + [" ", "  ", "    ", "\t", "- "]
LINES = st.tuples(*map(st.sampled_from, (INDENTS, KEYS, BREAKS))).map("".join)
TEXTS = st.lists(LINES, max_size=9).map("".join)
STARTS = st.sampled_from(["", CRD, "kind: Node\napiVersion: v1\n", "---\napiVersion: v1\n"])


def pieces(text: str) -> Iterator[str]:
    yield from (piece for piece, _ in documents._pieces(text))


@pytest.mark.property
@given(start=STARTS, rest=TEXTS)
@settings(deadline=None, max_examples=400)
@example(start="", rest="kind: Node\napiVersion: v1\na: {\nkind: Pod\n }")
def test_a_head_is_what_a_parser_finds(start: str, rest: str) -> None:
    for piece in pieces(start + rest):
        head = read_head(piece)
        if head is not None:
            try:
                found = strictly(piece)
            except (yaml.YAMLError, ValueError):
                continue
            assert found == [(head.version, head.kind, head.line)]


@pytest.mark.property
@given(start=STARTS, rest=TEXTS)
@settings(deadline=None, max_examples=200)
def test_what_is_passed_over_is_what_a_parser_would_pass_over(start: str, rest: str) -> None:
    """Of what a parser can read, the same is read, and told with the same lines."""
    text = start + rest

    def shown(found: Any) -> object:
        return found if isinstance(found, Unreadable) else (found.body, found.line, found.shift)

    with pytest.MonkeyPatch.context() as patch:
        quick = list(map(shown, read_documents(text, "a.yaml", is_wanted)))
        patch.setattr(documents, "read_head", lambda *_: None)
        strict = list(map(shown, read_documents(text, "a.yaml", is_wanted)))
    if not any(isinstance(found, Unreadable) for found in strict):
        assert quick == strict


def test_a_definition_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def loader(text: str) -> Loader:
        parsed.append(text)
        return Loader(text)

    monkeypatch.setattr(documents, "Loader", loader)
    text = f"---\n{CRD}{BODY}" * 5 + f"---\napiVersion: v1\nkind: Pod\n{BODY}"
    found = [d for d in read_documents(text, "a.yaml", is_wanted) if isinstance(d, Document)]
    assert len(parsed) == 1
    assert parsed[0].startswith("---\napiVersion: v1\nkind: Pod\n")
    assert [document.line for document in found] == [2, 10, 18, 26, 34, 42]


def test_a_wrong_document_is_told_unless_its_head_says_that_nobody_checks_it() -> None:
    broken = "spec: [\n"
    for head, told in ((CRD, 0), (f"# a\n{CRD}", 0), ("apiVersion: v1\nkind: Pod\n", 1),
                       ("apiVersion: v1\nkind: List\n", 1), ("apiVersion: v1\n", 1),
                       (f'"a": 1\n{CRD}', 1), (f"{CRD}kind: Pod\n", 1)):  # fmt: skip
        found = list(read_documents(f"{head}{broken}---\na: 1\n", "a.yaml", is_wanted))
        assert sum(isinstance(one, Unreadable) for one in found) == told, head
        assert len(found) == 2
