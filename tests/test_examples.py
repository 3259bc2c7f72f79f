"""examples/README.md says what each example makes."""

import ast
import re
import runpy
from pathlib import Path

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.report import gpu_count, shape
from tests.support.recorder import record

EXAMPLES = Path(__file__).parent.parent / "examples"
ROW = re.compile(r"\| \[([\w-]+)\]\(\1\) \| .*? \| (\d+) \| (\d+) \| (.*?) \|")
ROWS = {found[1]: found for found in ROW.finditer((EXAMPLES / "README.md").read_text())}
GENERATED = "secret-token"
"""Reads a name that only a cluster or the provider generates: tests/pulumi runs it."""
COUNTED = ("kthena:index:ModelServing", "kthena:index:ServingGroup", "kthena:index:Role")


def test_every_program_is_listed() -> None:
    assert set(ROWS) == {path.parent.name for path in EXAMPLES.glob("*/__main__.py")}


@pytest.mark.parametrize("name", sorted(set(ROWS) - {GENERATED}))
def test_an_example_makes_what_the_page_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / name)
    seen = record(lambda: runpy.run_path("__main__.py", run_name="__main__"))
    made = [each.outputs for each in seen.resources if each.type in COUNTED]
    pods, gpus = (sum(int(each.get(key, 0)) for each in made) for key in ("pod_count", "gpu_count"))
    kinds = sorted({r.kind for r in seen.resources if r.type.startswith("kubernetes:")})
    assert (str(pods), str(gpus), ", ".join(kinds)) == ROWS[name].groups()[1:]


def test_the_example_with_a_generated_name_is_counted_from_its_text() -> None:
    text = (EXAMPLES / GENERATED / "__main__.py").read_text()
    role = ast.literal_eval(re.findall(r"RoleArgs = (\{.*?\n\})", text, re.DOTALL)[0].replace(
        'token.metadata["name"]', '"generated"'))  # fmt: skip
    made = compile_serving({"name": "chat", "roles": [role], "expose": {"port": 80}})
    kinds = sorted({"Secret", *(manifest.kind for manifest in made.manifests)})
    pods, gpus = made.plan.pods, gpu_count(shape(made.plan))
    assert (str(pods), str(gpus), ", ".join(kinds)) == ROWS[GENERATED].groups()[1:]
