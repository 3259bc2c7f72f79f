"""Previews and updates a stack on KAITO, whose webhook looks up the ConfigMap of a Workspace."""

import json
from pathlib import Path
from typing import Any

from conformance.__main__ import Context
from conformance.kaito.cluster import SORTS
from conformance.kthena.emission import namespace
from kthena_components.systems.kaito.inference_config import PORT
from kthena_components.systems.kaito.limits_preset import IMAGE
from sandbox.cluster import Sandbox
from tests.support.engine import Run, Stack

SERVINGS = 20
_SPACE = "kaito-stack"
_MODEL, _PRESET = "microsoft/phi-4", "phi-4"
_PROGRAM = """
import json

import pulumi
from kthena_components import ModelServing

# Nothing runs, so nothing becomes ready.
soon = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="5s", update="5s"))
for name, args in json.loads({servings!r}).items():
    ModelServing(name, args, soon)
"""


def compare(context: Context, sandbox: Sandbox) -> None:
    """Deploy servings with ConfigMaps of their own, and preview other ConfigMaps.

    In a preview, the ConfigMaps do not exist yet. In an update, KAITO may not know them yet.
    """
    part, number = context.part, context.many(SERVINGS)
    namespace(sandbox.api, _SPACE)
    source, folder = context.folder / "kaito-program", context.folder / "kaito-stack"
    for one in (source, folder):
        one.mkdir()
    (source / "Pulumi.yaml").write_text("name: kaito\nruntime: python\n")
    _write(source / "__main__.py", number, tokens=4096)
    stack = Stack.make(source, "dev", folder, {"KUBECONFIG": str(sandbox.layout.kubeconfig)})
    first = stack.preview()
    part.check("the first preview succeeds", holds=first.code == 0, seen=_errors(first))
    run = stack.up("--continue-on-error")
    part.check("no webhook rejects an update", holds=not _denied(run), seen=_denied(run))
    made = len(list(sandbox.api.list("kaito.sh/v1beta1", "Workspace", _SPACE)))
    part.check("an update creates every Workspace", holds=made == number, seen=made)
    part.count("Workspaces created by an update", made)
    _write(stack.project / "__main__.py", number, tokens=8192)
    second = stack.preview()
    part.check(
        "a preview of other ConfigMaps succeeds", holds=not second.code, seen=_errors(second)
    )
    stack.destroy().require()


def _write(path: Path, number: int, *, tokens: int) -> None:
    servings = {f"chat-{n}": _serving(tokens + n) for n in range(number)}
    path.write_text(_PROGRAM.format(servings=json.dumps(servings)))


def _serving(tokens: int) -> dict[str, Any]:
    """Return a serving whose ConfigMap differs from those of others."""
    gpus = SORTS[0].gpus
    engine = {
        "kind": "vllm",
        "image": IMAGE,
        "model": _MODEL,
        "port": PORT,
        "parallelism": {"data": gpus},
        "extra_args": [f"--max-model-len={tokens}"],
    }
    role = {"name": "serve", "engine": engine, "resources": {"gpus_per_pod": gpus}}
    return {
        "backend": "kaito",
        "namespace": _SPACE,
        "backend_options": {"preset": _PRESET, "label_selector": SORTS[0].labels},
        "scheduler_name": "default-scheduler",
        "roles": [role],
    }


def _denied(run: Run) -> list[str]:
    return [line for line in run.text.splitlines() if "denied the request" in line]


def _errors(run: Run) -> list[str]:
    return [message for message in run.messages if "rror" in message or "failed" in message]
