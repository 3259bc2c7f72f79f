"""Translates a role's engine to a launch of core/engines."""

from kthena_components.core.engines import Launch, Transfer, default_launcher, stated_release
from kthena_components.core.spec.serving_spec import EngineSpec, ResourcesSpec, RoleSpec

ENGINE_CONTAINER = "engine"
DRAIN_SECONDS = 30
"""Default of drain_seconds. llm-d's guides use the same."""
ENDPOINT_SECONDS = 15
"""Seconds between the end of routing and SIGTERM: until then proxies may still send requests.
KServe's templates use the same.
"""
EXIT_SECONDS = 15
"""Seconds for an engine to exit after the last request, before SIGKILL."""


def launch_of(role: RoleSpec) -> Launch:
    """Return the launch of a role's engine."""
    if role.engine is None:
        message = f"role '{role.name}' has no engine"
        raise ValueError(message)
    engine, parallelism = role.engine, role.engine.parallelism
    release = stated_release(engine.kind, engine_image(role, engine))
    return Launch(
        kind=engine.kind,
        launcher=engine.launcher or default_launcher(engine.kind, release, parallelism.data),
        model=engine.model,
        tensor=parallelism.tensor,
        pipeline=parallelism.pipeline,
        data=parallelism.data,
        expert=parallelism.expert,
        pods=1 + role.worker_replicas,
        gpus_per_pod=(role.resources or ResourcesSpec()).gpus_per_pod,
        port=engine.port,
        extra_args=tuple(engine.extra_args),
        release=release,
        transfer=_transfer(engine),
        drain=drain_seconds(role),
    )


def _transfer(engine: EngineSpec) -> Transfer | None:
    stated = engine.kv_transfer
    if stated is None:
        return None
    return Transfer(role=stated.role.value, connector=stated.connector.value, port=stated.port)


def drain_seconds(role: RoleSpec) -> int:
    """Return how long requests may take to end after SIGTERM."""
    return DRAIN_SECONDS if role.drain_seconds is None else role.drain_seconds


def grace_seconds(role: RoleSpec) -> int:
    """Return the grace period of all pods of an engine."""
    return ENDPOINT_SECONDS + drain_seconds(role) + EXIT_SECONDS


def engine_image(role: RoleSpec, engine: EngineSpec) -> str:
    """Return the image of the engine's container: an overlay may override it."""
    spec = (role.overlay or {}).get("spec") or {}
    own = (c for c in spec.get("containers") or [] if c["name"] == ENGINE_CONTAINER)
    image = next((container.get("image") for container in own), None)
    return image if isinstance(image, str) else engine.image
