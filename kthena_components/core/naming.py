"""Names and labels of all emitted objects, and their maximum lengths.

A Kubernetes name here is also the end of a Pulumi resource name, so it is its identity: a change
replaces the resource. Names equal Kthena's wherever Kubernetes allows it.
Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go and pkg/apis/workload/v1alpha1/labels.go.
"""  # noqa: E501

import re
from collections.abc import Iterable
from itertools import islice
from posixpath import commonprefix

DNS_LABEL = 63
"""Longest DNS label: a pod's hostname, a Service's name, a label's value."""
STATEFUL_SET_NAME = 52
"""Longest StatefulSet name: its pods have `<name>-<10 characters>` as a label value of at most 63.

Source: kubernetes pkg/controller/history, label controller-revision-hash.
"""
DNS_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
DNS_1123_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

MODEL_SERVING = "kthena:index:ModelServing"
"""Pulumi's type of the component."""

_KTHENA = "modelserving.volcano.sh/"
NAME = f"{_KTHENA}name"
GROUP_NAME = f"{_KTHENA}group-name"
ROLE = f"{_KTHENA}role"
ROLE_ID = f"{_KTHENA}role-id"
ENTRY = f"{_KTHENA}entry"
REVISION = f"{_KTHENA}revision"
ROLE_TEMPLATE_HASH = f"{_KTHENA}role-template-hash"
KTHENA_LABELS = frozenset({NAME, GROUP_NAME, ROLE, ROLE_ID, ENTRY, REVISION, ROLE_TEMPLATE_HASH})
WORKER = "kthena-components/worker"
"""Our label: without one for the workers, two StatefulSets would select each other's pods."""

STACK = "kthena-components/stack"
"""Annotation with the Pulumi stack that an object belongs to."""

POD_GROUP = "scheduling.k8s.io/group-name"
COSCHEDULING = "scheduling.x-k8s.io/pod-group"
"""Label with the PodGroup of the scheduler's coscheduling plugin."""
TASK_SPEC = "volcano.sh/task-spec"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
GANG_MINIMUM = "scheduling.volcano.sh/group-min-member"
"""Annotation with the pods of a gang, for a Deployment or a StatefulSet."""
HOSTNAME = "kubernetes.io/hostname"
"""Label of a Node with its name, which the kubelet adds."""
POD_INDEX = "apps.kubernetes.io/pod-index"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAMES = ("job-name", "batch.kubernetes.io/job-name")
"""Labels with a Job's name: kubernetes pkg/registry/batch/job/strategy.go, generateSelector."""

GROUP_SIZE = "GROUP_SIZE"
ENTRY_ADDRESS = "ENTRY_ADDRESS"
WORKER_INDEX = "WORKER_INDEX"
INJECTED_ENV = (GROUP_SIZE, ENTRY_ADDRESS, WORKER_INDEX)
LWS_GROUP_SIZE = "LWS_GROUP_SIZE"
LWS_ENV = {
    LWS_GROUP_SIZE: GROUP_SIZE,
    "LWS_LEADER_ADDRESS": ENTRY_ADDRESS,
    "LWS_WORKER_INDEX": WORKER_INDEX,
}
"""LeaderWorkerSet's variables, and Kthena's with the same meaning."""
LWS_LABELS = "leaderworkerset.sigs.k8s.io/"
"""Begin of the labels and annotations of LeaderWorkerSets."""
LWS_NAME = f"{LWS_LABELS}name"
LWS_WORKER_INDEX_LABEL = f"{LWS_LABELS}worker-index"


def label_field(key: str) -> str:
    """Return the path of a label of a pod, for a `fieldRef`."""
    return f"metadata.labels['{key}']"


def annotation_field(key: str) -> str:
    """Return the path of an annotation of a pod, for a `fieldRef`."""
    return f"metadata.annotations['{key}']"


def fields_of_pod(key: str) -> tuple[str, str]:
    """Return the paths of a label and of an annotation of a pod with one key."""
    return label_field(key), annotation_field(key)


def group_name(serving: str, group: int) -> str:
    """Name a ServingGroup and its PodGroup."""
    return f"{serving}-{group}"


def role_id(role: str, instance: int) -> str:
    """Name a role instance inside its group; also its Volcano task."""
    return f"{role}-{instance}"


def instance_name(serving: str, group: int, role: str, instance: int) -> str:
    """Name the entry StatefulSet of a role instance and its headless Service."""
    return f"{group_name(serving, group)}-{role_id(role, instance)}"


def entry_name(serving: str, group: int, role: str, instance: int) -> str:
    """Name the entry pod and the Service that ENTRY_ADDRESS resolves to."""
    return f"{instance_name(serving, group, role, instance)}-0"


def worker_set_name(serving: str, group: int, role: str, instance: int) -> str:
    """Name the StatefulSet of the workers of a role instance."""
    return f"{instance_name(serving, group, role, instance)}-w"


def entry_address(serving: str, group: int, role: str, instance: int, namespace: str) -> str:
    """Write the value of ENTRY_ADDRESS: two parts, no `.svc`."""
    return f"{entry_name(serving, group, role, instance)}.{namespace}"


def resource_name(component: str, serving: str, name: str) -> str:
    """Name a Pulumi resource: the component's name and the rest of the object's name."""
    return f"{component}{name.removeprefix(serving)}"


def instance_labels(serving: str, group: int, role: str, instance: int) -> dict[str, str]:
    """Return the labels of all objects of one role instance."""
    return {
        NAME: serving,
        GROUP_NAME: group_name(serving, group),
        ROLE: role,
        ROLE_ID: role_id(role, instance),
    }


NAME_LIMIT = 253
HELM_RELEASE = "release-name"
"""What `helm template` calls a release without a name; charts put it into the names of objects."""


def least_length(name: str) -> int:
    """Return the length of a name; a release that Helm named itself may have one character."""
    return len(name.replace(HELM_RELEASE, "r"))


def dns_name(text: str) -> str:
    """Turn a string into a DNS-1123 name: lower case, with a dash for each other character."""
    return re.sub(r"[^a-z0-9]", "-", text.lower()).strip("-")


def is_dns_name(text: str) -> bool:
    """Return whether a string is a DNS-1123 subdomain."""
    parts = text.split(".")
    return len(text) <= NAME_LIMIT and all(DNS_1123_LABEL.fullmatch(part) for part in parts)


_SHORT = 4
"""Names of objects with fewer letters, or parts of names, may be alike on purpose."""
_MOST_NAMES = 1000


def name_slip_of(word: str, known: Iterable[str]) -> str | None:
    """Return the name of an object that another one is with one letter wrong, or with two swapped.

    Names that differ in a digit, or in the whole of a short part, are meant to differ: `cache-1`
    and `cache-2`, `team-a` and `team-b`. At most 1,000 names are compared.
    """
    return next((one for one in islice(known, _MOST_NAMES) if _is_slip(word, one)), None)


def _is_slip(word: str, other: str) -> bool:
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    start = len(commonprefix((word, other)))
    end = len(commonprefix((word[start:][::-1], other[start:][::-1])))
    own, its = (each[start : len(each) - end] for each in (word, other))
    swapped = sorted(own) == sorted(its) and len(own) == len("ab")
    if not (swapped or max(len(own), len(its)) == 1) or any(map(str.isdigit, own + its)):
        return False
    if not any(map(str.isalpha, own + its)):
        return True  # `models_cache` for `models-cache`
    return min(_part_around(each, start) for each in (word, other)) >= _SHORT - swapped


def _part_around(name: str, at: int) -> int:
    """Return the length of the part between dashes and dots in which a position is."""
    before = max(name.rfind(mark, 0, at) for mark in "-.") + 1
    after = [found for mark in "-." if (found := name.find(mark, at)) >= 0]
    return min(after, default=len(name)) - before
