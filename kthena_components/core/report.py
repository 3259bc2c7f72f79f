"""What is deployed, as rows and as a table. Numbers come from the plan's facts, never from text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts import (
    DeviceFacts,
    EngineFacts,
    PodFacts,
    ServingFacts,
    as_count,
    as_list,
    as_map,
    facts_from_plan,
)
from kthena_components.core.known import MaybeInt, Unknown
from kthena_components.core.plan import ServingPlan

_UNKNOWN = "?"


def shape(plan: ServingPlan) -> list[dict[str, Any]]:
    """Give one row for each role: its engines, pods, GPUs and parallelism.

    `engines`, `pods` and `gpus` are totals over all groups. A value that is not known is "?".
    """
    engines = facts_from_plan(plan).engines
    return [_row(plan, engine) for engine in engines]


def _row(plan: ServingPlan, engine: EngineFacts) -> dict[str, Any]:
    command = engine.entry.command
    counts = plan.groups * int(engine.replicas if isinstance(engine.replicas, int) else 0)
    pods = engine.pods if isinstance(engine.pods, int) else 0
    held = _gpus_of_engine(engine)
    return {
        "serving": plan.name,
        "namespace": plan.namespace,
        "role": engine.name,
        "backend": plan.backend,
        "groups": plan.groups,
        "engines": counts,
        "pods": counts * pods,
        "gpus_per_pod": _shown(engine.entry.gpus),
        "tensor": _shown(command.tensor) if command else _UNKNOWN,
        "pipeline": _shown(command.pipeline) if command else _UNKNOWN,
        "data": _shown(command.data) if command else _UNKNOWN,
        "world_size": _shown(command.world) if command else _UNKNOWN,
        "gpus": _UNKNOWN if held is None else counts * held,
    }


def read_shape(props: Mapping[str, Any]) -> ServingFacts:
    """Read the facts of a component from the rows that it registers: the inverse of `shape`."""
    rows = [as_map(item) for item in as_list(props.get("shape"))]
    engines = tuple(_engine(row, f"shape[{index}]") for index, row in enumerate(rows))
    return ServingFacts(
        path="", name=str(props.get("name", "")), engines=engines, gang_expected=True
    )


def _engine(row: Mapping[str, Any], path: str) -> EngineFacts:
    def count(key: str) -> MaybeInt:
        shown = None if row.get(key) == _UNKNOWN else row.get(key)
        return as_count(shown, key, 0) if shown is not None else Unknown(f"{key} is not known")

    engines, pods, gpus = count("engines"), count("pods"), count("gpus_per_pod")
    command = CommandFacts(
        engine=None if row.get("tensor") == _UNKNOWN else "engine",
        tensor=count("tensor"),
        pipeline=count("pipeline"),
        data=count("data"),
    )
    device = DeviceFacts(path=path, container="", resource="gpu", limit=gpus, request=gpus)
    whole = isinstance(engines, int) and isinstance(pods, int) and engines > 0
    return EngineFacts(
        path=path,
        name=str(row.get("role", "")),
        pods=pods // engines if whole else Unknown("there are no engines"),
        replicas=engines,
        entry=PodFacts(devices=(device,), command=command, gpus_path=path, command_path=path),
        worker=None,
    )


def _gpus_of_engine(engine: EngineFacts) -> int | None:
    entry, pods = engine.entry.gpus, engine.pods
    worker = engine.worker.gpus if engine.worker else 0
    if isinstance(entry, int) and isinstance(worker, int) and isinstance(pods, int):
        return entry + (pods - 1) * worker
    return None


def _shown(value: object) -> Any:
    return _UNKNOWN if isinstance(value, Unknown) else value


def gpu_count(rows: Iterable[dict[str, Any]]) -> int:
    """Sum the GPUs of rows, leaving out the ones that are not known."""
    return sum(row["gpus"] for row in rows if isinstance(row["gpus"], int))


def render_table(plans: Sequence[ServingPlan], style: str = "simple") -> str:
    """Write the table that `up` shows: one line for each role, and the total.

    Args:
        plans: the servings of a stack.
        style: a table format of tabulate, such as `simple` or `github`.
    """
    rows = [row for plan in plans for row in shape(plan)]
    cells = [
        [
            row["serving"], row["role"], row["groups"], row["engines"], row["pods"],
            row["gpus_per_pod"], _parallelism(row), row["world_size"], row["gpus"], row["backend"],
        ]
        for row in rows
    ]  # fmt: skip
    headers = [
        "serving", "role", "groups", "engines", "pods", "GPUs/pod", "TP × PP × DP", "world", "GPUs",
        "backend",
    ]  # fmt: skip
    pods = sum(row["pods"] for row in rows)
    total = ["total", "", "", "", pods, "", "", "", gpu_count(rows), ""]
    return tabulate([*cells, total], headers=headers, tablefmt=style, disable_numparse=True)


def _parallelism(row: dict[str, Any]) -> str:
    return f"{row['tensor']} × {row['pipeline']} × {row['data']}"
