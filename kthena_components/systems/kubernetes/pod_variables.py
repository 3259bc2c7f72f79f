"""What the pods of Kubernetes' own workloads learn beside their templates, for `convert`.

Source: kubernetes pkg/controller/statefulset/stateful_set_utils.go updateIdentity, and
pkg/controller/job/indexed_job_utils.go addCompletionIndexEnvVariable.
"""

import re

from kthena_components.core import naming
from kthena_components.core.objects.object import Object
from kthena_components.core.plan.controller_variables import Told
from kthena_components.core.values.read import is_name, mapping, name_of

COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
_INDEX = "batch.kubernetes.io/job-completion-index"
COMPLETION_FIELDS = (f"metadata.annotations['{_INDEX}']", f"metadata.labels['{_INDEX}']")


def first_pod(host: str, domain: object, namespace: object) -> str:
    """Return the pattern of a pod's address: `chat-0.chat`, with more of its domain or less."""
    inside = re.escape(str(namespace)) if is_name(namespace) else "default"
    rest = rf"(?:\.{inside}(?:\.svc(?:\.cluster\.local)?)?)?"
    return rf"(?<![\w.-]){re.escape(host)}\.{re.escape(str(domain))}{rest}(?![\w-])"


def tells_of_set(found: Object) -> Told:
    """Return what a StatefulSet tells its pods: their names end with their numbers."""
    first = mapping(found.spec.get("ordinals")).get("start")
    if first is not None and first != 0:
        return Told()
    domain = found.spec.get("serviceName")
    address = first_pod(f"{name_of(found.body)}-0", domain, found.metadata.get("namespace"))
    return Told(
        fields=(f"metadata.labels['{naming.POD_INDEX}']",),
        numbered_names=True,
        addresses=(address,) if is_name(domain) else (),
    )


def tells_of_job(_found: Object) -> Told:
    """Return what a Job tells its pods: their index."""
    return Told(ordinal=(COMPLETION_INDEX,), fields=COMPLETION_FIELDS)
