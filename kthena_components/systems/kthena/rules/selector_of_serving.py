"""Checks selectors that name a ModelServing among the objects by Kthena's label.

Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go, the labels of pods, and
pkg/kthena-router/controller/modelserver_controller.go: each ready pod that a ModelServer selects
gets requests, whatever it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, each_of, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, has_label, selects
from kthena_components.core.objects.object import MODEL_SERVING, Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, require_known, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.selectors import Selector, selectors

_SHOWN = 5


def _of_servings(cluster: ClusterObjects) -> Iterator[tuple[Selector, Object, list[PodSet]]]:
    """Yield each selector with the ModelServing that it names, and all pods of that."""
    owned: dict[int, list[PodSet]] = {}
    for pods in cluster.pods:
        if pods.owner.group_kind == MODEL_SERVING:
            owned.setdefault(pods.owner.index, []).append(pods)
    servings = cluster.named(MODEL_SERVING)
    for each in selectors(cluster) if servings else ():
        key = (str(each.owner.namespace), str(each.labels.get(naming.NAME)))
        if serving := servings.get(key):
            yield each, serving, owned.get(serving.index, [])


@each_of(_of_servings)
def selector_of_serving(
    each: Selector, serving: Object, pods: Sequence[PodSet]
) -> Iterator[Finding]:
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
    at = each.owner.at(each.path)
    found = [selects(each.labels, one) for one in pods]
    require_known(at, each.gap, *(() if True in found else (*found, _hidden(serving))))
    if True not in found and pods:
        wrong = _wrong(each.labels, pods)
        shown = ", ".join(f"{k}={display(v)}" for k, v in list(each.labels.items())[:_SHOWN])
        seen = f"selects {shown}, which no pod of ModelServing {display(serving.name)} has"
        if wrong:
            seen += f": none has {wrong[0]}={display(each.labels[wrong[0]])}"
        yield refuse(at, seen, _remedy(wrong, pods))


def _hidden(serving: Object) -> Unknown | None:
    """Explain why the ModelServing may have other pods than those that are known."""
    roles = mapping(serving.spec.get("template")).get("roles")
    return first_unknown(roles, *sequence(roles))


def _wrong(labels: Mapping[str, Any], pods: Sequence[PodSet]) -> list[str]:
    """Return the labels that no pod has; empty if only no pod has all of them."""
    return [
        key
        for key, value in labels.items()
        if all(has_label(one, str(key), value) is False for one in pods)
    ]


def _remedy(wrong: Sequence[str], pods: Sequence[PodSet]) -> str:
    if naming.ROLE in wrong:
        roles = [display(one.added[naming.ROLE]) for one in pods if one.added]
        return f"write a role that it has: {', '.join(dict.fromkeys(roles))}"
    if naming.ENTRY in wrong:
        return 'write "true", which Kthena gives the entry pods'
    return f"remove {wrong[0]}" if wrong else "write labels that one of its pods has"
