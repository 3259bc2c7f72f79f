"""What a ModelBooster does not support: an error, never dropped.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/model_booster_types.go,
pkg/model-booster-controller/convert/model_serving.go and its templates.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import write_commands
from kthena_components.core.engines.argv import by_flag
from kthena_components.core.engines.vllm_launch import RAY_SCRIPT_MOVED, RAY_SCRIPT_SINCE
from kthena_components.core.findings import Finding, Level, count_of, join_path
from kthena_components.core.plan.limits import UPDATE, Limit, SetField, loss
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove, write
from kthena_components.core.spec.enums import EngineKind, RecoveryPolicy, RolloutType
from kthena_components.core.spec.serving_spec import (
    ENGINE_CONTAINER,
    CacheSpec,
    EngineSpec,
    launch_of,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.images import write_version
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.kthena.view import SKIPS_INSTALL, TRUE

# Writes the config and the variables of workers: Kthena makes vLLM's command line of them.
#
# Source: Kthena v1.0.0 pkg/model-booster-controller/utils/template.go ConvertVLLMArgsFromJson and
# convert/model_serving.go buildCommands.


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
    """Return the engine's options; over several pods, Kthena writes Ray's options itself."""
    launch = launch_of(role.stated)
    words = write_commands(replace(launch, pods=1)).entry[_SERVE:]
    several = launch.pods > 1
    return [each for each in by_flag(words) if not (several and each[0] == _EXECUTOR)]


def refuse_config(role: RolePlan) -> Iterator[Finding]:
    """Report options that no config can state."""
    at, seen_before = join_path(role.path, "engine.extra_args"), set[str]()
    for flag, values in _flags(role):
        for seen in _why_not_in_config(flag, values, twice=flag in seen_before):
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


def _why_not_in_config(flag: str, values: list[str], *, twice: bool) -> Iterator[str]:
    """Say why a ModelBooster's config cannot hold an option with these values."""
    known = not is_unresolved(flag)
    if not known or not re.fullmatch(r"--[A-Za-z][\w.-]*", flag):
        yield "which is not an option of the form --name, and a config has only these"
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


_KTHENAS = {*("POD_NAME", "NAMESPACE", "VLLM_USE_V1", "REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD")}
_SET_IN_PAIR = {
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
    at, is_pair = join_path(role.path, "overlay"), role.name in _SET_IN_PAIR
    own, other = env_of(role), env_of(first)
    stated = _of_overlay(role)
    for name in sorted(stated):
        value = str(own.get(name, {}).get("value", ""))
        if name in _KTHENAS | _SET_IN_PAIR.get(role.name, set()):
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
            seen = f"makes {name} differ from {first.path}, but a ModelBooster has one for "
            yield _refusal(field, f"{seen}all its workers", "write the same")


def _of_overlay(role: RolePlan) -> set[str]:
    """Return the names of variables that the overlay gives to the engine's container."""
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


PORT = 8000
"""The templates' probes ask this port."""
ONE, PAIR = ("leader",), ("prefill", "decode")
"""Names of the roles that Kthena writes for type vLLM, and for vLLMDisaggregated."""
GRACE = 60
"""restartGracePeriodSeconds in both templates."""
TOKEN_KEYS = ("HF_TOKEN", "HF_AUTH_TOKEN")
"""Variables that the downloader reads (python/kthena/downloader/app.py; huggingface_hub)."""
_HERE = "which a ModelBooster has no field for"
_DEFAULTS = (
    "is booster, so the pods are those of Kthena's templates: beside the engine they run "
    "kthena/downloader and kthena/runtime, with the tag latest; they have variables of Services, "
    "the token of their ServiceAccount, all default privileges and no startup probe; "
)
_OF_ONE = "they have no liveness probe, and /dev/shm without a limit; "
_OF_PAIR = "they have a liveness probe after 180 s, 30 s to end, and 64 MiB of /dev/shm; "
_RECREATED = "a change of replicas recreates all of them"


def _lacking(*fields: str) -> Iterator[Limit]:
    """Return the limits of fields that a ModelBooster has no field for."""
    yield from (Limit(field, f"is given, {_HERE}") for field in fields)


def _names(plan: ServingPlan) -> set[str]:
    return {role.name for role in plan.roles}


def _names_of_roles(one: SetField) -> str:
    shown = ", ".join(map(display, sorted(_names(one.plan))))
    return f"has {shown}, but Kthena names the roles of a ModelBooster itself"


def _has_other_fields(one: SetField) -> bool:
    """Return whether an overlay states more than resources and variables of the engine."""
    spec = mapping(one.value.get("spec"))
    containers = [mapping(each) for each in sequence(spec.get("containers"))]
    only = all(
        each.get("name") == ENGINE_CONTAINER and {*each} <= {"name", "resources", "env"}
        for each in containers
    )
    return not ({*one.value} <= {"spec"} and {*spec} <= {"containers"} and only)


LIMITS = (
    *_lacking(
        "queue",
        "priority_class",
        "spread_over",
        "network_topology.group_policy",
        "network_topology.role_policy",
        "autoscaled",
        "monitoring",
    ),
    Limit(
        "gang_policy.min_role_replicas",
        "asks for fewer engines than there are, but Kthena's templates ask for all of them",
        takes="all engines",
        when=lambda one: any(role.gang_replicas < role.replicas for role in one.plan.roles),
    ),
    Limit(
        "rollout_strategy.type",
        f"is {{}}, {_HERE}",
        takes="no `RoleRollingUpdate`",
        when=lambda one: one.value is not RolloutType.SERVING_GROUP,
    ),
    Limit(
        f"{UPDATE}.max_unavailable",
        f"is {{}}, {_HERE}",
        takes="only 1",
        when=lambda one: one.value != 1,
    ),
    Limit(f"{UPDATE}.max_surge", f"is {{}}, {_HERE}"),
    Limit(f"{UPDATE}.partition", f"is {{}}, {_HERE}"),
    Limit(
        "recovery_policy",
        "is {}, but the ModelServing of a ModelBooster has RoleRecreate",
        takes="only `RoleRecreate`",
        when=lambda one: one.value is not RecoveryPolicy.ROLE_RECREATE,
    ),
    Limit(
        "restart_grace_period_seconds",
        f"is {{}}, but Kthena's templates have {GRACE}",
        takes=f"only {GRACE}",
        when=lambda one: one.value != GRACE,
        remedy=elsewhere(f"write {GRACE}"),
    ),
    Limit(
        "roles",
        _names_of_roles,
        when=lambda one: _names(one.plan) not in ({*ONE}, {*PAIR}),
        remedy=elsewhere("write one role leader, or prefill and decode"),
    ),
    Limit(
        "roles[].entry_template",
        "is given, but Kthena writes the pods of a ModelBooster",
        when=lambda one: one.role.engine is None,
        remedy=elsewhere("write an engine"),
    ),
    Limit("roles[].overlay", f"is given, {_HERE}", when=_has_other_fields),
    *_lacking(
        "roles[].network",
        "roles[].startup_seconds",
        "roles[].drain_seconds",
        "roles[].max_unavailable",
    ),
    Limit("roles[].resources.shm", f"is {{}}, {_HERE}"),
    Limit("roles[].resources.gpu", f"is {{}}, {_HERE}"),
    Limit("roles[].resources.claims", f"is given, {_HERE}", when=lambda one: one.value),
    Limit(
        "roles[].hugging_face_token.key",
        lambda one: (
            f"is {display(one.value)}, but the download reads all keys of the Secret as variables, "
            f"and the token from {' or '.join(TOKEN_KEYS)}"
        ),
        when=lambda one: one.value not in TOKEN_KEYS,
        remedy=f"write {TOKEN_KEYS[0]}, and rename the key",
    ),
    Limit("roles[].worker_replicas", takes="with Ray, and not prefill and decode"),
)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report engines and caches that do not fit, and what the pods lack in any case."""
    for role in plan.roles:
        if role.engine is not None:
            yield from _refuse_cache(role)
            firm = list(_refuse_engine(role, role.engine))
            yield from firm or refuse_config(role)
        yield from _refuse_unequal(plan.roles[0], role)
    yield Finding(
        path="backend",
        level=Level.ADVISORY,
        rule="booster-defaults",
        seen=f"{_DEFAULTS}{_OF_PAIR if _names(plan) == {*PAIR} else _OF_ONE}{_RECREATED}",
        remedy=write("kthena", "write backend: kthena for the production defaults"),
    )


def _refuse_unequal(first: RolePlan, role: RolePlan) -> Iterator[Finding]:
    """Reject what differs between two roles, but belongs to the whole backend."""
    if first.engine is None or role.engine is None:
        return
    unequal = {
        "engine.model": first.engine.model != role.engine.model,
        "cache": first.stated.cache != role.stated.cache,
        "hugging_face_token": first.stated.hugging_face_token != role.stated.hugging_face_token,
    }
    late = is_unresolved(first.engine.model) or is_unresolved(role.engine.model)
    for field in (field for field, differs in unequal.items() if differs):
        # Two Outputs may have one value, but no plan knows it.
        may = "may differ" if late and field == "engine.model" else "differs"
        seen = f"{may} from {first.path}, but a ModelBooster has one for all its workers"
        yield loss(join_path(role.path, field), seen, elsewhere("write the same"))
    yield from refuse_variables(first, role)


def _refuse_cache(role: RolePlan) -> Iterator[Finding]:
    """Check the cache of weights: a claim or a path of the host, downloaded at Kthena's path."""
    at, cache = join_path(role.path, "cache"), role.stated.cache
    if cache is None or cache.size is not None:
        seen = "is not given" if cache is None else f"has the size {cache.size}"
        seen += ", but without a claim or a path, Kthena mounts the weights at an empty path, "
        seen += "and the API server rejects such pods"
        yield loss(at, seen, "write cache.claim or cache.host_path")
        return
    if cache.mount_path != CacheSpec.model_fields["mount_path"].default:
        seen = f"is {cache.mount_path}, but Kthena names the path after the claim or the host's"
        yield loss(f"{at}.mount_path", seen, elsewhere(remove()))
    if not cache.download:
        seen = "is false, but each pod of a ModelBooster downloads the model before it starts"
        yield loss(f"{at}.download", seen, elsewhere("write true"))


def _refuse_engine(role: RolePlan, engine: EngineSpec) -> Iterator[Finding]:
    """Check what Kthena decides about an engine: kind, port, model and KV transfer."""
    at = join_path(role.path, "engine")
    if engine.kind is not EngineKind.VLLM:
        seen = f"is {engine.kind}, but Kthena 1.0 writes the pods of vLLM only"
        yield loss(f"{at}.kind", seen, elsewhere("write vllm"))
        return
    if engine.port != PORT:
        seen = f"is {engine.port}, but the probes of Kthena's templates ask {PORT}"
        yield loss(f"{at}.port", seen, write(PORT, f"write {PORT}"))
    model = engine.model
    if not is_unresolved(model) and ("://" in model or model.startswith(("/", "."))):
        seen = f"is {display(model)}, but the download reads organisation/name from Hugging Face"
        yield loss(f"{at}.model", seen, elsewhere("write organisation/name"))
    if engine.hf_config is not None:
        yield loss(f"{at}.hf_config", f"is given, {_HERE}", elsewhere(remove()))
    if role.worker_replicas:
        yield from _refuse_several(role, at)
    if engine.kv_transfer is not None and role.name not in PAIR:
        seen = "is given, but only a ModelBooster of prefill and decode transfers the KV cache"
        yield loss(f"{at}.kv_transfer", seen, elsewhere("write both roles"))


def _refuse_several(role: RolePlan, at: str) -> Iterator[Finding]:
    """Reject engines of several pods that Kthena's template does not start."""
    if role.name in PAIR:
        seen = f"is {role.worker_replicas}, but Kthena creates one pod for prefill and for decode"
        yield loss(join_path(role.path, "worker_replicas"), seen, elsewhere("write 0"))
        return
    launch = launch_of(role.stated)
    if launch.launcher != "ray":
        seen = f"is {launch.launcher}, but Kthena joins the pods of a ModelBooster with Ray"
        yield loss(f"{at}.launcher", seen, elsewhere("write ray"))
    if launch.data > 1:
        seen = f"is {launch.data} over {count_of(launch.pods, 'pod')}, for which Kthena "
        seen += "has no command line"
        yield loss(f"{at}.parallelism.data", seen, elsewhere("write 1"))
    release = launch.release
    if release is not None and not RAY_SCRIPT_SINCE <= release < RAY_SCRIPT_MOVED:
        seen = f"is vLLM {write_version(release)}, but Kthena runs the script of releases from "
        seen += f"{write_version(RAY_SCRIPT_SINCE)} to before {write_version(RAY_SCRIPT_MOVED)}"
        yield loss(f"{at}.image", seen, elsewhere("write such a release"))
