"""The variables of a ModelBooster: `backend.env`, which the engines of all its workers get.

Source: Kthena v1.0.0 pkg/model-booster-controller/convert/model_serving.go buildEngineEnvVars: its
own variables stand behind those of the backend, so they win.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.model import RolePlan
from kthena_components.core.remedies import elsewhere
from kthena_components.core.spec.launch import ENGINE_CONTAINER
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.kthena.view_booster import SKIPS_INSTALL, TRUE

_KTHENAS = {
    *("POD_NAME", "NAMESPACE", "VLLM_USE_V1", "REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD"),
}
_OF_PAIR = {
    "prefill": {"HF_HUB_OFFLINE", "HCCL_IF_IP"},
    "decode": {"HF_HUB_OFFLINE", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME"},
}
_OF_CONNECTORS = "VLLM_"
Variables = dict[str, Mapping[str, Any]]


def env_of(role: RolePlan) -> Variables:
    """Return the variables of a role that a ModelBooster states, by their names.

    They are those of its overlay and its connector. Kthena itself writes the token and the cache.
    """
    stated = _of_overlay(role)
    listed = map(mapping, sequence(role.entry["spec"]["containers"][0].get("env")))
    named = {str(each["name"]): each for each in listed}
    return {n: e for n, e in named.items() if n in stated or n.startswith(_OF_CONNECTORS)}


def refuse_variables(first: RolePlan, role: RolePlan) -> Iterator[Finding]:
    """Report variables of an overlay that Kthena replaces, or does not give to one role alone."""
    at, is_pair = join_path(role.path, "overlay"), role.name in _OF_PAIR
    own, other = env_of(role), env_of(first)
    stated = _of_overlay(role)
    for name in sorted(stated):
        value = str(own.get(name, {}).get("value", ""))
        if name in _KTHENAS | _OF_PAIR.get(role.name, set()):
            yield _refusal(at, f"sets {name}, which Kthena sets to a value of its own")
        elif "$(" in value:
            seen = f"sets {name} to {display(value)}, but Kthena writes the variables that it "
            yield _refusal(at, f"{seen}could refer to behind it")
        elif is_pair and name == SKIPS_INSTALL and value not in TRUE:
            seen = f"sets {name} to {display(value)}, so each pod would run `pip install` in a "
            yield _refusal(at, f"{seen}line for bash that breaks the JSON of --kv-transfer-config")
    for name in sorted({*own, *other}):
        both = name in own and name in other
        in_overlay = name in stated | _of_overlay(first)
        if own.get(name) != other.get(name) and (both or in_overlay):
            field = at if in_overlay else join_path(role.path, "engine.kv_transfer.port")
            seen = f"makes {name} differ from that of {first.path}, but a ModelBooster has one for "
            yield _refusal(field, f"{seen}all its workers", "write the same")


def _of_overlay(role: RolePlan) -> set[str]:
    spec = mapping(mapping(role.stated.overlay).get("spec"))
    engines = (mapping(each) for each in sequence(spec.get("containers")))
    return {
        str(mapping(entry).get("name"))
        for engine in engines
        if engine.get("name") == ENGINE_CONTAINER
        for entry in sequence(engine.get("env"))
    }


def _refusal(path: str, seen: str, remedy: str = "remove it") -> Finding:
    return Finding(path=path, seen=seen, remedy=elsewhere(remedy), rule="backend-loss")
