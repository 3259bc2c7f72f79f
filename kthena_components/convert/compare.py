"""Compares a conversion with its source: engines, numbers of pods, and gangs. Pure."""

from collections.abc import Iterator
from dataclasses import fields

from kthena_components import systems
from kthena_components.compiler.compile import Compiled
from kthena_components.convert.describe_engines import ByEngines
from kthena_components.convert.engine_roles import EngineRole
from kthena_components.convert.lost_fields import Loss
from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.writer import words_for
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.values.unknown import Unknown, product
from kthena_components.systems.emitter import EMPTY_ROLES, IDLE_WORKERS

# Compares the engines of a converted serving with the engines of its source object. Pure.


_OF_THE_LAUNCH = frozenset(
    {
        *("options", "where", "problems", "missing_files", "hidden", "release", "expert"),
        *("data_local", "data_start_rank", "data_rank", "data_mode", "data_backend"),
        *("nnodes", "node_rank", "executor", "headless", "devices", "gpus_per_node"),
        *("mpi_ranks", "mpi_session", "mpi_per_host", "mpi_slots"),
        *("ray_role", "ray_cluster_size", "ray_gpus", "ray_port", "ray_blocks", "ray_script"),
    }
)
"""Facts that may differ: how the pods are joined, because the package uses its own launcher, and
facts that quote the command line."""
_VALUES = tuple(f.name for f in fields(CommandFacts) if f.compare and f.name not in _OF_THE_LAUNCH)
_BY_VARIABLES = frozenset({"long_context_allowed", "stages_draft"})
"""Facts that an unknown variable may set: a Secret that the object mounts by its controller."""
Pair = tuple[str, object, object]


def find_differences(described: ByEngines, plan: ServingPlan) -> Iterator[Finding]:
    """Report engines with other facts than before. Facts that are unknown before may differ."""
    made, open_ones = facts_from_plan(plan).engines, {gap.argument for gap in described.gaps}
    for role, engine, planned in zip(described.roles, made, plan.roles, strict=True):
        number = product(role.engine.replicas, described.facts.copies)
        for what, before, after in (
            ("the number of engines", number, plan.groups * planned.replicas),
            *_sizes(role, engine),
            *_commands(role.command, engine.entry.command or CommandFacts()),
        ):
            said = f"{planned.path}.engine.{what}" not in open_ones
            unread = isinstance(after, Unknown) and what in _BY_VARIABLES
            if said and not unread and not isinstance(before, Unknown) and before != after:
                yield Finding(
                    path=planned.path,
                    seen=f"differs from its object: {what} would be {after}, and is {before}",
                    remedy="write this role of a ModelServing by hand",
                    rule="convertible",
                )


def _sizes(role: EngineRole, made: EngineFacts) -> Iterator[Pair]:
    source = role.engine
    pods = source.pods - 1 if role.folded and isinstance(source.pods, int) else source.pods
    yield "the pods of an engine", pods, made.pods
    first = source.worker if role.folded and source.worker else source.entry
    yield "the GPUs of a pod", first.gpus, made.entry.gpus
    if made.worker is not None and source.worker is not None:
        yield "the GPUs of a worker", source.worker.gpus, made.worker.gpus


def _commands(before: CommandFacts, after: CommandFacts) -> Iterator[Pair]:
    for name in _VALUES:
        yield name, getattr(before, name), getattr(after, name)
    yield "expert_size", before.expert_size, after.expert_size
    kind = str(before.engine)
    for option in words_for(kind, before.options).options:
        yield option, before.options[option], after.options.get(option)


# Compares how many pods there are, and how many are scheduled together, in a conversion. Pure.


GangSize = tuple[int, str]
"""How many pods are scheduled together, and which, in words."""


def gang_size(facts: ServingFacts, most: int) -> GangSize:
    """Return how many pods of a serving are scheduled together.

    Args:
        facts: Its facts. They have no gang for a backend that makes none.
        most: The pods of its largest engine.
    """
    gang = facts.gang
    if gang is not None and isinstance(gang.min_member, int):
        return gang.min_member, f"{count_of(gang.min_member, 'pod')} of a group together"
    if facts.gang_expected is True:
        return most, "each engine by itself"
    return 1, "each pod by itself"


def planned_gang_size(compiled: Compiled) -> GangSize:
    """Return how many pods of a plan are scheduled together."""
    emitter = systems.find_emitter(compiled.plan.backend)
    planned = emitter.planned(compiled.plan) if emitter is not None else []
    most = max(role.pods for role in compiled.plan.roles)
    return gang_size(planned[0], most) if planned else (0, "")


def lost_gang(before: GangSize, after: Compiled) -> Iterator[Loss]:
    """Report that fewer pods are scheduled together than before."""
    (pods, said), (fewer, now) = before, planned_gang_size(after)
    if 0 < fewer < pods:
        yield Loss(name="gang", seen=f"the pods are scheduled {now}, and were {said}")


def gained_gang(before: GangSize, after: Compiled) -> Iterator[str]:
    """Yield a note if more pods are scheduled together than before."""
    (pods, said), (more, now) = before, planned_gang_size(after)
    if 0 < pods < more:
        yield f"the pods are scheduled {now}, and were {said}"


def lost_pods(after: Compiled) -> Iterator[Loss]:
    """Report templates that the result does not have, because no pod has them."""
    plan, emitter = after.plan, systems.find_emitter(after.plan.backend)
    drops = () if emitter is None else emitter.drops
    for role in plan.roles:
        if EMPTY_ROLES in drops and not plan.groups * role.replicas:
            seen = f"has no pods, and {plan.backend} writes nothing for it"
            yield Loss(name=role.path, seen=seen)
        elif IDLE_WORKERS in drops and role.worker is not None and not role.worker_replicas:
            seen = f"is of no pod, and {plan.backend} does not write it"
            yield Loss(name=join_path(role.path, "worker_template"), seen=seen)
