"""Previews as Pulumi's engine tells them, cut down to what a review reads."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

Body = dict[str, Any]
STACK = "urn:pulumi:prod::shop::pulumi:pulumi:Stack::shop-prod"
SERVING = "urn:pulumi:prod::shop::kthena:index:ModelServing::serving/llama"
PART = "kthena:index:ModelServing$kthena:index:ServingGroup$kthena:index:Role"
TOKEN = "hf_a-token-that-nobody-may-see"  # noqa: S105 - opens nothing


def urn(kind: str, name: str, parents: str = "") -> str:
    """Write a URN of the stack."""
    return f"urn:pulumi:prod::shop::{f'{parents}$' if parents else ''}{kind}::{name}"


def row(**changes: Any) -> Body:
    """Give the row of a role: TP 8 × PP 2 on 2 pods of 8 GPUs."""
    return {
        "serving": "llama", "namespace": "serving", "role": "serve", "backend": "native",
        "groups": 1, "engines": 1, "pods": 2, "gpus_per_pod": 8, "tensor": 8, "pipeline": 2,
        "data": 1, "world_size": 16, "gpus": 16, **changes,
    }  # fmt: skip


def serving(before: Iterable[Body] | None, after: Iterable[Body] | None) -> Body:
    """Give the step of a component with its rows."""
    op = "create" if before is None else "delete" if after is None else "update"
    old, new = (None if rows is None else {"shape": list(rows)} for rows in (before, after))
    return step(op, SERVING, old, new)


def step(
    op: str, of: str, old: Body | None, new: Body | None, diff: Mapping[str, str] | None = None
) -> Body:
    """Give one step."""
    return {"op": op, "urn": of, "old": old, "new": new, "diff": dict(diff or {})}


def violation(text: str, of: str, level: str = "mandatory") -> Body:
    """Give an event of our policy pack."""
    return {
        "policyEvent": {
            "resourceUrn": of,
            "message": f"<{{%reset%}}>A description.\n{text}\n<{{%reset%}}>",
            "policyName": "serving-rules",
            "enforcementLevel": level,
        }
    }


def message(text: str, severity: str = "error", **more: Any) -> Body:
    """Give an event of something that the program or the engine said."""
    return {"diagnosticEvent": {"message": f"{text}\n", "severity": severity, **more}}


def events(*told: Body, result: str | None = "succeeded", packs: int = 1) -> str:
    """Write what --event-log writes. A result of None: the engine came to no end."""
    lines: list[Body] = [{"preludeEvent": {"config": {"shop:token": TOKEN}}}]
    lines += [item if "op" not in item else _event(item) for item in told]
    if result is not None:
        used = {f"pack-{number}": "1" for number in range(packs)}
        lines.append({"summaryEvent": {"result": result, "PolicyPacks": used}})
    numbered = ({"sequence": number, **line} for number, line in enumerate(lines))
    return "".join(f"{json.dumps(line)}\n" for line in numbered)


def document(*steps: Body, diagnostics: Iterable[Body] = ()) -> str:
    """Write what --json writes."""
    told = [item["diagnosticEvent"] for item in diagnostics]
    listed = [
        {
            "op": item["op"],
            "urn": item["urn"],
            "oldState": _state(item["old"]),
            "newState": _state(item["new"]),
            "detailedDiff": _diff(item),
        }
        for item in steps
    ]
    config = {"shop:token": TOKEN}
    body = {"config": config, "steps": listed, "diagnostics": told, "changeSummary": {}}
    return json.dumps(body, indent=4)


def _event(item: Body) -> Body:
    metadata = {
        "op": item["op"],
        "urn": item["urn"],
        "old": _state(item["old"]),
        "new": _state(item["new"]),
        "detailedDiff": _diff(item, "diffKind"),
    }
    return {"resourcePreEvent": {"metadata": metadata}}


def _state(inputs: Body | None) -> Body | None:
    return None if inputs is None else {"inputs": inputs, "outputs": inputs}


def _diff(item: Body, word: str = "kind") -> Body | None:
    return {path: {word: kind} for path, kind in item["diff"].items()} or None


SET = urn("kubernetes:apps/v1:StatefulSet", "serving/llama-0-serve-0", PART)
WORKERS = urn("kubernetes:apps/v1:StatefulSet", "serving/llama-0-serve-0-w", PART)


def cells(text: str, first: str) -> list[str]:
    """Give the cells of the line of a table that begins with a string."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {first} "))
    return [cell.strip() for cell in line.strip("|").split("|")]
