"""Writes the config and the variables of workers: Kthena makes vLLM's command line of them.

Source: Kthena v1.0.0 pkg/model-booster-controller/utils/template.go ConvertVLLMArgsFromJson and
convert/model_serving.go buildCommands.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import write_commands
from kthena_components.core.engines.argv import by_flag
from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.serving_plan import RolePlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.serving_spec import ENGINE_CONTAINER, launch_of
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.kthena.view import SKIPS_INSTALL, TRUE

MODEL_NAME = "served-model-name"
_SERVE = 3
"""Words of `vllm serve MODEL`."""
_EXECUTOR = "--distributed-executor-backend"
_BARE = regex(r"[\w@%+=:,./-]+", re.ASCII)
"""Words that bash takes as they are."""


def config_of(role: RolePlan) -> dict[str, str]:
    """Return vLLM's options without dashes, each with its value; a switch has an empty one.

    All values are texts: Kthena writes numbers from 1000000 on with an exponent. Engines answer to
    the model's name, as those of other backends do: without the option, to the path of its cache.
    """
    written = {flag.removeprefix("--"): " ".join(values) for flag, values in _flags(role)}
    stated = {} if role.engine is None else {MODEL_NAME: role.engine.model}
    return dict(sorted((stated | written).items()))


def _flags(role: RolePlan) -> list[tuple[str, list[str]]]:
    """Return the options of the engine. Over several pods, Kthena writes those of Ray."""
    launch = launch_of(role.stated)
    words = write_commands(replace(launch, pods=1)).entry[_SERVE:]
    several = launch.pods > 1
    return [each for each in by_flag(words) if not (several and each[0] == _EXECUTOR)]


def refuse_config(role: RolePlan) -> Iterator[Finding]:
    """Report options that no config can state."""
    at, seen_before = join_path(role.path, "engine.extra_args"), set[str]()
    for flag, values in _flags(role):
        for seen in _wrong(flag, values, twice=flag in seen_before):
            yield Finding(
                path=at,
                seen=f"has {display(flag)} {seen}",
                remedy=elsewhere(remove()),
                rule="backend-loss",
            )
        seen_before.add(flag)
    for word in _split_by_bash(role):
        yield Finding(
            path=join_path(role.path, "engine"),
            seen=f"has the word {display(word)}, but over several pods Kthena joins the words of a "
            "ModelBooster with blanks, without quotes, in a line for bash",
            remedy=elsewhere("write it without characters that bash reads"),
            rule="backend-loss",
        )


def _wrong(flag: str, values: list[str], *, twice: bool) -> Iterator[str]:
    known = not is_unresolved(flag)
    if not known or not re.fullmatch(r"--[A-Za-z][\w.-]*", flag):
        yield "which is no option of the form --name, and a config has only these"
    elif "_" in flag.partition(".")[2]:
        yield "but Kthena writes every _ of an option as -, which is another field here"
    elif twice:
        yield "twice, but a config has each option once"
    elif len(values) > 1:
        yield f"with {len(values)} values, but an option of a config is followed by one word"
    elif values == [""]:
        yield "with an empty value, which a config states as a switch"


def _split_by_bash(role: RolePlan) -> Iterator[str]:
    if role.worker_replicas:
        yield from (
            value
            for value in config_of(role).values()
            if value and not is_unresolved(value) and not _BARE.fullmatch(value)
        )


# The variables of a ModelBooster: `backend.env`, which the engines of all its workers get.
#
# Source: Kthena v1.0.0 pkg/model-booster-controller/convert/model_serving.go buildEngineEnvVars:
# its own variables stand behind those of the backend, so they win.


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
