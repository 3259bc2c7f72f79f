"""Whatever is converted can be written in every form, and reads back as what it was."""

import ast
import json
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components import languages
from kthena_components.cli.convert.output import (
    ProofError,
    objects_of,
    write_program,
    write_stack,
    write_typescript,
    write_yaml,
)
from kthena_components.cli.review.stack_file_settings import stack_values
from kthena_components.compiler.compile import compile_serving
from kthena_components.convert.conversion import SAME, Changes, Converted
from kthena_components.convert.convert import convert
from kthena_components.core import naming
from kthena_components.languages import Names
from kthena_components.reading.project import Project
from tests.support.crds import schema_errors
from tests.support.for_each import for_each
from tests.support.strategies import law, servings

pytestmark = [pytest.mark.property]
ODD = [
    "yes",
    "y",
    "0o7",
    "08",
    "-.5",
    "1e3",
    "22:30",
    "=",
    "a: b",
    "# no",
    "two\nlines\n",
    " x ",
    "é\u2028\U0001f600",
    "2001-1-1 x",
    "2024-01-01",
    "1_0e03",
    "<<",
]
NUMBERS = [1.0, -0.0, 1e3, 0.5, 1e-7, 2**53]
UNSAID = {
    "\nset -e": "starts with a line break",
    "\u2028x": "starts with a line break",
    "\t\n": "has several lines and starts with a tab",
    2**53 + 1: "has the number 9007199254740993",
    1e22: "has the number 10000000000000000000000",
}
"""Values that no stack file can state, as Pulumi would pass others to the program."""


@law
@given(st.data())
def test_every_form_says_the_same(data: st.DataObject) -> None:
    backend = data.draw(st.sampled_from(["kthena", "lws", "matrixinfer"]))
    args = data.draw(servings(backend))
    text = data.draw(st.sampled_from(ODD) | st.text("abc'\"\\\n\t\x7f:", max_size=8))
    unsaid = text[:1] in set("\n\r\x85\u2028\u2029") or (text[:1] == "\t" and "\n" in text)
    assume(not unsaid)  # no stack file can state it: UNSAID
    for role in args["roles"]:
        if "entry_template" in role:
            role["entry_template"]["spec"]["containers"][0]["workingDir"] = text
    bodies = json.loads(json.dumps([m.body for m in compile_serving(args).manifests]))
    target = data.draw(st.sampled_from([SAME, "kthena", "lws", "matrixinfer", "native"]))
    found = convert(bodies, Changes(target=target))
    assume(not found.errors)
    written = [body for part in found.parts for body in objects_of(part)]
    assert list(yaml.safe_load_all(write_yaml(found.parts))) == written
    version = args.get("kthena_version", "1.0")
    assert [error for body in written for error in schema_errors(body, version)] == []
    stack = yaml.safe_load(write_stack(found.servings, "model.yaml"))["config"]
    assert as_review_reads(found.servings) == stack["kthena-components:servings"]
    program = ast.parse(write_program(found.servings, 'it\'s "odd".yaml'))
    calls = [node.value for node in program.body if isinstance(node, ast.Expr)][1:]
    in_program = [ast.literal_eval(call.args[1]) for call in calls if isinstance(call, ast.Call)]
    assert in_program == stack["kthena-components:servings"]
    in_typescript = write_typescript(found.servings, "odd\n*/.yaml").split("\nnew kthena.")[1:]
    names, again = Names.of(naming.MODEL_SERVING), []
    for call in in_typescript:
        given = call.removeprefix("ModelServing(").rstrip().removesuffix(");")
        again.append(names.to_args(languages.read(f"[{given}]")[1]))
    assert again == in_program
    for serving, read in zip(found.servings, in_program, strict=True):
        same = [manifest.body for manifest in serving.compiled.manifests]
        assert [manifest.body for manifest in compile_serving(read).manifests] == same


def as_review_reads(servings: Sequence[Converted]) -> list[Any]:
    project = Project(name="kthena-components")
    values = stack_values(write_stack(servings, "a.yaml"), "Pulumi.a.yaml", project)
    return list(values.own["servings"])


def _converted(**fields: object) -> Sequence[Converted]:
    entry = {"name": "e", "image": "i", "command": ["vllm", "serve", "m"], **fields}
    pod = {"spec": {"containers": [entry]}}
    role = {"name": "r", "replicas": 1, "entryTemplate": pod, "workerReplicas": 0}
    body = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": "m", "namespace": "n"},
        "spec": {"replicas": 1, "template": {"roles": [role]}},
    }
    found = convert([body], Changes(target=SAME))
    assert not found.errors
    return found.servings


def _args(value: object) -> Sequence[Converted]:
    return _converted(args=["a", value]) if isinstance(value, str) else _converted(odd=value)


@for_each("value", [*ODD, *NUMBERS], ids=repr)
def test_a_review_accepts_each_stack_file(value: object) -> None:
    found = _args(value)
    assert as_review_reads(found) == [json.loads(json.dumps(each.args)) for each in found]


@pytest.mark.parametrize("value", UNSAID, ids=repr)
def test_a_value_that_no_stack_file_can_state_is_named(value: object) -> None:
    field = r"args\[1\]" if isinstance(value, str) else "odd"
    with pytest.raises(ProofError, match=rf"containers\[0\]\.{field} {UNSAID[value]}.*python"):
        write_stack(_args(value), "a.yaml")


def test_a_map_that_pulumi_would_decrypt_is_named() -> None:
    with pytest.raises(ProofError, match=r"odd has only the key 'secure', .*decrypts.*python"):
        write_stack(_converted(odd={"secure": "v1:abc"}), "a.yaml")
