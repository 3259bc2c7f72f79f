"""Reports what a ModelBooster does not support: an error, never dropped.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/model_booster_types.go,
pkg/model-booster-controller/convert/model_serving.go and its templates.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.engines.vllm_launch import RAY_SCRIPT_MOVED, RAY_SCRIPT_SINCE
from kthena_components.core.findings import Finding, Level, join_path
from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove, write
from kthena_components.core.spec.enums import (
    EngineKind,
    RecoveryPolicy,
    RolloutType,
)
from kthena_components.core.spec.launch import ENGINE_CONTAINER, launch_of
from kthena_components.core.spec.model import CacheSpec, EngineSpec, ResourcesSpec
from kthena_components.core.values.display import display
from kthena_components.core.values.images import write_version
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.booster.worker_config import refuse_config, refuse_variables

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
    "kthena/downloader and kthena/runtime, as latest; they have variables of Services, the token "
    "of their ServiceAccount, all default privileges and no startup probe; "
)
_OF_ONE = "they have no liveness probe, and /dev/shm without a limit; "
_OF_PAIR = "they have a liveness probe after 180 s, 30 s to end, and 64 MiB of /dev/shm; "
_RECREATED = "a change of replicas recreates all of them"


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what a ModelBooster does not support, and what its pods lack in any case."""
    yield from _refuse_serving(plan)
    yield from _refuse_rollout(plan)
    names = {role.name for role in plan.roles}
    if names not in ({*ONE}, {*PAIR}):
        seen = f"has {', '.join(map(display, sorted(names)))}, but Kthena names the roles of a "
        seen += "ModelBooster itself"
        remedy = elsewhere("write one role leader, or prefill and decode")
        yield _refusal("roles", seen, remedy)
    for role in plan.roles:
        yield from _refuse_role(role)
        yield from _refuse_unequal(plan.roles[0], role)
    yield Finding(
        path="backend",
        level=Level.ADVISORY,
        rule="booster-defaults",
        seen=f"{_DEFAULTS}{_OF_PAIR if names == {*PAIR} else _OF_ONE}{_RECREATED}",
        remedy=write("kthena", "write backend: kthena for the production defaults"),
    )


def _refuse_serving(plan: ServingPlan) -> Iterator[Finding]:
    """Reject fields of the whole serving."""
    stated = {
        "queue": plan.queue,
        "priority_class": plan.priority_class,
        "spread_over": plan.spread_over,
        "network_topology.group_policy": plan.group_topology,
        "network_topology.role_policy": plan.role_topology,
        "autoscaled": plan.autoscaled or None,
        "monitoring": plan.monitoring or None,
    }
    for path in (path for path, value in stated.items() if value is not None):
        yield _refusal(path, f"is given, {_HERE}", elsewhere(remove()))
    if any(role.gang_replicas < role.replicas for role in plan.roles):
        seen = "asks for fewer engines than there are, but Kthena's templates ask for all of them"
        yield _refusal("gang_policy.min_role_replicas", seen, elsewhere(remove()))


def _refuse_rollout(plan: ServingPlan) -> Iterator[Finding]:
    stated = plan.rollout.stated
    if plan.rollout.type is not RolloutType.SERVING_GROUP:
        yield _refusal(
            "rollout_strategy.type", f"is {plan.rollout.type}, {_HERE}", elsewhere(remove())
        )
    if stated is not None:
        budgets = {
            "max_unavailable": None if stated.max_unavailable == 1 else stated.max_unavailable,
            "max_surge": stated.max_surge,
            "partition": stated.partition,
        }
        for name, value in budgets.items():
            if value is not None:
                path = f"rollout_strategy.rolling_update_configuration.{name}"
                yield _refusal(path, f"is {value}, {_HERE}", elsewhere(remove()))
    if plan.recovery not in {None, RecoveryPolicy.ROLE_RECREATE}:
        seen = f"is {plan.recovery}, but the ModelServing of a ModelBooster has RoleRecreate"
        yield _refusal("recovery_policy", seen, elsewhere(remove()))
    if plan.restart_grace_seconds not in {None, GRACE}:
        seen = f"is {plan.restart_grace_seconds}, but Kthena's templates have {GRACE}"
        yield _refusal("restart_grace_period_seconds", seen, elsewhere(f"write {GRACE}"))


def _refuse_role(role: RolePlan) -> Iterator[Finding]:
    if role.engine is None:
        seen = "is given, but Kthena writes the pods of a ModelBooster"
        at = join_path(role.path, "entry_template")
        yield _refusal(at, seen, elsewhere("write an engine"))
        return
    stated = ("network", "startup_seconds", "drain_seconds", "max_unavailable")
    given = [field for field in stated if getattr(role.stated, field) is not None]
    overlay = [] if _has_fields(role.stated.overlay or {}) else ["overlay"]
    for field in (*overlay, *given):
        yield _refusal(join_path(role.path, field), f"is given, {_HERE}", elsewhere(remove()))
    resources = role.stated.resources or ResourcesSpec()
    for field in ("shm", "gpu"):
        if getattr(resources, field) is not None:
            at = join_path(role.path, f"resources.{field}")
            yield _refusal(at, f"is {getattr(resources, field)}, {_HERE}", elsewhere(remove()))
    token = role.stated.hugging_face_token
    if token is not None and token.key not in TOKEN_KEYS:
        seen = f"is {display(token.key)}, but the download reads all keys of the Secret as "
        seen += f"variables, and the token from {' or '.join(TOKEN_KEYS)}"
        at = join_path(role.path, "hugging_face_token.key")
        yield _refusal(at, seen, f"write {TOKEN_KEYS[0]}, and rename the key")
    yield from _refuse_cache(role)
    firm = list(_refuse_engine(role, role.engine))
    yield from firm
    if not firm:
        yield from refuse_config(role)


def _has_fields(overlay: Mapping[str, Any]) -> bool:
    """Return whether an overlay states only resources and variables of the engine."""
    spec = mapping(overlay.get("spec"))
    containers = [mapping(each) for each in sequence(spec.get("containers"))]
    only = all(
        each.get("name") == ENGINE_CONTAINER and {*each} <= {"name", "resources", "env"}
        for each in containers
    )
    return {*overlay} <= {"spec"} and {*spec} <= {"containers"} and only


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
        seen = f"{may} from that of {first.path}, but a ModelBooster has one for all its workers"
        yield _refusal(join_path(role.path, field), seen, elsewhere("write the same"))
    yield from refuse_variables(first, role)


def _refuse_cache(role: RolePlan) -> Iterator[Finding]:
    at, cache = join_path(role.path, "cache"), role.stated.cache
    if cache is None or cache.size is not None:
        seen = "is not given" if cache is None else f"has the size {cache.size}"
        seen += ", but without a claim or a path, Kthena mounts the weights at an empty path, "
        seen += "and the API server rejects such pods"
        yield _refusal(at, seen, "write claim, or host_path")
        return
    if cache.mount_path != CacheSpec.model_fields["mount_path"].default:
        seen = f"is {cache.mount_path}, but Kthena names the path after the claim or the host's"
        yield _refusal(f"{at}.mount_path", seen, elsewhere(remove()))
    if not cache.download:
        seen = "is false, but each pod of a ModelBooster downloads the model before it starts"
        yield _refusal(f"{at}.download", seen, elsewhere("write true"))


def _refuse_engine(role: RolePlan, engine: EngineSpec) -> Iterator[Finding]:
    at = join_path(role.path, "engine")
    if engine.kind is not EngineKind.VLLM:
        seen = f"is {engine.kind}, but Kthena 1.0 writes the pods of vLLM only"
        yield _refusal(f"{at}.kind", seen, elsewhere("write vllm"))
        return
    if engine.port != PORT:
        seen = f"is {engine.port}, but the probes of Kthena's templates ask {PORT}"
        yield _refusal(f"{at}.port", seen, write(PORT, f"write {PORT}"))
    model = engine.model
    if not is_unresolved(model) and ("://" in model or model.startswith(("/", "."))):
        seen = f"is {display(model)}, but the download reads organisation/name from Hugging Face"
        yield _refusal(f"{at}.model", seen, elsewhere("write organisation/name"))
    if engine.hf_config is not None:
        yield _refusal(f"{at}.hf_config", f"is given, {_HERE}", elsewhere(remove()))
    if role.worker_replicas:
        yield from _refuse_several(role, at)
    if engine.kv_transfer is not None and role.name not in PAIR:
        seen = "is given, but only a ModelBooster of prefill and decode transfers the KV cache"
        yield _refusal(f"{at}.kv_transfer", seen, elsewhere("write both roles"))


def _refuse_several(role: RolePlan, at: str) -> Iterator[Finding]:
    """Reject engines of several pods that Kthena's template does not start."""
    if role.name in PAIR:
        seen = f"is {role.worker_replicas}, but Kthena creates one pod for prefill and for decode"
        yield _refusal(join_path(role.path, "worker_replicas"), seen, elsewhere("write 0"))
        return
    launch = launch_of(role.stated)
    if launch.launcher != "ray":
        seen = f"is {launch.launcher}, but Kthena joins the pods of a ModelBooster with Ray"
        yield _refusal(f"{at}.launcher", seen, elsewhere("write ray"))
    if launch.data > 1:
        seen = f"is {launch.data} over {launch.pods} pods, for which Kthena has no command line"
        yield _refusal(f"{at}.parallelism.data", seen, elsewhere("write 1"))
    release = launch.release
    if release is not None and not RAY_SCRIPT_SINCE <= release < RAY_SCRIPT_MOVED:
        seen = f"is vLLM {write_version(release)}, but Kthena runs the script of releases from "
        seen += f"{write_version(RAY_SCRIPT_SINCE)} to before {write_version(RAY_SCRIPT_MOVED)}"
        yield _refusal(f"{at}.image", seen, elsewhere("write such a release"))


def _refusal(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-loss")
