"""What an object is: read as kubectl reads it, or an error, but never passed over.

What kubectl reads was found with its own code: apimachinery v0.34.0 and sigs.k8s.io/yaml v1.6.0.
"""

from collections.abc import Iterator

import pytest

from kthena_components.cli.sources import objects_of
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable

POD = ("v1", "Pod")
SAME = [
    "apiVersion: v1\nkind: Pod",
    "kind : 'Pod'\n? apiVersion\n: v1",
    'apiVersion: v1\n"\\x6bind": "Po\\u0064"',
    "apiVersion: v1\nkind: !!str Pod",
    "!!map\napiVersion: v1\nkind: Pod",
    "x: &k Pod\napiVersion: v1\nkind: *k",
    "x: &k kind\napiVersion: v1\n*k : Pod",
    "<<: {apiVersion: v1, kind: Pod}",
    "x: &a {apiVersion: v1, kind: Pod}\n<<: *a",
    "<<: [{kind: Pod}, {kind: Node, apiVersion: v1}]",
    "<<: {<<: {apiVersion: v1, kind: Pod}}",
]
"""kubectl reads a Pod, and so do we."""
DOUBTFUL = [
    "apiVersion: v1\nkind: !!binary UG9k",
    "apiVersion: v1\nkind: !x Pod",
    "apiVersion: v1\n!!binary a2luZA==: Pod",
    "apiVersion: v1\n!x kind: Pod",
    "apiVersion: !!binary djE=\nkind: Pod",
    "apiVersion: v1\nkind: Node\nkind: Pod",
    "apiVersion: v1\nkind: Node\n<<: {kind: Pod}",
    "<<: {kind: Node}\napiVersion: v1\nkind: Pod",
]
"""kubectl reads a Pod, and kustomize or another program does not."""
REFUSED = [
    "apiVersion: v1\nkind: 8",
    "apiVersion: v1\nkind: yes",
    "apiVersion: v1\nkind: ~",
    "apiVersion: v1\nkind: ''",
    "apiVersion: v1\nkind: [Pod]",
    "apiVersion: 1.0\nkind: Pod",
    "apiVersion: v1\nKind: Pod",
    "APIVERSION: v1\nkind: Pod",
    '{"apiVersion": "v1", "kind": 8}',
    '{"apiVersion": "v1", "KIND": "Pod"}',
]
"""kubectl refuses the document, because it finds no kind or no apiVersion."""
LISTS: dict[str, bool] = {
    "kind: List\nitems: [{apiVersion: v1, kind: Pod}]": True,
    "kind: PodList\nitems: [{metadata: {}}]": True,
    # kubectl takes any object with items for a list.
    "kind: ConfigMap\nitems: [{apiVersion: v1, kind: Pod}]": True,
    "kind: ConfigMap\ndata: {}\nitems:\n- apiVersion: v1\n  kind: Pod": True,
    "kind: ConfigMap\n<<: {items: [{apiVersion: v1, kind: Pod}]}": True,
    "kind: List\nitems: [{kind: List, apiVersion: v1, items: [{apiVersion: v1, kind: Pod}]}]": True,
    "kind: List\nitems: [{apiVersion: v1, kind: !!binary UG9k}]": True,
    "kind: List\nitems: [{apiVersion: v1, !!binary a2luZA==: Pod}]": True,
    "kind: List\nitems: [{apiVersion: v1, kind: 8}]": False,
    "kind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: 1, kind: Pod}]}]": False,
}


def is_wanted(_version: object, kind: object, _text: str) -> bool:
    return kind in ("Pod", "List")


def found(text: str, file: str = "a.yaml") -> Iterator[tuple[object, object] | Unreadable]:
    """Yield what is read of a string in which only Pods and lists are wanted."""
    for each in read_documents(text, file, is_wanted):
        if isinstance(each, Document):
            yield from ((o.body["apiVersion"], o.body["kind"]) for o in objects_of(each))
        else:
            yield each


@pytest.mark.parametrize("text", SAME)
def test_an_object_is_what_kubectl_reads(text: str) -> None:
    assert list(found(text)) == [POD]


@pytest.mark.parametrize("text", DOUBTFUL + REFUSED)
def test_an_object_that_programs_read_differently_is_an_error(text: str) -> None:
    (seen,) = found(text)
    assert isinstance(seen, Unreadable)
    assert seen.line is not None


@pytest.mark.parametrize(("rest", "is_read"), LISTS.items(), ids=LISTS)
def test_the_items_of_any_list_are_read_or_an_error(rest: str, is_read: bool) -> None:
    (seen,) = found(f"apiVersion: v1\n{rest}")
    assert seen == POD if is_read else isinstance(seen, Unreadable)


@pytest.mark.parametrize(
    "text",
    ["a: 1", "kind: 8", "Kind: x", "kind: ~\na: 1", "apiVersion: 3\na: 1", "[{apiVersion: v1}]",
     "8: x", "services: {<<: {a: 1}}", '{"kind": 8}', "yes: 1\n~: 2"],
)  # fmt: skip
def test_a_document_that_is_no_object_is_passed_over(text: str) -> None:
    assert not list(found(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: !!binary UG9k}", {"a": "Pod"}),
        ("{a: !!binary 'UG 9k'}", {"a": "Pod"}),
        ("{!!binary YQ==: 1}", {"a": 1}),
        ("{a: !!timestamp 2026-01-01}", {"a": "2026-01-01"}),
        ("{<<: {a: 1}, a: 2}", {"a": 2}),
        ("{a: 1, <<: {a: 1, b: 2}}", {"a": 1, "b": 2}),
        ("{<<: [{a: 1}, {a: 2, b: 3}]}", {"a": 1, "b": 3}),
    ],
)
def test_a_value_is_what_kubectl_and_kustomize_read(text: str, value: object) -> None:
    (document,) = read_documents(f"apiVersion: v1\nkind: Pod\nspec: {text}", "a", lambda *_: True)
    assert isinstance(document, Document)
    assert document.body["spec"] == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # kubectl reads 2, kustomize 1.
        ("{a: 1, <<: {a: 2}}", "states 'a', and adds it by a merge key (<<) with another value"),
        ("{<<: {a: 1}, <<: {a: 2}}", "states 'a', and adds it by a merge key"),
        ("{!!merge x: {a: 2}}", "found a merge key with another name than <<"),
        ("{a: !!binary /w==}", "found !!binary without a string in base64"),
        ("{a: !!binary a}", "found !!binary without a string in base64"),
        ("{a: !!set {b}}", "could not determine a constructor for the tag"),
        ("{a: !!omap [b: 1]}", "could not determine a constructor for the tag"),
    ],
)
def test_a_value_that_programs_read_differently_is_an_error(text: str, told: str) -> None:
    (seen,) = read_documents(f"apiVersion: v1\nkind: Pod\nspec: {text}", "a", lambda *_: True)
    assert isinstance(seen, Unreadable)
    assert told in seen.because
    assert seen.line == 3


BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 9)
)


@pytest.mark.parametrize("text", [f"{BOMB}<<: *a8", "&a\n<<: *a"], ids=["a bomb", "a circle"])
def test_merge_keys_at_the_top_are_limited(text: str) -> None:
    (seen,) = found(text)
    assert isinstance(seen, Unreadable)
