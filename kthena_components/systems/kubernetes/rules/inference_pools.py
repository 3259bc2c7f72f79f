"""The rules about InferencePools: their fields, and what refers to them.

They are inference-pool-fields, route-to-inference-pool, picker-of-inference-pool and
inference-model-served.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.workload import labels_of
from kthena_components.core.findings import Finding, advise, each_of, part_of_rule, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, PodIndex
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.remedies import Change, Remedy, remove, set_option, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import MaybeText, known
from kthena_components.systems.kubernetes.selectors_and_routers import (
    PICKER,
    Router,
    owner_title,
    routers,
)

POOL: GroupKind = ("inference.networking.k8s.io", "InferencePool")
OLD_POOL: GroupKind = ("inference.networking.x-k8s.io", "InferencePool")
PICKER_PORT = 9002
"""The default of the picker's --grpc-port, and of v1alpha2's portNumber."""
_MOST_PORTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A field of one group, and the field that states the same in the other one."""

    own: str
    other: str


_FIELDS = (
    _Pair(own="targetPorts", other="targetPortNumber"),
    _Pair(own="endpointPickerRef", other="extensionRef"),
)
"""The fields of v1, each with its like in v1alpha2."""
_OPTIONAL = "endpointPickerRef"
"""The field of v1 without which release 1.6 accepts a pool."""


def pools(cluster: ClusterObjects) -> Iterator[tuple[Object]]:
    """Return the InferencePools of both groups."""
    yield from ((found,) for group in (POOL, OLD_POOL) for found in cluster.of(group))


@each_of(pools)
def inference_pool_fields(pool: Object) -> Iterator[Finding]:
    """An InferencePool has the fields of its API group.

    In inference.networking.k8s.io it has targetPorts and selector.matchLabels, and may have
    endpointPickerRef: releases before 1.6 required it, but no object states the release. Up to
    eight ports differ from each other. A picker that is a Service has a port. In the older
    inference.networking.x-k8s.io it has targetPortNumber, extensionRef, and labels as selector.

    Pass: v1 with targetPorts and endpointPickerRef.port; v1alpha2 with targetPortNumber.
    Fail: v1 with targetPortNumber; endpointPickerRef without port; the same port twice.
    Level: mandatory. The API server rejects the object, or kubectl and server-side apply do.
    Source: kubernetes-sigs/gateway-api-inference-extension v1.5.0 and v1.6.0
    api/v1/inferencepool_types.go and shared_types.go, v1.3.1 apix/v1alpha2/inferencepool_types.go.
    """
    is_new = pool.group_kind == POOL
    for pair in _FIELDS:
        has, lacks = (pair.own, pair.other) if is_new else (pair.other, pair.own)
        yield from _field(pool, has, lacks)
    yield from _selector(pool, is_new=is_new)
    if is_new:
        yield from _ports(pool)
        yield from _picker(pool)


def _field(pool: Object, has: str, lacks: str) -> Iterator[Finding]:
    """Check one field of a pool's API group, and its counterpart in the other API group."""
    path, wrong = pool.at(f"spec.{has}"), pool.at(f"spec.{lacks}")
    require_known(path, pool.spec.get(has), pool.spec.get(lacks))
    if pool.spec.get(lacks) is not None:
        seen = f"is not a field of InferencePool in {pool.group}, which has {has}"
        stated = None if pool.spec.get(has) is not None else _moved(has, pool.spec[lacks])
        remedy: str = remove()
        if stated is not None:
            changes = (Change(value=stated, path=path), Change(path=wrong))
            remedy = Remedy(f"write {has}: {_shown(stated)}", [changes])
        elif pool.spec.get(has) is None:
            remedy = f"write {has}"
        yield refuse(wrong, seen, remedy)
    elif pool.spec.get(has) is None and has != _OPTIONAL:
        yield refuse(path, f"is missing, but {pool.group} requires it", f"add {has}")


def _moved(field: str, stated: Any) -> Any:
    """Return the value of a field, from what the other group's field states; None if unclear."""
    fields = mapping(stated)
    if field == "targetPorts":
        return [{"number": stated}] if isinstance(whole(stated), int) else None
    if field == "targetPortNumber":
        listed = sequence(stated)
        number = whole(mapping(listed[0]).get("number")) if len(listed) == 1 else None
        return number if isinstance(number, int) else None
    if not isinstance(fields.get("name"), str):
        return None
    kept = {key: fields[key] for key in ("group", "kind", "name", "failureMode") if key in fields}
    if field == "endpointPickerRef":
        return {**kept, "port": {"number": fields.get("portNumber", PICKER_PORT)}}
    port = mapping(fields.get("port")).get("number")
    return kept if port is None else {**kept, "portNumber": port}


def _shown(value: Any) -> str:
    """Write a value as YAML in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list) else f"{value}"


def _selector(pool: Object, *, is_new: bool) -> Iterator[Finding]:
    """Check that a pool's selector has the form of its group: with or without matchLabels."""
    path, selector = pool.at("spec.selector"), pool.spec.get("selector")
    require_known(path, selector)
    labels = mapping(selector).get("matchLabels")
    if is_new and not mapping(labels) and unknown_in(labels) is None:
        flat = mapping(selector)
        stated = bool(flat) and all(isinstance(value, str) for value in flat.values())
        seen = f"has no matchLabels, which {pool.group} requires"
        remedy = write({"matchLabels": dict(flat)}, "write the labels below matchLabels")
        yield refuse(path, seen, remedy if stated else "add matchLabels with the pods' labels")
    elif not is_new and is_map(labels):
        seen = f"has matchLabels, but in {pool.group} the labels stand in selector itself"
        yield refuse(path, seen, write(dict(labels), "write the labels in selector"))


def _ports(pool: Object) -> Iterator[Finding]:
    """Check the ports of a pool: their number, and none of them twice."""
    path, listed = pool.at("spec.targetPorts"), pool.spec.get("targetPorts")
    if not isinstance(listed, list):
        return
    numbers = [known(whole(mapping(each).get("number")), path) for each in listed]
    once = [*dict.fromkeys(number for number in numbers if number is not None)]
    if len(once) < len(numbers) - numbers.count(None):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        seen = f"has {twice} twice, but each port must be unique"
        yield refuse(path, seen, write([{"number": n} for n in once], "write each port once"))
    elif not listed or len(listed) > _MOST_PORTS:
        seen = f"has {len(listed)} ports, but 1 to {_MOST_PORTS} are allowed"
        yield refuse(path, seen, "write the ports of the pods")


def _picker(pool: Object) -> Iterator[Finding]:
    """Check that a picker which is a Service has a port; only other kinds need none."""
    picker, path = pool.spec.get("endpointPickerRef"), pool.at("spec.endpointPickerRef.port")
    if not is_map(picker):
        return
    require_known(path, picker.get("kind"), picker.get("port"))
    if picker.get("kind", "Service") == "Service" and picker.get("port") is None:
        seen = "is missing, but a picker that is a Service needs it"
        text = f"write port: {{number: {PICKER_PORT}}}, or the port of that Service"
        yield refuse(path, seen, write({"number": PICKER_PORT}, text))


ROUTES: tuple[GroupKind, ...] = (
    ("gateway.networking.k8s.io", "HTTPRoute"),
    ("gateway.networking.k8s.io", "GRPCRoute"),
)
_GROUPS: Mapping[str, GroupKind] = {kind[0]: kind for kind in (POOL, OLD_POOL)}


def _others(group: object) -> GroupKind | None:
    """Return the pools of the other group; None if it is neither of the two."""
    return {POOL[0]: OLD_POOL, OLD_POOL[0]: POOL}.get(str(group))


def _only_elsewhere(cluster: ClusterObjects, group: object, key: tuple[object, object]) -> str:
    """Return the other group if only it has the pool; empty if this one has it, or none has."""
    other = _others(group)
    names = (str(key[0]), str(key[1]))
    if other is None or names in cluster.named(_GROUPS[str(group)]):
        return ""
    return other[0] if names in cluster.named(other) else ""


def route_backends(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object, str, Any]]:
    """Return the backends of all routes, each with its path in the route."""
    for kind in ROUTES:
        for route in cluster.of(kind):
            for i, rule in enumerate(map(mapping, sequence(route.spec.get("rules")))):
                for j, backend in enumerate(sequence(rule.get("backendRefs"))):
                    yield cluster, route, f"spec.rules[{i}].backendRefs[{j}]", backend
                for j, one in enumerate(map(mapping, sequence(rule.get("filters")))):
                    mirror, at = mapping(one.get("requestMirror")), f"spec.rules[{i}].filters[{j}]"
                    yield cluster, route, f"{at}.requestMirror.backendRef", mirror.get("backendRef")


_AIBRIX = frozenset({"Deployment", "LeaderWorkerSet", "ModelAdapter", "RayClusterFleet"})


def made_grants(cluster: ClusterObjects) -> Iterator[tuple[str, MaybeText | None]]:
    """Return where AIBrix makes a ReferenceGrant to Services: of its routes, and of its models.

    Source: vllm-project/aibrix pkg/controller/modelrouter/modelrouter_controller.go.
    """
    for one in cluster.objects:
        if one.kind in _AIBRIX and "model.aibrix.ai/name" in labels_of(one.body):
            yield "aibrix-system", text(one.namespace)


@each_of(route_backends)
def route_to_inference_pool(
    cluster: ClusterObjects, route: Object, at: str, stated: Any
) -> Iterator[Finding]:
    """A route names an InferencePool that exists, with its API group.

    Without a group, a gateway looks for a kind of Kubernetes' core, which has no InferencePool.

    Pass: group inference.networking.k8s.io, and an InferencePool of that group.
    Fail: no group; group inference.networking.x-k8s.io, and only a pool of the other group; among
    all objects of the cluster, pools of other names only.
    Level: mandatory. A pool of another group is advice if these are not all objects of the cluster,
    and so is a missing one.
    Source: kubernetes-sigs/gateway-api v1.5.1 apis/v1/object_reference_types.go
    BackendObjectReference; kubernetes-sigs/gateway-api-inference-extension v1.5.0 api/v1.
    """
    backend, path = mapping(stated), route.at(f"{at}.group")
    if backend.get("kind") != POOL[1]:
        return
    group = known(text(backend.get("group"), ""), path)
    name, namespace = backend.get("name"), backend.get("namespace", route.namespace)
    key = (str(namespace), str(name))
    if group == "":
        has_old = key in cluster.named(OLD_POOL) and key not in cluster.named(POOL)
        right = (OLD_POOL if has_old else POOL)[0]
        seen = "is missing, so the gateway looks for an InferencePool in Kubernetes' core, which "
        yield refuse(path, f"{seen}has none", write(right, f"write group: {right}"))
        return
    require_known(path, name, namespace)
    if other := _only_elsewhere(cluster, group, (namespace, name)):
        report = refuse if cluster.complete else advise
        seen = f"is {display(group)}, but the InferencePool {display(name)} is in {other}"
        yield report(path, seen, write(other, f"write group: {other}"))
    elif cluster.complete and group in _GROUPS:
        yield from _missing(cluster, _GROUPS[str(group)], route.at(f"{at}.name"), (namespace, name))


def _missing(
    cluster: ClusterObjects, kind: GroupKind, path: str, key: tuple[object, object]
) -> Iterator[Finding]:
    """Report a pool that is not among all objects of the cluster, but others of its namespace."""
    known_pools = cluster.named(kind)
    space, name = map(str, key)
    beside = [own for place, own in known_pools if place == space]
    if beside and (space, name) not in known_pools:
        seen = f"is {display(name)}, but namespace {display(space)} has no such InferencePool"
        remedy = write(beside[0]) if len(beside) == 1 else "write the name of an InferencePool"
        yield advise(path, seen, remedy)


MODELS: tuple[GroupKind, ...] = tuple(
    (OLD_POOL[0], f"Inference{word}") for word in ("Model", "Objective", "ModelRewrite")
)
"""Objects that name an InferencePool in their poolRef, and models that its pods serve."""


def _models(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object]]:
    yield from ((cluster, found) for kind in MODELS for found in cluster.of(kind))


@each_of(_models)
def inference_model_served(cluster: ClusterObjects, found: Object) -> Iterator[Finding]:
    """What names an InferencePool names one that exists, and models that its pods serve.

    The endpoint picker writes the name of a target into the request: of an InferenceModel one of
    targetModels, or else its modelName, of an InferenceModelRewrite a modelRewrite. vLLM answers
    404 for a name that neither its model nor an adapter in --lora-modules has.
    Engines that may load adapters while they run are not compared, nor is SGLang.

    Pass: targetModels [sql-2], and --enable-lora --lora-modules sql-2=/adapters/sql.
    Fail: targetModels [sql-2], and --lora-modules sql=/adapters/sql; poolRef chat, and among all
    objects of the cluster, pools of other names only.
    Level: mandatory; advisory with --enable-lora, since another variable of the image may let it
    load more, if the pods are in another file, which may be an alternative, and for a missing pool.
    Source: kubernetes-sigs/gateway-api-inference-extension apix/v1alpha2: inferencemodel_types.go
    of v0.5.1, inferenceobjective_types.go and inferencemodelrewrite_types.go of v1.3.1; vLLM
    vllm/entrypoints/openai/serving_engine.py _check_model.
    """
    name = text(mapping(found.spec.get("poolRef")).get("name"))
    at = found.at("spec.poolRef.name")
    key = (str(found.namespace), str(known(name, at)))
    require_known(at, found.namespace)
    pools_of = [cluster.named(kind).get(key) for kind in (POOL, OLD_POOL)]
    pool = next(filter(None, pools_of), None)
    if pool is None:
        beside = POOL if cluster.named(POOL) else OLD_POOL
        yield from _missing(cluster, beside, at, key) if cluster.complete and name else ()
        return
    for path, stated in _targets(found):
        yield from _unserved(cluster, found, pool, path, stated)


def _targets(found: Object) -> Iterator[tuple[str, object]]:
    """Yield the names of models that requests get, with their paths."""
    spec = found.spec
    targets = [mapping(each) for each in sequence(spec.get("targetModels"))]
    for index, target in enumerate(targets):
        yield f"spec.targetModels[{index}].name", target.get("name")
    if not targets and "targetModels" not in spec and "modelName" in spec:
        yield "spec.modelName", spec["modelName"]
    for number, rule in enumerate(map(mapping, sequence(spec.get("rules")))):
        for index, target in enumerate(map(mapping, sequence(rule.get("targets")))):
            yield f"spec.rules[{number}].targets[{index}].modelRewrite", target.get("modelRewrite")


@part_of_rule
def _unserved(
    cluster: ClusterObjects, found: Object, pool: Object, path: str, stated: object
) -> Iterator[Finding]:
    """Report a model that no vLLM pod of a pool serves; a loaded adapter may have its name."""
    at = found.at(path)
    require_known(at, stated)
    for pods in _pods_of(cluster, pool) if isinstance(stated, str) and stated else ():
        ports = cluster.listening(pods)
        if ports is None or ports.answers is None or ports.taken is None or stated in ports.taken:
            continue
        shown = listing(map(display, sorted(ports.taken)))
        seen = f"is {display(stated)}, but vLLM in the pods of {owner_title(pods)} serves {shown}"
        loads = f"load {stated} with --lora-modules {stated}=PATH"
        loads = loads if ports.has_adapters else f"add --enable-lora, and {loads}"
        sure = cluster.source_of(found) == cluster.source_of(pods.owner)
        report = refuse if sure and not ports.has_adapters else advise
        one = f"write {min(ports.taken)}" if len(ports.taken) == 1 else f"write one of {shown}"
        yield report(at, seen, f"{one}, or {loads}")
        return


def _pods_of(cluster: ClusterObjects, pool: Object) -> list[PodSet]:
    """Return the pods that a pool selects; none if its labels are not known."""
    selector = mapping(pool.spec.get("selector"))
    labels = mapping(selector.get("matchLabels")) if pool.group_kind == POOL else selector
    wanted = {str(key): value for key, value in labels.items() if isinstance(value, str)}
    if not wanted or len(wanted) != len(labels):
        return []
    index = PodIndex()
    for pods in cluster.pods:
        if pods.count != 0 and pods.owner.namespace == pool.namespace:
            index.add(pods)
    return index.matching(wanted)


def picker_of_inference_pool(cluster: ClusterObjects) -> Iterator[Finding]:
    """The endpoint picker watches the API group in which its InferencePool is.

    It watches the pool with its --pool-name, --pool-namespace and --pool-group.

    Pass: --pool-group=inference.networking.k8s.io, and a pool of that group.
    Fail: --pool-group=inference.networking.x-k8s.io, and only a pool of the other group.
    Level: mandatory; advice if these are not all objects of the cluster.
    Source: kubernetes-sigs/gateway-api-inference-extension v1.5.0 pkg/epp/server/options.go,
    cmd/epp/runner/runner.go extractGKNN.
    """
    for router in routers(cluster):
        if router.program == PICKER:
            yield from _watched(cluster, router.owner.namespace, router)


@part_of_rule
def _watched(cluster: ClusterObjects, namespace: object, router: Router) -> Iterator[Finding]:
    """Report a picker that watches a pool of a group in which the pool is not."""
    group, name = router.value("--pool-group"), router.value("--pool-name")
    where = router.value("--pool-namespace")
    if group is None or name is None or first_unknown(group, name, where, namespace):
        return
    # Without the option, a variable of the container decides.
    other = _only_elsewhere(cluster, group, (where or namespace, name))
    if other and where is not None:
        report = refuse if cluster.complete else advise
        seen = f"has --pool-group {group}, but the InferencePool {display(name)} is in {other}"
        yield report(router.path, seen, set_option("--pool-group", other))
