"""The configurations of the real webhooks, with addresses instead of Services."""

import base64
from typing import Any

from sandbox.layout import Layout

_OF_A_SET = {
    "matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]
}
_KTHENA = {
    "modelservings": ("workload", "/validate-workload-ai-v1alpha1-modelserving"),
    "modelboosters": ("workload", "/validate/modelbooster"),
    "autoscalingpolicies": ("workload", "/validate-workload-ai-v1alpha1-autoscalingpolicy"),
    "modelroutes": ("networking", "/validate/modelroute"),
    "modelservers": ("networking", "/validate/modelserver"),
}
"""The API group of each kind, without its end, and the path that checks it."""


def configurations(layout: Layout) -> list[dict[str, Any]]:
    """Return the webhook configurations of Kthena and of Volcano.

    Volcano's admission expects the names of its own installation. PodGroups are validated only on
    CREATE: the handler rejects every update, so no PodGroup would ever get a phase.
    """
    volcano = [
        ("podgroups", "scheduling.volcano.sh", "v1beta1", ["CREATE"]),
        ("queues", "scheduling.volcano.sh", "v1beta1", ["CREATE", "UPDATE", "DELETE"]),
        ("hypernodes", "topology.volcano.sh", "v1alpha1", ["CREATE", "UPDATE"]),
    ]
    return [
        *(
            _configuration(
                layout, f"volcano-admission-service-{rule[0]}-validate",
                f"https://{layout.address('volcano')}/{rule[0]}/validate", rule,
            )
            for rule in volcano
        ),
        *(
            _configuration(
                layout, f"kthena-{plural}-validating-webhook",
                f"https://{layout.address('kthena')}{path}",
                (plural, f"{group}.serving.volcano.sh", "v1alpha1", ["CREATE", "UPDATE"]),
            )
            for plural, (group, path) in _KTHENA.items()
        ),
    ]  # fmt: skip


def policies() -> list[dict[str, Any]]:
    """Return a policy that leaves LeaderWorkerSets to their own controller.

    Kthena's would create a ModelServing for each one, whose pods the webhook of LeaderWorkerSet
    rejects.
    """
    name = "leader-worker-sets-have-one-controller"
    group, version = "workload.serving.volcano.sh", "v1alpha1"
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"],
            "resources": ["modelservings"]}  # fmt: skip
    owners = "object.metadata.?ownerReferences.orValue([])"
    validation = {
        "expression": f"{owners}.all(owner, owner.kind != 'LeaderWorkerSet')",
        "message": "LeaderWorkerSets belong to their own controller",
    }
    api = "admissionregistration.k8s.io/v1"
    return [
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [validation],
            },
        },
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def with_address(body: dict[str, Any], layout: Layout, port: str) -> dict[str, Any]:
    """Return a program's own webhook configuration, called at its address.

    Pods without the label of a LeaderWorkerSet are left to themselves, as the webhook does.
    """
    authority = base64.b64encode(layout.authority.read_bytes()).decode()
    webhooks = []
    for webhook in body["webhooks"]:
        path = webhook["clientConfig"]["service"]["path"]
        client = {"url": f"https://{layout.address(port)}{path}", "caBundle": authority}
        chosen = {"objectSelector": _OF_A_SET} if path.endswith("v1-pod") else {}
        webhooks.append({**webhook, "clientConfig": client, "timeoutSeconds": 30, **chosen})
    name = f"{port}-{body['metadata']['name']}"
    return {**body, "metadata": {"name": name}, "webhooks": webhooks}


def _configuration(
    layout: Layout, name: str, url: str, rule: tuple[str, str, str, list[str]]
) -> dict[str, Any]:
    plural, group, version, operations = rule
    authority = base64.b64encode(layout.authority.read_bytes()).decode()
    webhook = {
        "name": f"{plural}.sandbox.kthena-components",
        "clientConfig": {"url": url, "caBundle": authority},
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": operations,
                "resources": [plural],
            }
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 30,  # the maximum, so that a busy machine rejects nothing
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
