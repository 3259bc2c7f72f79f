"""Rules about what an engine's pods have besides it: claims, cache, shutdown and start.

Each function is one rule and yields its findings; POD_RULES is the list.
"""

from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.hardware.gpu_table import CLASS_OF, CLASSES
from kthena_components.core.remedies import either, or_more, remove, write
from kthena_components.core.spec.serving_spec import (
    ModelServingSpec,
    ResourceClaimSpec,
    ResourcesSpec,
    RoleSpec,
    grace_seconds,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import is_unresolved

_SOURCES = ("claim", "host_path", "size")
_PATHS = ("/", ".", "~")


def cache_source(role: RoleSpec) -> Iterator[Finding]:
    """A cache is on exactly one volume: a claim, a folder of the node, or the pod's own.

    Pass: claim weights; host_path /mnt/models; size 900Gi.
    Fail: none of them; claim and size.
    Level: mandatory.
    Source: kubernetes pkg/apis/core/validation/validation.go validateVolumeSource.
    """
    stated = [f for f in _SOURCES if role.cache and getattr(role.cache, f) is not None]
    if role.cache is not None and len(stated) != 1:
        given = f"has {' and '.join(stated)}" if stated else f"has none of {', '.join(_SOURCES)}"
        yield Finding(
            path="cache",
            seen=f"{given}, and a volume has one source",
            remedy="write claim, the name of a PersistentVolumeClaim; host_path, a folder of each "
            "node; or size, for a volume that each pod has until it is deleted",
            rule="cache-source",
        )


def cache_download(role: RoleSpec) -> Iterator[Finding]:
    """Only a model on Hugging Face can be downloaded: an engine loads a path as it is.

    Pass: download, model meta-llama/Llama-3.1-8B-Instruct.
    Fail: download, model /models/llama; download, model s3://models/llama.
    Level: mandatory.
    Source: huggingface_hub utils/_validators.py validate_repo_id.
    """
    model = role.engine.model if role.engine else ""
    is_path = model.startswith(_PATHS) or "://" in model
    if role.cache and role.cache.download and is_path and not is_unresolved(model):
        yield Finding(
            path="cache.download",
            seen=f"is true, but engine.model is {display(model)}, which is not a name on "
            "Hugging Face",
            remedy=either(remove(), "write the model's name"),
            rule="cache-download",
        )


def grace_period(role: RoleSpec) -> Iterator[Finding]:
    """An overlay leaves the pods the time to drain: the API server refuses a longer preStop sleep.

    Pass: terminationGracePeriodSeconds 120; drain_seconds 300 without an overlay.
    Fail: terminationGracePeriodSeconds 30, where drain_seconds is 30: 15 s, 30 s and 15 s.
    Level: mandatory.
    Source: kubernetes pkg/apis/core/validation/validation.go validateSleepAction; the kubelet sends
    SIGKILL after the period.
    """
    spec = (role.overlay or {}).get("spec") or {}
    stated, needed = spec.get("terminationGracePeriodSeconds"), grace_seconds(role)
    if role.engine is None or not isinstance(stated, int) or isinstance(stated, bool):
        return
    if stated < needed:
        yield Finding(
            path="overlay.spec.terminationGracePeriodSeconds",
            seen=f"is {stated}, but the pods need {needed} s: 15 s until no request is sent to "
            f"them, drain_seconds {needed - 30}, and 15 s to exit",
            remedy="remove it, and write drain_seconds"
            + (f": {stated - 30}" if stated > 30 else ": 0"),  # noqa: PLR2004 - the two 15 s
            rule="grace-period",
        )


def startup_window(spec: ModelServingSpec) -> Iterator[Finding]:
    """`up` waits as long as the engines may take to start.

    Pass: startup_seconds 3600; ready_timeout_seconds 3600.
    Fail: startup_seconds 3600, ready_timeout_seconds 1800: `up` fails while an engine still loads.
    Level: mandatory.
    Source: kubelet pkg/kubelet/prober: the startup probe; pulumi-kubernetes provider/pkg/await.
    """
    ready = spec.ready_timeout_seconds
    for index, role in enumerate(spec.roles):
        if ready is not None and role.startup_seconds is not None and ready < role.startup_seconds:
            yield Finding(
                path="ready_timeout_seconds",
                seen=f"is {ready}, but roles[{index}].startup_seconds is {role.startup_seconds}: "
                "`up` would fail while the engine may still load its weights",
                remedy=either(or_more(role.startup_seconds), remove()),
                rule="startup-window",
            )


def resource_claims(role: RoleSpec) -> Iterator[Finding]:
    """A claim of a role names a template or a device class, and one claim at most has the GPUs.

    gpus_per_pod counts the GPUs, whether the pods get them by gpu_resource or by a claim.

    Pass: device_class gpu.nvidia.com with gpus_per_pod 8; template nics with gpus false.
    Fail: template and device_class; two claims with gpus; count 8 with gpus; gpus_per_pod 0 with a
    claim for GPUs; gpus with compute-domain-default-channel.nvidia.com; device_class gpu.amd.com
    with gpu_resource nvidia.com/gpu.
    Level: mandatory.
    Source: kubernetes pkg/apis/core/validation/validation.go validatePodResourceClaim;
    staging/src/k8s.io/api/resource/v1/types.go; this package: GPUs are counted once.
    """
    resources, names, having = role.resources or ResourcesSpec(), set[str](), ""
    for index, claim in enumerate(resources.claims):
        at = f"resources.claims[{index}]"
        if claim.name in names:
            yield _claim(f"{at}.name", f"is {claim.name}, like another claim", "write another name")
        names.add(claim.name)
        yield from _claim_source(claim, at)
        if claim.gpus and having:
            yield _claim(
                at,
                f"is for GPUs, like {having}, and gpus_per_pod counts those of one claim",
                write(False, "write gpus: false for other devices", at=f"{at}.gpus"),
            )
        elif claim.gpus:
            having = at
            yield from _claim_of_gpus(resources, claim, at)


def _claim_source(claim: ResourceClaimSpec, at: str) -> Iterator[Finding]:
    """Check that a resource claim names either an existing template or a device class, not both."""
    if (claim.template is None) == (claim.device_class is None):
        both = claim.template is not None
        yield _claim(
            at,
            f"has {'both' if both else 'neither'} template {'and' if both else 'nor'} device_class",
            "write template, the name of a ResourceClaimTemplate, or device_class, for one that "
            "the package writes",
        )
    elif claim.template is not None:
        for field in ("selectors", "count"):
            if getattr(claim, field):
                seen = "is given, but the existing template states it"
                yield _claim(f"{at}.{field}", seen, remove())


def _claim_of_gpus(
    resources: ResourcesSpec, claim: ResourceClaimSpec, at: str
) -> Iterator[Finding]:
    """Check a claim for GPUs against resources: its count, gpus_per_pod and gpu_resource."""
    if claim.count is not None and claim.template is None:
        seen = f"is {claim.count}, but gpus_per_pod counts the GPUs"
        yield _claim(f"{at}.count", seen, either(remove(), "write gpus: false for other devices"))
    if not resources.gpus_per_pod:
        seen = f"is 0, but {at} is for GPUs"
        way = write(False, "write gpus: false in the claim", at=f"{at}.gpus")
        yield _claim("resources.gpus_per_pod", seen, either("write their number", way))
    resource = CLASSES.get(claim.device_class or "")
    if resource == "":
        seen = f"is true, but devices of {claim.device_class} are not GPUs"
        yield _claim(f"{at}.gpus", seen, write(False))
    elif resource in CLASS_OF and resource != resources.gpu_resource:
        seen = f"is {resources.gpu_resource}, but devices of {claim.device_class} are {resource}"
        yield _claim("resources.gpu_resource", seen, write(resource))


def _claim(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="resource-claims")


POD_RULES: tuple[Callable[[RoleSpec], Iterator[Finding]], ...] = (
    resource_claims,
    cache_source,
    cache_download,
    grace_period,
)
