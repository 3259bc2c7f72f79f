"""KubeRay's rules about a RayJob. A rule's docstring documents it."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, refuse
from kthena_components.core.remedies import either, or_more, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.embedded import read_yaml_text
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    text,
    unknown_inside,
    whole,
)
from kthena_components.core.values.unknown import known
from kthena_components.systems.ray.view import RayView

_CLUSTER = "ray.io/cluster"
_READ = (
    "backoffLimit",
    "clusterSelector",
    "shutdownAfterJobFinishes",
    "submissionMode",
    "submitterConfig",
    "suspend",
    "ttlSecondsAfterFinished",
)


def ray_job(view: RayView) -> Iterator[Finding]:
    """A RayJob describes or selects a cluster, and its other fields fit to that.

    With a selected cluster, it has no suspend, no backoffLimit above 0 and no SidecarMode. suspend
    and ttlSecondsAfterFinished need shutdownAfterJobFinishes.

    Pass: rayClusterSpec, shutdownAfterJobFinishes true, ttlSecondsAfterFinished 60.
    Fail: neither rayClusterSpec nor clusterSelector; suspend without shutdownAfterJobFinishes.
    Level: mandatory. KubeRay starts nothing for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayJobSpec, validateDeletionConfiguration.
    """
    spec = view.object.spec
    require_known("spec", unknown_inside(*(spec.get(name) for name in _READ)))
    selected, shut = mapping(spec.get("clusterSelector")), spec.get("shutdownAfterJobFinishes")
    wait, tries = whole(spec.get("ttlSecondsAfterFinished")), whole(spec.get("backoffLimit"))
    if spec.get("rayClusterSpec") is None and not selected:
        seen, remedy = "has neither rayClusterSpec nor clusterSelector", "describe a cluster"
        yield refuse("spec", seen, remedy)
    if shut is not True and spec.get("suspend") is True:
        yield _not_shut("suspend", "is true", "a suspended job")
    if shut is not True and isinstance(wait, int) and wait > 0 and view.has_since("1.4"):
        yield _not_shut("ttlSecondsAfterFinished", f"is {wait}", "this")
    if isinstance(tries, int) and tries < 0:
        yield refuse("spec.backoffLimit", f"is {tries}", or_more(0))
    if selected:
        yield from _selected(view, spec, selected)
    yield from _submitted(view, spec, tries if isinstance(tries, int) else 0)


def _not_shut(name: str, what: str, whose: str) -> Finding:
    seen = f"{what}, but {whose} needs shutdownAfterJobFinishes true"
    shut = "spec.shutdownAfterJobFinishes"
    remedy = either(write(True, "set shutdownAfterJobFinishes: true", at=shut), remove())
    return refuse(f"spec.{name}", seen, remedy)


def _selected(
    view: RayView, spec: Mapping[str, Any], selected: Mapping[str, Any]
) -> Iterator[Finding]:
    path = "spec.clusterSelector"
    if spec.get("suspend") is True:
        yield refuse("spec.suspend", "is true, but clusterSelector is given", remove())
    if selected.get(_CLUSTER) in (None, ""):
        yield refuse(path, f"has no {_CLUSTER}", "write the name of the cluster there")
    if spec.get("submissionMode") == "SidecarMode":
        remedy = write("K8sJobMode", "write K8sJobMode")
        seen = "is SidecarMode, but clusterSelector is given"
        yield refuse("spec.submissionMode", seen, remedy)
    tries = whole(spec.get("backoffLimit"))
    if isinstance(tries, int) and tries > 0 and view.has_since("1.6"):
        seen = f"is {tries}, but a job on a selected cluster is tried once"
        yield refuse("spec.backoffLimit", seen, remove())


def _submitted(view: RayView, spec: Mapping[str, Any], tries: int) -> Iterator[Finding]:
    mode = spec.get("submissionMode")
    if mode == "InteractiveMode" and tries > 0 and view.has_since("1.4"):
        seen = f"is {tries}, but an interactive job is tried once"
        yield refuse("spec.backoffLimit", seen, remove())
    if mode != "SidecarMode":
        return
    for name in ("submitterPodTemplate", "submitterConfig"):
        if spec.get(name) is not None:
            seen = "is given, but with SidecarMode no pod of its own submits the job"
            yield refuse(
                f"spec.{name}",
                seen,
                either(remove(), write("K8sJobMode", "write K8sJobMode", at="spec.submissionMode")),
            )
    policy = view.head.pod_spec.get("restartPolicy")
    if policy not in (None, "", "Never") and not first_unknown(policy):
        seen = f"is {display(policy)}, but with SidecarMode the head is not restarted"
        path = f"{view.head.path}.template.spec.restartPolicy"
        yield refuse(path, seen, either(write("Never", "write Never"), remove("leave it out")))


def ray_runtime_env(view: RayView) -> Iterator[Finding]:
    """The runtime environment of a RayJob is a YAML map.

    Pass: runtimeEnvYAML "pip: [vllm]".
    Fail: runtimeEnvYAML "vllm".
    Level: mandatory. KubeRay does not submit the job.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayJobSpec; dashboardclient UnmarshalRuntimeEnvYAML.
    """
    stated, path = view.object.spec.get("runtimeEnvYAML"), "spec.runtimeEnvYAML"
    read = read_yaml_text(stated, "runtimeEnvYAML")
    read = known(read, path)
    if isinstance(text(stated), str) and not isinstance(read, dict | None):
        seen = f"is {display(stated)}, which is not a YAML map"
        yield refuse(path, seen, "write for example 'pip: [vllm]'")
