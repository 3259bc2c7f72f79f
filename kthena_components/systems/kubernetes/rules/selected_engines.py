"""Checks that the engines behind a Service answer requests at the port that it sends them to."""

from collections.abc import Iterator, Mapping

from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.ports import resolved
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.objects.retained_fields import listening_of
from kthena_components.core.objects.selection import names_serving, selects
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, pairs, sequence, unknown_inside
from kthena_components.core.values.unknown import Unknown

RULE = "selected-engines-answer"
_SERVICE = ("", "Service")


def selected_engines_answer(cluster: ClusterObjects) -> Iterator[Finding]:
    """The engines that a Service selects answer requests at one of its ports.

    An engine listens on its --port, and at the pod's address. Workers of Ray and vLLM with
    --headless answer no requests. Checked are Services with a cluster IP, and pods of which all
    labels are known and in which nothing else may listen. For ModelServings, see
    selected-pods-answer.

    Pass: targetPort 8000 and vllm serve; a selector with worker-index "0" of LeaderWorkerSet.
    Fail: targetPort 8080 and vllm serve; a selector that matches headless workers, too; a Service
    of SGLang without --host, which listens on 127.0.0.1.
    Level: mandatory.
    Source: Kubernetes documentation, Service; vLLM vllm/entrypoints/openai/cli_args.py; SGLang
    sglang/srt/server_args.py.
    """
    by_place: dict[object, list[PodSet]] = {}
    for pods in cluster.pods:
        by_place.setdefault(pods.owner.namespace, []).append(pods)
    for service in cluster.of(_SERVICE):
        selector = service.spec.get("selector")
        skipped = service.spec.get("type") == "ExternalName" or unknown_inside(service.spec)
        if skipped or service.spec.get("clusterIP") == "None" or not mapping(selector):
            continue
        if names_serving(cluster, service, selector) or isinstance(service.namespace, Unknown):
            continue
        wanted = {str(key): value for key, value in pairs(selector)}
        chosen = (pods for pods in by_place.get(service.namespace, ()) if pods.count != 0)
        found = [pods for pods in chosen if _selects(wanted, pods)]
        listed = [(pods, ports) for pods in found if (ports := listening_of(pods.spec))]
        if len(listed) == len(found):
            yield from _judge(service, listed)


def _selects(wanted: Mapping[str, object], pods: PodSet) -> bool:
    """Return whether a selector matches pods for certain: by labels that are known."""
    known = {*pods.labels, *(pods.added or {})}
    return all(key in known for key in wanted) and selects(wanted, pods) is True


def _judge(service: Object, found: list[tuple[PodSet, Listening]]) -> Iterator[Finding]:
    serving = [(pods, ports) for pods, ports in found if isinstance(ports.answers, int)]
    for pods, ports in found:
        numbers = _numbers(service, ports)
        reached = any(ports.may_listen(number) for number in numbers)
        if not numbers or isinstance(ports.answers, Unknown):
            continue
        if ports.local and ports.answers in numbers:
            seen = f"selects the pods of {_title(pods)}, which listen only on {ports.local}"
            yield refuse(
                service.at("spec.selector"), seen, "write --host 0.0.0.0 in their command", RULE
            )
        elif ports.answers is not None and not reached:
            yield _wrong_port(service, pods, ports)
        elif ports.answers is None and serving and _is_for_requests(service, serving):
            seen = f"selects the workers of {_title(pods)}, but {ports.title}"
            yield refuse(
                service.at("spec.selector"), seen, "add a label that only the first pods have", RULE
            )
        else:
            continue
        return


def _numbers(service: Object, ports: Listening) -> list[int]:
    """Return the ports of pods to which a Service sends requests."""
    stated = (
        port.get("targetPort") or port.get("port")
        for port in map(mapping, sequence(service.spec.get("ports")))
        if port.get("protocol") in (None, "TCP")
    )
    numbers = [resolved(port, dict(ports.named)) for port in stated]
    return [number for number in numbers if isinstance(number, int)]


def _is_for_requests(service: Object, serving: list[tuple[PodSet, Listening]]) -> bool:
    return any(ports.answers in _numbers(service, ports) for _, ports in serving)


def _wrong_port(service: Object, pods: PodSet, ports: Listening) -> Finding:
    first = mapping(sequence(service.spec.get("ports"))[0])
    field = "targetPort" if first.get("targetPort") else "port"
    seen = f"is {display(first.get(field))}, but {ports.title} in the pods of {_title(pods)}"
    text = f"write targetPort: {ports.answers}"
    at = service.at("spec.ports[0].targetPort")
    return refuse(
        service.at(f"spec.ports[0].{field}"), seen, write(ports.answers, text, at=at), RULE
    )


def _title(pods: PodSet) -> str:
    return f"{pods.owner.kind} {display(pods.owner.name)}"
