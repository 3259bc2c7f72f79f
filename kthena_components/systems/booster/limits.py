"""What a ModelBooster does not support: an error, never dropped.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/model_booster_types.go,
pkg/model-booster-controller/convert/model_serving.go and its templates.
"""

from collections.abc import Iterator

from kthena_components.core.engines.vllm_launch import RAY_SCRIPT_MOVED, RAY_SCRIPT_SINCE
from kthena_components.core.findings import Finding, Level, count_of, join_path
from kthena_components.core.plan.limits import UPDATE, Limit, Stated, loss
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove, write
from kthena_components.core.spec.enums import (
    EngineKind,
    RecoveryPolicy,
    RolloutType,
)
from kthena_components.core.spec.serving_spec import (
    ENGINE_CONTAINER,
    CacheSpec,
    EngineSpec,
    launch_of,
)
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


def _lacking(*fields: str) -> Iterator[Limit]:
    """Return the limits of fields that a ModelBooster has no field for."""
    yield from (Limit(field, f"is given, {_HERE}") for field in fields)


def _names(plan: ServingPlan) -> set[str]:
    return {role.name for role in plan.roles}


def _names_of_roles(one: Stated) -> str:
    shown = ", ".join(map(display, sorted(_names(one.plan))))
    return f"has {shown}, but Kthena names the roles of a ModelBooster itself"


def _has_other_fields(one: Stated) -> bool:
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
        seen = f"{may} from that of {first.path}, but a ModelBooster has one for all its workers"
        yield loss(join_path(role.path, field), seen, elsewhere("write the same"))
    yield from refuse_variables(first, role)


def _refuse_cache(role: RolePlan) -> Iterator[Finding]:
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
        seen = (
            f"is {launch.data} over {count_of(launch.pods, 'pod')}, for which Kthena "
            "has no command line"
        )
        yield loss(f"{at}.parallelism.data", seen, elsewhere("write 1"))
    release = launch.release
    if release is not None and not RAY_SCRIPT_SINCE <= release < RAY_SCRIPT_MOVED:
        seen = f"is vLLM {write_version(release)}, but Kthena runs the script of releases from "
        seen += f"{write_version(RAY_SCRIPT_SINCE)} to before {write_version(RAY_SCRIPT_MOVED)}"
        yield loss(f"{at}.image", seen, elsewhere("write such a release"))
