"""Rules about pod templates, their scheduler and labels, independent of the backend.

Each function is one rule and yields its findings; TEMPLATE_RULES is the list.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.schema.language import UNDECLARED, check_shape
from kthena_components.core.schema.pod import shape_of, unknown_field
from kthena_components.core.spec.serving_spec import ModelServingSpec, RoleSpec
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import is_unresolved

_TEMPLATE = ("metadata", "spec")
_METADATA = ("annotations", "labels")


def worker_template(role: RoleSpec) -> Iterator[Finding]:
    """Workers need a template.

    Pass: worker_replicas 1 and a worker_template; worker_replicas 0.
    Fail: worker_replicas 1 and an entry_template alone.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateWorkerReplicas.
    """
    templates = role.engine is None and role.entry_template is not None
    if templates and role.worker_replicas and role.worker_template is None:
        yield Finding(
            path="worker_template",
            rule="worker-template",
            seen=f"is missing, but worker_replicas is {role.worker_replicas}",
            remedy=either(
                "add worker_template", write(0, "write worker_replicas: 0", at="worker_replicas")
            ),
        )


def template_parts(role: RoleSpec) -> Iterator[Finding]:
    """A template has only metadata and spec, and its metadata only fields that reach the pods.

    Pass: metadata.labels, metadata.annotations and spec.
    Fail: metadata.name; status; the key 1, which YAML reads as a number.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/servinggroup_types.go PodTemplateSpec.
    """
    for field in ("entry_template", "worker_template", "overlay"):
        template = getattr(role, field) or {}
        for part, known in ((template, _TEMPLATE), (template.get("metadata") or {}, _METADATA)):
            path = field if part is template else f"{field}.metadata"
            for key in sorted(key for key in part if isinstance(key, str) and key not in known):
                yield Finding(
                    path=f"{path}.{key}",
                    seen=f"'{key}' is not a field that a pod template passes on to its pods",
                    remedy=_moved(field, key, path)
                    or remove(f"remove it; known: {', '.join(known)}"),
                    rule="template-parts",
                )
        yield from _odd_keys(field, template)


def _moved(template: str, key: str, path: str) -> str | None:
    """Say where a field of pods or of their metadata is written; None if it is no such field."""
    if key in shape_of("PodSpec").fields:
        return f"write it in {template}.spec instead: {template}.spec.{key}"
    if path == template and key in _METADATA:
        return f"write it in {template}.metadata instead: {template}.metadata.{key}"
    return None


def _odd_keys(path: str, value: Any) -> Iterator[Finding]:
    """Reject keys that YAML does not read as text: Kubernetes has no such fields."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _odd_keys(f"{path}[{index}]", item)
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if not isinstance(key, str):
            yield Finding(
                path=path,
                seen=f"has the key {key}, and every key must be text",
                remedy=f"put it in quotes: '{key}'",
                rule="template-parts",
            )
        yield from _odd_keys(f"{path}.{key}", item)


def template_containers(role: RoleSpec) -> Iterator[Finding]:
    """A template from which pods are created has containers.

    Pass: 1 container; no container in the worker_template of 0 workers.
    Fail: containers [] in the entry_template.
    Level: mandatory.
    Source: kubernetes pkg/apis/core/validation/validation.go validateContainers.
    """
    for field, containers in _containers(role):
        if not containers:
            yield Finding(
                path=f"{field}.spec.containers",
                seen="is empty or missing, so there is nothing to run",
                remedy="give at least one container",
                rule="template-containers",
            )


def container_image(role: RoleSpec) -> Iterator[Finding]:
    """An image is a name without blanks.

    Pass: nginx:1.29; no image, which a controller may fill in.
    Fail: an empty name; a name with 1 blank, as in "nginx: 1.29", also as engine.image.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateImageField.
    """
    stated: list[tuple[str, str | None]] = []
    if role.engine is not None:
        stated.append(("engine.image", role.engine.image))
    for field, containers in _containers(role):
        for index, container in enumerate(containers):
            stated.append((f"{field}.spec.containers[{index}].image", container.get("image")))
    for path, image in stated:
        if image is not None and (not image or re.search(r"\s", image)):
            yield Finding(
                path=path,
                seen=f"is '{image}', but the name of an image has no spaces",
                remedy="write it as registry/name:tag",
                rule="container-image",
            )


def _containers(role: RoleSpec) -> Iterator[tuple[str, list[Any]]]:
    """Return the containers of each template from which pods are created."""
    for field in ("entry_template", "worker_template"):
        template = getattr(role, field)
        if template is not None and (field == "entry_template" or role.worker_replicas):
            yield field, (template.get("spec") or {}).get("containers") or []


def template_scheduler(role: RoleSpec, scheduler: str) -> Iterator[Finding]:
    """A template names no other scheduler than its serving, whose scheduler is used.

    Pass: no schedulerName, or volcano in both.
    Fail: schedulerName default-scheduler in a template, scheduler_name volcano of its serving.
    Level: mandatory; not checked if the name is not known yet.
    Source: this package: one scheduler places all pods of a gang.
    """
    for field in ("entry_template", "worker_template", "overlay"):
        stated = ((getattr(role, field) or {}).get("spec") or {}).get("schedulerName")
        if is_unresolved(stated):
            yield Finding(
                path=f"{field}.spec.schedulerName",
                rule="template-scheduler",
                seen="was not checked, because its value is a Pulumi Output, which is known only "
                f"after the deployment; all pods get the serving's scheduler_name, '{scheduler}'",
                level=Level.UNKNOWN,
            )
        elif stated is not None and stated != scheduler:
            yield Finding(
                path=f"{field}.spec.schedulerName",
                rule="template-scheduler",
                seen=f"is {display(stated)}, but all pods get the serving's scheduler_name, "
                f"which is '{scheduler}'",
                remedy=either(remove(), "write it as the serving's scheduler_name"),
            )


def template_fields(role: RoleSpec) -> Iterator[Finding]:
    """The fields of a template are those of a pod in Kubernetes, with their types.

    Pass: nodeSelector; livenessProbe; env value "8", in quotes.
    Fail: node_selector; livenesProbe: the API server would drop them without a word. Env value 8,
    without quotes; tolerations that are no list.
    Level: mandatory. Advisory for a field that resembles none of Kubernetes 1.34: a newer server
    may know it.
    Source: the OpenAPI document of Kubernetes 1.34, io.k8s.api.core.v1.PodSpec.
    """
    for field in ("entry_template", "worker_template", "overlay"):
        spec = (getattr(role, field) or {}).get("spec")
        shape = shape_of("PodSpec", by_crd=False, whole=True, patch=field == "overlay")
        shape = replace(shape, required=())  # template_containers reports missing containers
        for finding in check_shape(spec, shape, f"{field}.spec") if spec else ():
            if finding.seen == UNDECLARED:
                yield unknown_field(finding, rule="template-fields")
            elif finding.level is not Level.UNKNOWN:
                yield replace(finding, rule="template-fields")


def reserved_labels(role: RoleSpec) -> Iterator[Finding]:
    """A template does not set the labels that select the pods.

    Pass: label app of your own.
    Fail: label modelserving.volcano.sh/role.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/labels.go; this package: core/naming.py.
    """
    for field in ("entry_template", "worker_template", "overlay"):
        labels = ((getattr(role, field) or {}).get("metadata") or {}).get("labels") or {}
        for label in sorted((naming.KTHENA_LABELS | {naming.WORKER}).intersection(labels)):
            yield Finding(
                path=f"{field}.metadata.labels",
                rule="reserved-labels",
                seen=f"label '{label}' is set here, but it selects the pods of a group",
                remedy=either(remove(), "use a label of your own"),
            )


def volcano_scheduler(spec: ModelServingSpec) -> Iterator[Finding]:
    """Gang, topology and queue require Volcano: another scheduler would ignore them.

    Pass: scheduler_name volcano with gang_policy.
    Fail: scheduler_name default-scheduler with gang_policy, network_topology or queue.
    Level: mandatory.
    Source: this package: they are fields of Volcano's PodGroup, which no other scheduler reads.
    """
    if spec.scheduler_name == "volcano":
        return
    # Pods that a preset writes have no schedulerName.
    fixed = "preset" in (spec.backend_options or {})
    scheduler = write("volcano", "write scheduler_name: volcano", at="scheduler_name")
    for field in ("gang_policy", "network_topology", "queue"):
        if getattr(spec, field) is not None:
            yield Finding(
                path=field,
                rule="volcano-scheduler",
                seen=f"is given, but scheduler_name is '{spec.scheduler_name}', and only Volcano "
                "reads it",
                remedy=either("" if fixed else scheduler, remove("remove the field")),
            )


def reserved_object_labels(spec: ModelServingSpec) -> Iterator[Finding]:
    """The labels of a serving are none that the package gives its objects.

    Pass: label app.kubernetes.io/part-of.
    Fail: label modelserving.volcano.sh/name.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/labels.go; this package: core/naming.py.
    """
    for label in sorted((naming.KTHENA_LABELS | {naming.WORKER}).intersection(spec.labels)):
        yield Finding(
            path=f"labels.{label}",
            rule="reserved-object-labels",
            seen="is a label by which the objects of a serving are found",
            remedy=either(remove(), "use a label of your own"),
        )


TEMPLATE_RULES: tuple[Callable[[RoleSpec], Iterator[Finding]], ...] = (
    worker_template,
    template_parts,
    template_containers,
    container_image,
    template_fields,
    reserved_labels,
)
"""Every rule except template_scheduler, which also needs the serving's scheduler."""
