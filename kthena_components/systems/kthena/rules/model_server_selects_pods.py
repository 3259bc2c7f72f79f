"""Reports ModelServers of Kthena's router that select no pods."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, advise, not_checked
from kthena_components.core.objects.cluster_objects import ClusterObjects, names_serving, selects
from kthena_components.core.objects.object import MODEL_SERVER, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    mapping,
    pairs,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kthena.view import Server
from kthena_components.systems.kubernetes.rules.service_pods import may_make_pods

_MOST_COMPARED = 1_000_000
"""Maximum number of comparisons of pods with ModelServers."""
_MANY = Unknown("there are too many pods and ModelServers to compare them all")


def model_server_selects_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """The labels of a ModelServer match pods, for prefill and for decode, too.

    Nothing is reported if an object of an unknown kind may create pods.

    Pass: modelserving.volcano.sh/name llama, and a ModelServing llama.
    Fail: modelserving.volcano.sh/name lama; modelserving.volcano.sh/role prefil as a prefill label.
    Level: advisory. It applies only if these are all objects of the cluster.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/controller/modelserver_controller.go;
    pkg/model-serving-controller/utils/utils.go, the labels of pods.
    """
    if (
        not cluster.complete
        or cluster.demands
        or any(may_make_pods(o, cluster) for o in cluster.objects)
    ):
        return
    by_namespace: dict[object, list[PodSet]] = {}
    for pods in cluster.pods:
        by_namespace.setdefault(pods.owner.namespace, []).append(pods)
    left, hidden = _MOST_COMPARED, cluster.hidden_pods
    for found in cluster.of(MODEL_SERVER):
        view = cluster.views[found.index]
        for path, wanted in _selectors(view) if isinstance(view, Server) else ():
            if names_serving(cluster, found, wanted):
                continue  # selector-of-serving checks it
            candidates = by_namespace.get(found.namespace, [])
            left -= len(candidates)
            gap = unknown_in(found.namespace) or unknown_in(wanted) or unknown_inside(wanted)
            gap = gap or (_MANY if left < 0 else None)
            labels = {str(key): value for key, value in pairs(wanted)}
            selected = gap or (_selected(labels, candidates) if labels else True) or hidden or False
            if isinstance(selected, Unknown):
                yield not_checked(found.at(path), selected)
            elif not selected:
                shown = ", ".join(f"{key}={display(labels[key])}" for key in list(labels)[:5])
                seen = f"selects {shown}, which no pod in its namespace has"
                yield advise(found.at(path), seen, "write the labels of the pods")


def _selectors(view: Server) -> Iterator[tuple[str, object]]:
    """List the labels that pods need: those of all pods, and with those of each side of a pair."""
    path = "spec.workloadSelector"
    yield f"{path}.matchLabels", view.labels
    for side in ("prefillLabels", "decodeLabels"):
        stated = mapping(view.pair).get(side)
        if mapping(stated):
            yield f"{path}.pdGroup.{side}", {**mapping(view.labels), **mapping(stated)}


def _selected(wanted: Mapping[str, Any], candidates: list[PodSet]) -> bool | Unknown:
    gap: Unknown | None = None
    for pods in candidates:
        found = selects(wanted, pods)
        if found is True:
            return True
        gap = gap or unknown_in(found)
    return gap or False
