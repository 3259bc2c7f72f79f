"""The rule object-twice."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown


def object_twice(cluster: ClusterObjects) -> Iterator[Finding]:
    """No two objects of a cluster have the same API group, kind, namespace and name.

    Pass: a StatefulSet and a Service that are both named chat.
    Fail: two Services named chat in one namespace: the second overwrites the first.
    Level: mandatory.
    Source: Kubernetes documentation, Object Names and IDs.
    """
    first: dict[tuple[str, str, str, str], Object] = {}
    for entry in cluster.objects:
        name, namespace = entry.name, entry.namespace
        if not (isinstance(name, str) and isinstance(namespace, str) and name and entry.kind):
            continue
        if not isinstance(entry.version, str) or first_unknown(entry.version, entry.kind):
            continue
        other = first.setdefault((*entry.group_kind, namespace, name), entry)
        if other is not entry:
            where = f" in namespace {display(namespace)}" if namespace else ""
            before = other.path or f"object {other.index + 1}"
            yield Finding(
                path=entry.at("metadata.name"),
                seen=f"is {display(name)}, which is also the {entry.kind}{where} of "
                f"{before}, and the "
                "second would overwrite the first",
                remedy="rename or remove one of the two",
            )
