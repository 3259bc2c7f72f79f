"""Resource claims of a role: what its pods name, and the ResourceClaimTemplates of its requests.

The name of a template ends with a hash of its content: Kubernetes accepts no change of one, and a
pod keeps the devices of the template that it was created with.

Source: kubernetes staging/src/k8s.io/api/resource/v1/types.go ResourceClaimTemplateSpec.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from kthena_components.core.facts.claims import TEMPLATE
from kthena_components.core.facts.context import ReferencedObjects
from kthena_components.core.hardware.gpu_table import CLASS_OF
from kthena_components.core.spec.serving_spec import ResourceClaimSpec, ResourcesSpec, RoleSpec

API_VERSION = f"{TEMPLATE[0]}/v1"
"""Served since Kubernetes 1.34."""
_DIGITS = 8


def pod_claims(role: RoleSpec, owner: str) -> list[dict[str, Any]]:
    """Return the resourceClaims of each pod of a role.

    Args:
        role: The role.
        owner: The serving, or the group of it, that begins the names of its templates.
    """
    return [
        {"name": claim.name, "resourceClaimTemplateName": _template_name(role, claim, owner)}
        for claim in _claims(role)
    ]


def claim_templates(role: RoleSpec, namespace: str, owner: str) -> tuple[dict[str, Any], ...]:
    """Write the ResourceClaimTemplates of the claims that name a device class."""
    requests = ((claim, _request(role, claim)) for claim in _claims(role))
    return tuple(
        _template(_template_name(role, claim, owner), namespace, request)
        for claim, request in requests
        if claim.template is None
    )


def stated_claims(role: RoleSpec, written: Iterable[Mapping[str, Any]]) -> ReferencedObjects:
    """Return what is known of the templates that the pods of a role name.

    An existing template is not read: its devices are those that the role states.
    """
    known = ReferencedObjects(kinds=(TEMPLATE,))
    for body in written:
        known.add(body)
    resources = role.resources or ResourcesSpec()
    for claim in resources.claims:
        if claim.template is not None:
            request = _request(role, claim, CLASS_OF.get(resources.gpu_resource, ""))
            listed = request if claim.gpus else None
            known.add(_template(claim.template, "", listed))
    return known


def _claims(role: RoleSpec) -> list[ResourceClaimSpec]:
    return (role.resources or ResourcesSpec()).claims if role.engine else []


def _request(role: RoleSpec, claim: ResourceClaimSpec, usual: str = "") -> dict[str, Any]:
    resources = role.resources or ResourcesSpec()
    exactly: dict[str, Any] = {
        "deviceClassName": claim.device_class or usual,
        "count": resources.gpus_per_pod if claim.gpus else claim.count or 1,
    }
    if claim.selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in claim.selectors]
    return {"name": claim.name, "exactly": exactly}


def _template_name(role: RoleSpec, claim: ResourceClaimSpec, owner: str) -> str:
    if claim.template is not None:
        return claim.template
    text = json.dumps(_request(role, claim), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{owner}-{role.name}-{claim.name}-{digest}"


def _template(name: str, namespace: str, request: Mapping[str, Any] | None) -> dict[str, Any]:
    space = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": API_VERSION,
        "kind": TEMPLATE[1],
        "metadata": {"name": name, **space},
        "spec": {"spec": {"devices": {"requests": [request] if request else []}}},
    }
