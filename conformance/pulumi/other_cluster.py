"""An old state on a new cluster: `up` says so, and `up --refresh` creates everything there."""

from pathlib import Path

from conformance.report import Part
from kthena_components.resources._cluster_objects import OF_ANOTHER_CLUSTER as RULE
from sandbox.cluster import Sandbox
from tests.pulumi.lives import replace_images
from tests.support.engine import ROOT, Run, Stack

SOURCES = {"sandbox": ROOT, "dev": ROOT / "examples" / "ten-lines"}
"""A stack file, and a program of a user with the default provider; by the name of the stack."""


def move(part: Part, old: Sandbox, new: Sandbox, folder: Path) -> None:
    """Deploy to one cluster, and then to another one with the same state."""
    for name, source in SOURCES.items():
        stack = Stack.make(source, name, folder / name, _variables(old))
        created = stack.up()
        _silent(part, f"{name}: first up", created)
        _silent(part, f"{name}: up again", stack.up())
        stack.variables |= _variables(new)
        for what, run in (("preview", stack.preview()), ("up", stack.up())):
            told = [text for text in run.messages if f"[{RULE}]" in text]
            part.check(f"{name}: {what} on another cluster says so once",
                       holds=run.code == 0 and len(told) == 1, seen=run.text[-2000:])  # fmt: skip
        refreshed = stack.up("--refresh")
        _silent(part, f"{name}: up --refresh", refreshed)
        part.check(f"{name}: up --refresh creates everything",
                   holds=refreshed.changes.get("create") == _objects(created),
                   seen=refreshed.changes)  # fmt: skip
        _silent(part, f"{name}: preview after it", stack.preview())
        replace_images(stack)
        _silent(part, f"{name}: preview of another image", stack.preview())
        _silent(part, f"{name}: another image", stack.up())
        _silent(part, f"{name}: destroy", stack.destroy())


def _variables(sandbox: Sandbox) -> dict[str, str]:
    return {"KUBECONFIG": str(sandbox.layout.kubeconfig)}


def _objects(run: Run) -> int:
    kinds = [step.type for step in run.steps if step.op == "create"]
    return sum(kind.startswith("kubernetes:") for kind in kinds)


def _silent(part: Part, what: str, run: Run) -> None:
    part.check(f"{what} succeeds", holds=run.code == 0, seen=run.text[-2000:])
    part.check(f"{what} names no other cluster", holds=RULE not in run.text, seen=run.text[-2000:])
