"""Reports what is deployed, as rows and as a table. All numbers come from the plan's facts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, all_gpus_of, ranks_of
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count_or_unknown, mapping, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown, product

_UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What an object makes of one engine, over all copies."""

    engines: MaybeInt
    pods: MaybeInt
    gpus: MaybeInt


def shape(plan: ServingPlan) -> list[dict[str, Any]]:
    """Return one row for each role: its engines, pods, GPUs and parallelism.

    `engines`, `pods` and `gpus` are totals over all groups. An unknown value is "?".
    """
    return shape_of(
        facts_from_plan(plan), namespace=plan.namespace, backend=plan.backend, groups=plan.groups
    )


def shape_of(
    facts: ServingFacts,
    *,
    namespace: str,
    backend: str,
    groups: MaybeInt,
    counts: Sequence[Counts] | None = None,
) -> list[dict[str, Any]]:
    """Return one row for each engine of any serving, as `shape` does for a plan.

    Args:
        facts: Facts of the serving.
        namespace: Kubernetes namespace.
        backend: What runs it, in one word.
        groups: Number of copies of all its engines.
        counts: What the object makes of each engine; counted from the facts if left out.
    """
    stated = {"serving": facts.name, "namespace": namespace, "backend": backend}
    counts = [counts_of(e, groups) for e in facts.engines] if counts is None else counts
    found = zip(facts.engines, counts, strict=True)
    return [{**stated, **_row(engine, groups, made)} for engine, made in found]


def counts_of(engine: EngineFacts, copies: MaybeInt) -> Counts:
    """Count what is made of an engine, if each copy has all its replicas."""
    engines = product(copies, engine.replicas)
    pods, gpus = product(engines, engine.pods), product(engines, all_gpus_of(engine))
    return Counts(engines=engines, pods=pods, gpus=gpus)


def _row(engine: EngineFacts, groups: MaybeInt, made: Counts) -> dict[str, Any]:
    """Write the row of an engine in the table: counts of groups, engines, pods and GPUs."""
    return {
        "role": engine.name,
        "groups": _shown(groups),
        "engines": _shown(made.engines),
        "pods": _shown(made.pods),
        "gpus_per_pod": _shown(engine.entry.gpus),
        **_sizes(engine, engine.entry.command),
        "gpus": _shown(made.gpus),
    }


def _sizes(engine: EngineFacts, command: CommandFacts | None) -> dict[str, Any]:
    """Return the parallelism of one engine; the product of all sizes is its world size."""
    if command is None:
        return dict.fromkeys(("tensor", "pipeline", "data", "world_size"), _UNKNOWN)
    world, copy, data = ranks_of(engine, command), command.per_rank_world, command.data
    if command.data_mode != "internal" and isinstance(world, int) and isinstance(copy, int):
        data = world // copy  # its own copies: `data` also counts those of other engines
    sizes = {
        "tensor": _shown(command.tensor),
        "pipeline": _shown(command.pipeline),
        "data": _shown(data),
        "world_size": _shown(world),
    }
    context = command.prefill_context
    return sizes if context == 1 else {**sizes, "context": _shown(context)}


def read_shape(props: Mapping[str, Any]) -> ServingFacts:
    """Read facts from the rows that a component registers: the inverse of `shape`.

    Rows without engines are skipped.
    """
    rows = [mapping(item) for item in sequence(props.get("shape"))]
    engines = tuple(_engine(row, f"shape[{i}]") for i, row in enumerate(rows) if _runs(row))
    return ServingFacts(
        path="", name=str(props.get("name", "")), engines=engines, gang_expected=True
    )


def _runs(row: Mapping[str, Any]) -> bool:
    return 0 not in {_count(row, "engines"), _count(row, "pods")}


def _count(row: Mapping[str, Any], key: str) -> MaybeInt:
    shown = row.get(key)
    if shown is None or shown == _UNKNOWN:
        return Unknown(f"{key} is not known")
    return count_or_unknown(shown, key, 0)


def _engine(row: Mapping[str, Any], path: str) -> EngineFacts:
    """Read an engine back from a row, to check the sizes in it against its pods and GPUs."""
    engines, pods, gpus = (_count(row, key) for key in ("engines", "pods", "gpus_per_pod"))
    device = DeviceFacts(path=path, container="", resource="gpu", limit=gpus, request=gpus)
    if isinstance(engines, int) and isinstance(pods, int):
        pods = pods // engines
    command = _command(row)
    return EngineFacts(
        path=path,
        name=str(row.get("role", "")),
        pods=engines if isinstance(engines, Unknown) else pods,
        replicas=engines,
        entry=PodFacts(
            devices=(device,),
            command=None if isinstance(command, Unknown) else command,
            gpus_path=path,
            command_path=path,
            gap=command if isinstance(command, Unknown) else None,
        ),
        worker=None,
    )


def _command(row: Mapping[str, Any]) -> CommandFacts | Unknown:
    """Read the parallel sizes of a row; unknown as soon as one of them is."""
    tensor, pipeline, data = (_count(row, key) for key in ("tensor", "pipeline", "data"))
    for size in (tensor, pipeline, data):
        if isinstance(size, Unknown):
            return size
    context = _count(row, "context") if "context" in row else 1
    return CommandFacts(
        engine="engine", tensor=tensor, pipeline=pipeline, data=data, prefill_context=context
    )


def _shown(value: object) -> Any:
    return _UNKNOWN if isinstance(value, Unknown) else value


def requested_gpus(plans: Iterable[ServingPlan]) -> list[int | None]:
    """Return the GPUs of each role; None where they are unknown."""
    rows = (row for plan in plans for row in shape(plan))
    return [row["gpus"] if isinstance(row["gpus"], int) else None for row in rows]


def gpu_count(rows: Iterable[Mapping[str, Any]]) -> int:
    """Sum the GPUs of rows, without unknown ones."""
    return sum(row["gpus"] for row in rows if isinstance(row["gpus"], int))


def render_rows(rows: Sequence[Mapping[str, Any]], style: str = "simple") -> str:
    """Write the rows of `shape` as the table that `up` shows, with the total.

    Args:
        rows: The rows of all servings of a stack.
        style: A table format of tabulate, such as `simple` or `github`.
    """
    from tabulate import tabulate  # noqa: PLC0415 - a refused program shows no table

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


def _parallelism(row: Mapping[str, Any]) -> str:
    return f"{row['tensor']} × {row['pipeline']} × {row['data']}"
