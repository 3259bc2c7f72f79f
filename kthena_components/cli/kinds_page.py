"""Writes docs/kinds.md from what the systems say: `python -m kthena_components.cli.kinds_page`."""

import sys
from collections.abc import Iterator
from typing import Any

from kthena_components.systems import all_systems
from kthena_components.systems.contract import Kind

_HEAD = """# Kinds

The kinds of objects that `check`, the policies and `ci/review` check, whoever wrote them. Services,
Secrets, PersistentVolumeClaims, Nodes and autoscalers are compared with them. Objects of other
kinds are counted and not checked.

- *engines*: command lines, sizes and GPUs of the engines in it are judged by the rules over
  [any serving](policies.md#any-serving-whoever-wrote-it).
- *own rules*: rules of the kind itself, such as what its admission webhook refuses.
- *pods*: rules over all objects of a cluster see its pods: Secrets, claims, gangs, GPU budgets.
- *templates*: the fields of its pod templates are checked against Kubernetes' schema.
- *updates*: a review says how its pods restart, and what a surge needs.

<!-- Written by `make policies-docs` from kthena_components/systems. Change it there. -->

| kind | API group | engines | own rules | pods | templates | updates |
|---|---|---|---|---|---|---|
"""
_TAIL = """## Other kinds

An object of any other kind that starts an engine or asks for several GPUs is listed as not checked
([kind-read](policies.md#kind-read)), with its kind. [limits.md](limits.md) says what this finds.
"""
_YES, _NO = "✓", ""


def render() -> str:
    """Write the page."""
    table = "".join(f"{row}\n" for row in _rows())
    return f"{_HEAD}{table}\n" + "\n".join(_reasons()) + f"\n\n{_TAIL}"


def _kinds() -> Iterator[Kind[Any]]:
    for system in all_systems():
        judged = (kind for kind in system.kinds if kind.is_judged)
        yield from sorted(judged, key=lambda kind: kind.group_kind)


def _rows() -> Iterator[str]:
    for kind in _kinds():
        pods = "✓" if kind.pods else "GPUs" if kind.kept and kind.facts else _NO
        own = str(len(kind.rules)) if kind.rules else _NO
        cells = (
            kind.name,
            kind.group or "core",
            _YES if kind.facts else _NO,
            own,
            pods,
            _YES if kind.templates else _NO,
            _YES if kind.restarts or kind.rollouts else _NO,
        )
        yield f"| {' | '.join(cells)} |"


def _reasons() -> Iterator[str]:
    """Give what is left out, and why."""
    yield "What is left out, and why:\n"
    for kind in _kinds():
        for field, reason in kind.without.items():
            yield f"- {kind.name} ({kind.group or 'core'}), {field}: {reason}."


if __name__ == "__main__":
    sys.stdout.write(render())
