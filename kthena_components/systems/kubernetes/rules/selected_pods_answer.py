"""The rule selected-pods-answer."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from kthena_components.core import naming
from kthena_components.core.facts.listening import ON_A_PORT, ON_ALL_ADDRESSES, Listening
from kthena_components.core.facts.ports import resolved
from kthena_components.core.findings import Finding, Level, advise, join_path, part_of_rule, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects, running_pods
from kthena_components.core.objects.object import MODEL_SERVING, Object, PodSet
from kthena_components.core.remedies import set_option, write
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import digits, mapping, require_known, unknown_inside, whole
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.kubernetes.selectors_and_routers import (
    POOLS,
    Selector,
    owner_title,
    selectors,
)

_FIRST_LABELS = {
    "ModelServing": (naming.ENTRY, "true"),
    "LeaderWorkerSet": (naming.LWS_WORKER_INDEX_LABEL, "0"),
}
"""The label of the first pod of each engine, by kind."""
_NUMBER_LABELS = {
    "StatefulSet": naming.POD_INDEX,
    "LeaderWorkerSet": naming.LWS_WORKER_INDEX_LABEL,
    "RoleBasedGroup": "rbg.workloads.x-k8s.io/component-index",
    "Job": naming.COMPLETION_INDEX,
}
"""The label with the number of a pod of a template, by kind. RoleBasedGroup:
api/workloads/constants/label.go."""
_OF_GROUPS = (_NUMBER_LABELS["LeaderWorkerSet"], _NUMBER_LABELS["RoleBasedGroup"])
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_SGLANG_SELECTORS = frozenset({"--selector", "--prefill-selector", "--decode-selector"})
_GATEWAY_PORT = "model.aibrix.ai/port"
"""The label with the port at which AIBrix's gateway asks a pod that it chose."""
_GATEWAY_MODEL = "model.aibrix.ai/name"
"""The label with the only name by which that gateway takes requests for a pod."""
_PORTS = "--data-parallel-multi-port-external-lb"
"""The option with which each copy of the model listens on a port of its own."""


def selected_pods_answer(cluster: ClusterObjects) -> Iterator[Finding]:
    """The pods that get requests answer them at the port to which these are sent.

    Requests come from Services with a cluster IP, ModelServers, InferencePools and routers that
    look for pods (SGLang's, and the one of vLLM's production stack), and go to all pods with their
    labels, of any kind. An engine listens on its --port; vLLM and trtllm-serve without one on 8000,
    SGLang on 30000, a server of Dynamo as at probe-port. It listens on its --host; without one,
    SGLang and trtllm-serve only on the loopback address. Workers of Ray, vLLM with --headless and
    the other ranks of SGLang answer none, also where all ranks are the pods of one template. A
    Service may have ports for other purposes: one that fits is enough; by a port's name, only pods
    with that name get requests. Each port of an InferencePool is an endpoint of its own, and must
    fit. Not checked are pods in which something else may listen. On the network of their nodes
    other pods may listen, so this is advice if these are not all objects of the cluster, and not
    reported if others are there, too.

    Pass: targetPort 8000 and vllm serve; a selector that only matches the first pod of each engine.
    Fail: targetPort 8080 and vllm serve; a Service, and SGLang without --host 0.0.0.0; a Service
    that selects both pods of a StatefulSet with --nnodes 2, which have no readinessProbe; a router
    with --service-discovery-port 8000, and SGLang's default port; targetPorts 8000 to 8007, and
    vLLM with --data-parallel-hybrid-lb, which listens on 8000 only; the label model.aibrix.ai/name:
    chat, and vLLM with --served-model-name llama.
    Level: mandatory; advisory for the labels of pods that AIBrix's gateway reads, and for a router
    of SGLang that also selects its ranks above 0, which answer probes and send 404 to requests.
    Source: Kubernetes documentation, Service; volcano-sh/kthena v1.0.0
    pkg/kthena-router/controller/modelserver_controller.go and router/router.go; vLLM
    vllm/entrypoints/openai/cli_args.py; SGLang sglang/srt/server_args.py; TensorRT-LLM
    tensorrt_llm/commands/serve.py; kubernetes-sigs/gateway-api-inference-extension v1.5.0
    api/v1/inferencepool_types.go targetPorts; llm-d pull request 1855;
    sgl-router/py_src/sglang_router/router_args.py, sglang
    pull request 9568 and ome-projects/ome pull request 138; vllm-project/aibrix pkg/utils/pod.go
    GetModelPortForPod, and pkg/cache/informers.go with pkg/plugins/gateway/gateway_req_body.go
    validateModelAvailability; vLLM _check_model; vllm-project/production-stack
    src/vllm_router/parsers/parser.py.
    """
    yield from _selected(cluster)
    yield from _labelled(cluster)


def _selected(cluster: ClusterObjects) -> Iterator[Finding]:
    """Check the pods of each selector that sends requests."""
    asking = [one for one in selectors(cluster) if one.targets and one.labels and not one.gap]
    indexes = running_pods(cluster) if asking else {}
    on_hosts = [pods for pods in cluster.pods if pods.spec.get("hostNetwork")] if asking else []
    for each in asking:
        wanted = {str(key): value for key, value in each.labels.items() if isinstance(value, str)}
        index = indexes.get(each.place)
        if index is not None and len(wanted) == len(each.labels):
            listed = [(pods, cluster.listening(pods)) for pods in index.matching(wanted)]
            found = [(pods, ports) for pods, ports in listed if ports]
            sure = [(pods, ports) for pods, ports in found if not ports.on_host]
            yield from _check(each, sure)
            if len(found) > len(sure) == 0:
                yield from _on_hosts(cluster, each, found, on_hosts)


def _labelled(cluster: ClusterObjects) -> Iterator[Finding]:
    """Report labels for AIBrix's gateway: ports on which the pods do not listen, other models."""
    for pods in cluster.pods:
        port, model = (_written(pods, label) for label in (_GATEWAY_PORT, _GATEWAY_MODEL))
        if (port is None and model is None) or pods.count == 0:
            continue
        ports = cluster.listening(pods)
        if ports is None or ports.on_host or not isinstance(ports.answers, int):
            continue
        inner = pods.written or partial(join_path, pods.path)
        at = pods.owner.at(inner("metadata.labels"))
        number = digits(port) if port is not None else None
        if number is not None and not ports.may_listen(number):
            seen = f"has {_GATEWAY_PORT} {display(port)}, where AIBrix's gateway asks the pod that "
            seen += f"a routing strategy chose, but {ports.title}"
            yield advise(at, seen, f'write {_GATEWAY_PORT}: "{ports.answers}"')
        # Adapters that are loaded later have labels of their own.
        names = ports.taken if model is not None and not ports.has_adapters else None
        if names is not None and model not in names:
            seen = f"has {_GATEWAY_MODEL} {display(model)}, the only name that AIBrix's gateway "
            seen += f"takes in requests, but vLLM serves {listing(map(display, sorted(names)))}"
            yield advise(at, f"{seen} and answers 404", f"add --served-model-name {model}")


def _written(pods: PodSet, label: str) -> str | None:
    """Return the value of a label, if it is known."""
    value = pods.labels.get(label)
    return value if isinstance(value, str) and not is_unresolved(value) else None


def _on_hosts(
    cluster: ClusterObjects,
    each: Selector,
    found: list[tuple[PodSet, Listening]],
    on_hosts: Sequence[PodSet],
) -> Iterator[Finding]:
    """Check pods on the network of their nodes, on which no other pods are."""
    own = {id(pods) for pods, _ in found}
    if any(id(pods) not in own for pods in on_hosts):
        return
    for finding in _check(each, found):
        sure = cluster.complete or finding.level is not Level.MANDATORY
        yield finding if sure else replace(finding, level=Level.ADVISORY)


@part_of_rule
def _check(each: Selector, found: list[tuple[PodSet, Listening]]) -> Iterator[Finding]:
    """Compare the port of a selector with the ports at which the selected pods answer.

    At most one kind of mistake is reported, the surest first.
    """
    at = each.owner.at(each.targets[0].path)
    if found:
        require_known(at, *(one.stated for one in each.targets), *(p.answers for _, p in found))
    with_port = [(pods, ports) for pods, ports in found if _numbers(each, ports)]
    if found and not with_port:
        yield _no_such_name(each, found[0][1])
    wrong = [(pods, ports) for pods, ports in with_port if not _reaches(each, ports)]
    answer_elsewhere = [(pods, ports) for pods, ports in wrong if ports.answers is not None]
    silent_pods = [(pods, ports) for pods, ports in wrong if ports.answers is None]
    loopback_only = [(pods, ports) for pods, ports in with_port if _is_hidden(each, ports)]
    if answer_elsewhere:
        yield _wrong_port(each, *answer_elsewhere[0])
    elif closed := list(_closed(each, with_port)):
        yield from closed
    elif loopback_only:
        pods, ports = loopback_only[0]
        seen = f"matches {_title(pods)}, but {ports.hidden_title}, for the pod itself only"
        yield refuse(each.owner.at(each.path), seen, ON_ALL_ADDRESSES)
    elif silent := [
        (pods, ports) for pods, ports in with_port if _is_for_silent(each, pods, ports)
    ]:
        yield _selects_silent(each, *silent[0])
    elif (
        silent_pods
        and not each.option
        and (len(silent_pods) == len(with_port) or _is_for_requests(each, with_port))
    ):
        pods, ports = silent_pods[0]
        seen = f"matches {_title(pods)}, but {ports.title}"
        remedy = ON_A_PORT if ports.socket else _only_first(each, pods)
        yield refuse(each.owner.at(each.path), seen, remedy)
    elif len(silent_pods) < len(with_port) and each.option in _SGLANG_SELECTORS:
        yield from _healthy_ranks(each, silent_pods)


def _healthy_ranks(each: Selector, workers: list[tuple[PodSet, Listening]]) -> Iterator[Finding]:
    """Report ranks of SGLang that tell a router that they are healthy, and answer nothing else."""
    for pods, ports in workers:
        if ports.engine == "sglang" and ports.health in _numbers(each, ports):
            seen = f"has {each.option} that matches {_title(pods)}, which are healthy, but "
            key, value = _FIRST_LABELS.get(pods.owner.kind, ("", ""))
            remedy = f"{'write' if key in each.labels else 'add'} {key}={value}"
            remedy = remedy if key else "write labels that only the first pods have"
            yield advise(
                each.owner.at(each.path), f"{seen}{ports.title}", f"{remedy} in {each.option}"
            )
            return


def _numbers(each: Selector, ports: Listening) -> list[int]:
    """Return the ports at which pods get requests; a name that they do not have sends them none."""
    numbers = [resolved(target.stated, dict(ports.named)) for target in each.targets]
    return [number for number in numbers if isinstance(number, int)]


def _reaches(each: Selector, ports: Listening) -> bool:
    return any(ports.may_listen(number) for number in _numbers(each, ports))


def _closed(each: Selector, found: list[tuple[PodSet, Listening]]) -> Iterator[Finding]:
    """Report ports of an InferencePool on which pods with other ports of it do not listen.

    Each of its ports is an endpoint of its own.
    """
    if each.owner.group_kind not in POOLS:
        return
    for pods, ports in found:
        numbers = _numbers(each, ports)
        closed = [number for number in numbers if not ports.may_listen(number)]
        if closed and ports.answers in numbers:
            seen = (
                f"has {_ports_of(closed)}, but {ports.title} in the pods of {owner_title(pods)}, "
            )
            seen += "and each port gets its part of the requests"
            open_ports = [{"number": number} for number in numbers if number not in closed]
            text = f"write the others only, or listen on them with {_PORTS}"
            yield refuse(each.owner.at("spec.targetPorts"), seen, write(open_ports, text))
            return


def _ports_of(numbers: list[int]) -> str:
    more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
    return f"{numbers[0]}{more}"


def _is_hidden(each: Selector, ports: Listening) -> bool:
    """Return whether requests are sent to a server that only listens on a loopback address."""
    return bool(ports.hidden_title) and ports.answers in _numbers(each, ports)


def _is_for_silent(each: Selector, pods: PodSet, ports: Listening) -> bool:
    """Return whether requests are sent to pods that do not answer, as another one does."""
    label = _NUMBER_LABELS.get(pods.owner.kind)
    if ports.only is None or label is None or ports.answers not in _numbers(each, ports):
        return False
    if unknown_inside(pods.owner.spec.get("ordinals")) is not None:
        return False
    if each.option and label in _OF_GROUPS:  # routers may ask pods for their models first
        return False
    number = str(_number(pods, ports))
    stated = {label: number, _POD_NAME: f"{pods.owner.name}-{number}"}
    return all(each.labels.get(key) != value for key, value in stated.items())


def _number(pods: PodSet, ports: Listening) -> int:
    """Return the number of the pod that answers."""
    start = whole(mapping(pods.owner.spec.get("ordinals")).get("start"))
    return (start if isinstance(start, int) else 0) + (ports.only or 0)


def _selects_silent(each: Selector, pods: PodSet, ports: Listening) -> Finding:
    label, number = _NUMBER_LABELS[pods.owner.kind], _number(pods, ports)
    seen = f"matches the pods of {owner_title(pods)}, of which only the one with number {number} "
    seen += "answers requests"
    verb = "write" if label in each.labels else "add"
    return refuse(each.owner.at(each.path), seen, f'{verb} {label}: "{number}"')


def _is_for_requests(each: Selector, found: list[tuple[PodSet, Listening]]) -> bool:
    """Return whether an engine answers on one of the ports, and not only a dashboard."""
    return any(ports.answers in _numbers(each, ports) for _, ports in found)


def _no_such_name(each: Selector, ports: Listening) -> Finding:
    target = each.targets[0]
    seen = f"is {display(target.stated)}, but no port of the pods' container has this name"
    remedy = "give that name to a port of the container"
    if ports.answers is not None:
        remedy = write(ports.answers, f"write {ports.answers}")
    return refuse(each.owner.at(target.path), seen, remedy)


def _wrong_port(each: Selector, pods: PodSet, ports: Listening) -> Finding:
    """Report a port at which the selected pods do not answer."""
    target, number = next(
        (target, number)
        for target in each.targets
        if isinstance(number := resolved(target.stated, dict(ports.named)), int)
    )
    if target.option:
        shown = f"{number} by default" if target.by_default else f"{number}"
        seen = f"has {target.option} {shown}, but {ports.title} in the pods of {owner_title(pods)}"
        return refuse(each.owner.at(target.path), seen, set_option(target.option, ports.answers))
    named = f" ({number})" if isinstance(target.stated, str) else ""
    seen = (
        f"is {display(target.stated)}{named}, but {ports.title} in the pods of {owner_title(pods)}"
    )
    field = "targetPort: " if target.path.startswith("spec.ports[") else ""
    field = field if target.path.endswith(".port") else ""
    return refuse(
        each.owner.at(target.path), seen, write(ports.answers, f"write {field}{ports.answers}")
    )


def _only_first(each: Selector, pods: PodSet) -> str:
    """Return how to select only the first pod of each engine."""
    key, value = _FIRST_LABELS.get(pods.owner.kind, ("", ""))
    if not key:
        return "write labels that only the pods have that answer requests"
    if key in each.labels and pods.owner.group_kind == MODEL_SERVING:
        return f"remove the label {key} from their template"
    return f'{"write" if key in each.labels else "add"} {key}: "{value}"'


def _title(pods: PodSet) -> str:
    """Name the pods: the workers of role 'decode', the pods of Deployment 'chat'."""
    part = pods.path.rpartition(".")[2]
    kind = {"workerTemplate": "workers", "entryTemplate": "entry pods", "leaderTemplate": "leaders"}
    if pods.owner.group_kind == MODEL_SERVING:
        return f"the {kind[part]} of role {display((pods.added or {}).get(naming.ROLE))}"
    return f"the {kind.get(part, 'pods')} of {owner_title(pods)}"


_ENDINGS = {
    MODEL_SERVING: r"-\d+-.+-\d+-\d+",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): r"(?:-\d+)?",
}
"""How the names of Services go on that controllers make: Kthena of each entry pod, LWS of an object
or of each group.

Source: volcano-sh/kthena v1.0.0 pkg/model-serving-controller/utils/utils.go; kubernetes-sigs/lws
v0.9.0 pkg/utils/controller/controller_utils.go CreateHeadlessServiceIfNotExists.
"""


def makes_service(owner: Object, service: str) -> bool:
    """Return whether the controller of a custom resource may make a Service of a name."""
    name, ending = owner.name, _ENDINGS.get(owner.group_kind)
    if not isinstance(name, str) or ending is None:
        return not isinstance(name, str) or service.startswith(name)
    return re.fullmatch(f"{re.escape(name)}{ending}", service) is not None
