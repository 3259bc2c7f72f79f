"""Whatever is converted can be written in every form, and reads back as what it was."""

import ast
import json

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components.cli.converted import (
    objects_of,
    write_program,
    write_stack,
    write_typescript,
    write_yaml,
)
from kthena_components.compiler.changes import SAME, Changes
from kthena_components.compiler.compile import compile_serving
from kthena_components.compiler.convert import convert
from kthena_components.core import naming
from kthena_components.languages import typescript
from kthena_components.languages.names import Names
from tests.support.crds import schema_errors
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
]


@law
@given(st.data())
def test_every_form_says_the_same(data: st.DataObject) -> None:
    backend = data.draw(st.sampled_from(["kthena", "lws", "matrixinfer"]))
    args = data.draw(servings(backend))
    text = data.draw(st.sampled_from(ODD) | st.text("abc'\"\\\n\t\x7f:", max_size=8))
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
    program = ast.parse(write_program(found.servings, 'it\'s "odd".yaml'))
    calls = [node.value for node in program.body if isinstance(node, ast.Expr)][1:]
    in_program = [ast.literal_eval(call.args[1]) for call in calls if isinstance(call, ast.Call)]
    assert in_program == stack["kthena-components:servings"]
    in_typescript = write_typescript(found.servings, "odd\n*/.yaml").split("\nnew kthena.")[1:]
    names, again = Names.of(naming.MODEL_SERVING), []
    for call in in_typescript:
        given = call.removeprefix("ModelServing(").rstrip().removesuffix(");")
        again.append(names.to_args(typescript.read(f"[{given}]")[1]))
    assert again == in_program
    for serving, read in zip(found.servings, in_program, strict=True):
        same = [manifest.body for manifest in serving.compiled.manifests]
        assert [manifest.body for manifest in compile_serving(read).manifests] == same
