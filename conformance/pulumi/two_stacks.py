"""Two stacks describe one serving: a preview names the owner, and no update takes it over."""

from pathlib import Path
from typing import Any

from conformance.report import Part
from kthena_components.resources._cluster_objects import OF_ANOTHER_STACK as RULE
from sandbox.cluster import Sandbox
from tests.resources.test_rivals import SCALED
from tests.support.engine import ROOT, Stack
from tests.support.specs import ENGINE_RAY

SERVINGS: dict[str, Any] = {"native": ENGINE_RAY, "applied with force": {**SCALED, "replicas": 1}}
_FORCED = ("kubernetes:workload.serving.volcano.sh/v1alpha1:ModelServing",
           "kubernetes:apps/v1:StatefulSet")  # fmt: skip
PROGRAM = "from kthena_components import ModelServing\n\nModelServing('rivals', {args!r})\n"


def compete(part: Part, sandbox: Sandbox, folder: Path) -> None:
    """Deploy each serving, and then let another stack of the same program try it."""
    for name, args in SERVINGS.items():
        about = f"two stacks, {name}"
        owner, rival = (_stack(sandbox, folder / name / stack, stack, args)
                        for stack in ("owner", "rival"))  # fmt: skip
        first = owner.up()
        part.check(f"{about}: up", holds=first.code == 0, seen=first.text[-2000:])
        seen = rival.preview()
        part.check(f"{about}: a preview of the other one names the owner",
                   holds=seen.code == 0 and RULE in seen.text and "/owner " in seen.text,
                   seen=seen.text[-2000:])  # fmt: skip
        tried = rival.up()
        part.check(f"{about}: its update fails", holds=tried.code != 0, seen=tried.text[-2000:])
        touched = [step for step in tried.steps if step.type in _FORCED]
        part.check(f"{about}: before it touches the pods", holds=not touched, seen=touched)
        rival.destroy().require()
        for what, run in (("preview", owner.preview()), ("up", owner.up("--refresh"))):
            same = run.code == 0 and set(run.changes) == {"same"} and RULE not in run.text
            part.check(f"{about}: {what} of the owner has nothing to do", holds=same, seen=run.text)
        owner.destroy().require()


def _stack(sandbox: Sandbox, folder: Path, name: str, args: Any) -> Stack:
    folder.mkdir(parents=True)
    variables = {"KUBECONFIG": str(sandbox.layout.kubeconfig)}
    stack = Stack.make(ROOT / "examples" / "ten-lines", name, folder, variables)
    (stack.project / "__main__.py").write_text(PROGRAM.format(args=args))
    return stack
