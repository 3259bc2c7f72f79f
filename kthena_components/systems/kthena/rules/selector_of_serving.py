"""Checks selectors that name a ModelServing among the objects by Kthena's label.

Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go, the labels of pods, and
pkg/kthena-router/controller/modelserver_controller.go: each ready pod that a ModelServer selects
gets requests, whatever it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, not_checked, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, has_label, selects
from kthena_components.core.objects.object import MODEL_SERVING, Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.selectors import Selector, selectors

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A selector, and the ModelServing that it names."""

    selector: Selector
    serving: Object
    pods: tuple[PodSet, ...]
    """All pods of the ModelServing."""

    @property
    def owner(self) -> Object:
        return self.selector.owner

    @property
    def path(self) -> str:
        return self.selector.path

    @property
    def labels(self) -> Mapping[str, Any]:
        return self.selector.labels


def _of_servings(cluster: ClusterObjects) -> Iterator[_Named]:
    owned: dict[int, list[PodSet]] = {}
    for pods in cluster.pods:
        if pods.owner.group_kind == MODEL_SERVING:
            owned.setdefault(pods.owner.index, []).append(pods)
    servings = cluster.named(MODEL_SERVING)
    for each in selectors(cluster) if servings else ():
        key = (str(each.owner.namespace), str(each.labels.get(naming.NAME)))
        if serving := servings.get(key):
            yield _Named(selector=each, serving=serving, pods=tuple(owned.get(serving.index, ())))


def selector_of_serving(cluster: ClusterObjects) -> Iterator[Finding]:
    """A selector that names a ModelServing among the objects matches some of its pods.

    Selectors are those of Services, ModelServers and InferencePools with the label
    modelserving.volcano.sh/name. Kthena gives each pod that label, and role, role-id, group-name,
    revision and role-template-hash; entry pods also have entry "true". Labels of a template replace
    these.

    Pass: modelserving.volcano.sh/name llama and modelserving.volcano.sh/role prefill, which llama
    has.
    Fail: the role prefil; entry yes; the label entyr.
    Level: mandatory.
    Source: volcano-sh/kthena v1.0.0 pkg/model-serving-controller/utils/utils.go createBasePod,
    GenerateEntryPod.
    """
    for each in _of_servings(cluster):
        at = each.owner.at(each.path)
        found = [selects(each.labels, pods) for pods in each.pods]
        gap = each.selector.gap or (None if True in found else first_unknown(*found, _hidden(each)))
        if gap:
            yield not_checked(at, gap)
        elif True not in found and each.pods:
            shown = ", ".join(f"{k}={display(v)}" for k, v in list(each.labels.items())[:_SHOWN])
            seen = f"selects {shown}, which no pod of ModelServing {display(each.serving.name)} has"
            yield refuse(at, f"{seen}{_which(each)}", _remedy(each))


def _hidden(each: _Named) -> Unknown | None:
    """Explain why the ModelServing may have other pods than those that are known."""
    roles = mapping(each.serving.spec.get("template")).get("roles")
    return first_unknown(roles, *sequence(roles))


def _wrong(each: _Named) -> list[str]:
    """Return the labels that no pod has; empty if only no pod has all of them."""
    return [
        key
        for key, value in each.labels.items()
        if all(has_label(pods, str(key), value) is False for pods in each.pods)
    ]


def _which(each: _Named) -> str:
    wrong = _wrong(each)
    return f": none has {wrong[0]}={display(each.labels[wrong[0]])}" if wrong else ""


def _remedy(each: _Named) -> str:
    roles = [display(pods.added[naming.ROLE]) for pods in each.pods if pods.added]
    wrong = _wrong(each)
    if naming.ROLE in wrong:
        return f"write a role that it has: {', '.join(dict.fromkeys(roles))}"
    if naming.ENTRY in wrong:
        return 'write "true", which Kthena gives the entry pods'
    return f"remove {wrong[0]}" if wrong else "write labels that one of its pods has"
