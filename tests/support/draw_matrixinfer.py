"""Servings for ModelInfers, drawn at random."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.support.specs import Args

_BEFORE_ANNOTATIONS = "0.1"
"""The Kthena whose controller crashes on annotations in templates, as MatrixInfer's does."""


@st.composite
def model_infers(
    draw: st.DrawFn, names: tuple[str, ...], roles: Callable[[str, str], st.SearchStrategy[Args]]
) -> Args:
    """Draw a serving for a ModelInfer.

    Args:
        draw: Given by Hypothesis.
        names: Role names.
        roles: Draws a role by its name, for a version of Kthena.
    """
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    args: Args = {
        "name": "chat",
        "backend": "matrixinfer",
        "replicas": draw(st.integers(0, 3)),
        "roles": [draw(roles(name, _BEFORE_ANNOTATIONS)) for name in chosen],
    }
    minima = {role["name"]: st.integers(0, role["replicas"]) for role in args["roles"]}
    groups = ["workload.matrixinfer.ai", "workload.volcano.sh"]
    optional: dict[str, st.SearchStrategy[Any]] = {
        "namespace": st.sampled_from(["serving", "team-9"]),
        "expose": st.fixed_dictionaries({"role": st.sampled_from(chosen)}),
        "ready_timeout_seconds": st.integers(1, 60),
        "gang_policy": st.fixed_dictionaries(
            {"min_role_replicas": st.fixed_dictionaries({}, optional=minima)}
        ),
        "network_topology": st.fixed_dictionaries({"group_policy": _policies()}),
        "recovery_policy": st.sampled_from(["ServingGroupRecreate", "RoleRecreate", "None"]),
        "restart_grace_period_seconds": st.sampled_from([0, 60]),
        "backend_options": st.fixed_dictionaries({"api_group": st.sampled_from(groups)}),
        "rollout_strategy": st.fixed_dictionaries(
            {"rolling_update_configuration": _budgets(args["replicas"])}
        ),
    }
    return args | draw(st.fixed_dictionaries({}, optional=optional))


def _policies() -> st.SearchStrategy[Args]:
    tier = st.fixed_dictionaries(
        {"highest_tier_allowed": st.integers(1, 3)}, optional={"mode": st.just("soft")}
    )
    return st.one_of(tier, st.just({"mode": "soft"}))


def _budgets(groups: int) -> st.SearchStrategy[Args]:
    partition = {"partition": st.sampled_from([*range(groups), "0%", f"{100 // (groups + 1)}%"])}
    surge = {"max_surge": st.sampled_from([0, "0%"])}
    return st.fixed_dictionaries(
        {"max_unavailable": st.just(1)}, optional={**surge, **(partition if groups > 1 else {})}
    )
