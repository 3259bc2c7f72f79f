"""No bytes make the command raise, and reading quickly reads the same as PyYAML does."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kthena_components.cli.check.files import CheckOptions, check
from kthena_components.cli.check.results import Summary
from kthena_components.cli.sources import KubeObject
from kthena_components.reading.documents import Document, _pieces, read_documents
from kthena_components.reading.files import Unreadable
from tests.cli.conftest import Write
from tests.support.for_each import for_each
from tests.support.manifests import RIGHT, WRONG, pod

ROOT = Path(__file__).parent.parent.parent
CONTAINER = "spec.template.roles[0].entryTemplate.spec.containers[0]"
SCRAPS = ["\n---\n", "\n...\n", "%YAML 1.1\n", "&a ", "*a", "<<: ", "{", "}", "[", "]", "- ", "? "]
SCRAPS += ["!!set ", "!!timestamp ", "!!int ", "!!binary ", "\ufeff", "\x85", "\u2028", "\t", "'"]
TEXTS = st.lists(st.sampled_from(SCRAPS) | st.text(max_size=4), max_size=12).map("".join)


def read(text: str, file: str = "a.yaml") -> list[Any]:
    """Read every document, and give the values."""
    documents = list(read_documents(text, file, lambda *_: True))
    assert all(isinstance(document, Document) for document in documents), documents
    return [document.body for document in documents if isinstance(document, Document)]


@pytest.mark.property
@given(cut=st.integers(0, len(WRONG)), inserted=TEXTS, kept=st.integers(0, len(WRONG)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_text_makes_the_command_raise(write: Write, cut: int, inserted: str, kept: int) -> None:
    for name in ("a.yaml", "a.json"):
        path = write(name, WRONG[:cut] + inserted + WRONG[kept:])
        summary = Summary()
        results = list(check([str(path)], CheckOptions(), summary))
        assert summary.files == 1
        assert summary.unreadable == sum(isinstance(result, Unreadable) for result in results)


@pytest.mark.property
@given(data=st.binary(max_size=64))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_bytes_make_the_command_raise(write: Write, data: bytes) -> None:
    path = write("a.yaml", pod().encode() + data)
    list(check([str(path)], CheckOptions(), Summary()))


@pytest.mark.parametrize("line", ["# a\n", "\n", " \n", "---\n", "a\n---\n", "...\n", "%A\n"])
def test_cutting_a_text_into_documents_takes_linear_time(line: str) -> None:
    text = f"{line * 50_000}x\n---\nx"
    begun = time.process_time()
    assert sum(1 for _ in _pieces(text)) <= 50_002
    assert time.process_time() - begun < 2


@for_each(
    "path",
    sorted(ROOT.glob("tests/goldens/*/*.yaml")),
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_goldens_are_read_as_pyyaml_reads_them(path: Path) -> None:
    text = path.read_text()
    assert read(text) == [body for body in yaml.safe_load_all(text) if body is not None]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 1),
        ("spec", 6),
        ("spec.template.roles", 9),
        ("spec.template.roles[0]", 10),
        ("spec.template.roles[0].workerReplicas", 11),
        ("spec.template.roles[7].name", 9),
        ("spec.template.roles[0].missing.deeper", 10),
        (f"{CONTAINER}.resources.limits", 18),
        (f"{CONTAINER}.resources.limits.nvidia.com/gpu", 18),
        ("spec.template.roles[x]]..", 9),
    ],
)
def test_a_path_leads_to_its_line_or_the_nearest_around_it(path: str, line: int) -> None:
    (document,) = read_documents(RIGHT, "a.yaml", lambda *_: True)
    assert isinstance(document, Document)
    item = KubeObject(body=document.body, line=document.line, node=document.node)
    assert item.line_of(path) == line
