"""Servings that the lws backend takes, drawn at random."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from kthena_components.core.plan.build import build_plan
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.systems import find_emitter
from tests.support.specs import Args


@st.composite
def leader_worker_sets(
    draw: st.DrawFn, known: Sequence[str], role_of: Callable[[str], st.SearchStrategy[Args]]
) -> Args:
    """Draw a serving for LeaderWorkerSets: any groups of one role, or one group of several."""
    names = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    several = len(names) > 1
    roles = [draw(role_of(name)) for name in names]
    args: Args = {"name": "chat", "backend": "lws", "roles": roles}
    args["replicas"] = draw(st.integers(0, 1 if several else 3))
    for role in args["roles"]:
        if several and args["replicas"]:
            role["replicas"] = max(role["replicas"], 1)
    optional = {
        "namespace": st.sampled_from(["serving", "team-9"]),
        "expose": st.fixed_dictionaries({"role": st.sampled_from(names)}),
        "ready_timeout_seconds": st.integers(1, 60),
        "queue": st.just("research"),
        "recovery_policy": st.sampled_from(["RoleRecreate", "None"]),
        "gang_policy": st.just({"min_role_replicas": dict.fromkeys(names, 0)}),
    }
    if not several:
        optional["autoscaled"] = st.just(True)
    args |= draw(st.fixed_dictionaries({}, optional=optional))
    _add_surge(draw, args, several=several)
    _add_set_options(draw, args)
    if draw(st.booleans()):
        args["name"] = longest_generated_name(args)
    return args


def _add_surge(draw: st.DrawFn, args: Args, *, several: bool) -> None:
    groups = args["replicas"]
    budgets = st.sampled_from([1, 2, *(["100%"] if groups else [])])
    update = {"max_surge": st.sampled_from([0, 1, 2, "0%", "50%", "100%"])}
    if not several:
        update["partition"] = st.sampled_from([*range(groups + 1), "0%", "50%", "100%"])
    if draw(st.booleans()):
        drawn = draw(st.fixed_dictionaries({"max_unavailable": budgets}, optional=update))
        args["rollout_strategy"] = {"rolling_update_configuration": drawn}


def _add_set_options(draw: st.DrawFn, args: Args) -> None:
    sized = {
        role["name"]: st.fixed_dictionaries(
            {"size": st.sampled_from([1, role["worker_replicas"] + 1])},
            optional={"exclusive_topology": st.just("rack")},
        )
        for role in args["roles"]
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "subgroups": st.fixed_dictionaries({}, optional=sized),
        "subdomain_policy": st.sampled_from(["Shared", "UniquePerReplica"]),
    }
    if args.get("recovery_policy") != "None":
        optional["recreate_after_start"] = st.booleans()
    if all(role["worker_replicas"] == 0 for role in args["roles"]):
        optional["exclusive_topology"] = st.just("topology.kubernetes.io/zone")
    if draw(st.booleans()):
        args["backend_options"] = draw(st.fixed_dictionaries({}, optional=optional))


def longest_generated_name(args: Args) -> str:
    """Give the longest serving name that every generated name has room for."""
    emitter = find_emitter(args["backend"])
    assert emitter is not None
    made = emitter.names(build_plan(parse_spec(ModelServingSpec, args, "")))
    return "c" * min(name.limit - len(name.name) + len(args["name"]) for name in made)
