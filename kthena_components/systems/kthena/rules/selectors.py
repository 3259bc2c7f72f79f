"""Checks selectors that name a ModelServing of the stack: which of its pods get requests.

Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go, the labels of pods, and
pkg/kthena-router/controller/modelserver_controller.go: each ready pod that a ModelServer selects
gets requests, whatever it is.
"""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.ports import resolved
from kthena_components.core.findings import Finding, not_checked, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import PodSet
from kthena_components.core.objects.selection import has_label, selects
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, sequence, unknown_in
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kthena.kept import listening_of
from kthena_components.systems.kthena.selectors import Selector, selectors

_SHOWN = 5


def selector_of_serving(cluster: ClusterObjects) -> Iterator[Finding]:
    """A selector that names a ModelServing of the stack matches some of its pods.

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
    for each in selectors(cluster):
        at = each.owner.at(each.path)
        found = [selects(each.labels, pods) for pods in each.pods]
        gap = each.gap or (None if True in found else first_unknown(*found, _hidden(each)))
        if gap:
            yield not_checked(at, gap)
        elif True not in found and each.pods:
            shown = ", ".join(f"{k}={display(v)}" for k, v in list(each.labels.items())[:_SHOWN])
            seen = f"selects {shown}, which no pod of ModelServing {display(each.serving.name)} has"
            yield refuse(at, f"{seen}{_which(each)}", _remedy(each))


def _hidden(each: Selector) -> Unknown | None:
    """Explain why the ModelServing may have other pods than those that are known."""
    roles = mapping(each.serving.spec.get("template")).get("roles")
    return first_unknown(roles, *sequence(roles))


def _wrong(each: Selector) -> list[str]:
    """Return the labels that no pod has; empty if only no pod has all of them."""
    return [
        key
        for key, value in each.labels.items()
        if all(has_label(pods, str(key), value) is False for pods in each.pods)
    ]


def _which(each: Selector) -> str:
    wrong = _wrong(each)
    return f": none has {wrong[0]}={display(each.labels[wrong[0]])}" if wrong else ""


def _remedy(each: Selector) -> str:
    roles = [display(pods.added[naming.ROLE]) for pods in each.pods if pods.added]
    wrong = _wrong(each)
    if naming.ROLE in wrong:
        return f"write a role that it has: {', '.join(dict.fromkeys(roles))}"
    if naming.ENTRY in wrong:
        return 'write "true", which Kthena gives the entry pods'
    return f"remove {wrong[0]}" if wrong else "write labels that one of its pods has"


def selected_pods_answer(cluster: ClusterObjects) -> Iterator[Finding]:
    """The pods of a ModelServing that get requests answer them at the port to which these are sent.

    Requests come from Services with a cluster IP, ModelServers and InferencePools that name the
    ModelServing. An engine listens on its --port; vLLM without one on 8000, SGLang on 30000.
    Workers of Ray, vLLM with --headless and the other ranks of SGLang answer none. A Service may
    have ports for other purposes: one that fits is enough; by a port's name, only pods with that
    name get requests. Not checked are pods in which something else may listen.

    Pass: workloadPort 8000 and vllm serve; selectors with modelserving.volcano.sh/entry "true".
    Fail: workloadPort 8080 and vllm serve; a selector without entry, and workers of Ray.
    Level: mandatory.
    Source: volcano-sh/kthena v1.0.0 pkg/kthena-router/controller/modelserver_controller.go and
    router/router.go; vLLM vllm/entrypoints/openai/cli_args.py; SGLang sglang/srt/server_args.py.
    """
    for each in selectors(cluster):
        if each.gap is None and each.targets:
            chosen = [pods for pods in each.pods if pods.count != 0]
            found = [(pods, listening_of(pods)) for pods in chosen if selects(each.labels, pods)]
            yield from _judge(each, [(pods, ports) for pods, ports in found if ports])


def _judge(each: Selector, found: list[tuple[PodSet, Listening]]) -> Iterator[Finding]:
    stated = [unknown_in(target.stated) for target in each.targets]
    sure = [(pods, ports) for pods, ports in found if selects(each.labels, pods) is True]
    gap = next(filter(None, stated), None)
    gap = gap or first_unknown(*(ports.answers for _, ports in sure))
    if gap and sure:
        yield not_checked(each.owner.at(each.targets[0].path), gap)
        return
    named = [(pods, ports) for pods, ports in sure if _numbers(each, ports)]
    if sure and not named:
        yield _no_such_name(each, sure[0][1])
    wrong = [(pods, ports) for pods, ports in named if not _reaches(each, ports)]
    engines = [ports for _, ports in wrong if ports.answers is not None]
    workers = [(pods, ports) for pods, ports in wrong if ports.answers is None]
    if engines:
        yield _wrong_port(each, engines[0])
    elif workers and (len(workers) == len(named) or _is_for_requests(each, named)):
        pods, ports = workers[0]
        seen = f"matches {_title(pods)}, but {ports.title}"
        remedy = f'add {naming.ENTRY}: "true"'
        if naming.ENTRY in each.labels:
            remedy = f"remove the label {naming.ENTRY} from their template"
        yield refuse(each.owner.at(each.path), seen, remedy)


def _numbers(each: Selector, ports: Listening) -> list[int]:
    """Return the ports at which pods get requests; a name that they do not have sends them none."""
    numbers = [resolved(target.stated, dict(ports.named)) for target in each.targets]
    return [number for number in numbers if isinstance(number, int)]


def _reaches(each: Selector, ports: Listening) -> bool:
    return any(ports.may_listen(number) for number in _numbers(each, ports))


def _is_for_requests(each: Selector, found: list[tuple[PodSet, Listening]]) -> bool:
    """Return whether one of the ports is that of an engine, and not only of a dashboard."""
    return any(ports.answers in _numbers(each, ports) for _, ports in found)


def _no_such_name(each: Selector, ports: Listening) -> Finding:
    target = each.targets[0]
    seen = f"is {display(target.stated)}, which no port of the pods' container is named"
    remedy = "name a port of the container so"
    if ports.answers is not None:
        remedy = write(ports.answers, f"write {ports.answers}")
    return refuse(each.owner.at(target.path), seen, remedy)


def _wrong_port(each: Selector, ports: Listening) -> Finding:
    target, number = next(
        (target, number)
        for target in each.targets
        if isinstance(number := resolved(target.stated, dict(ports.named)), int)
    )
    named = f" ({number})" if isinstance(target.stated, str) else ""
    seen = f"is {display(target.stated)}{named}, but {ports.title} in the pods of ModelServing "
    seen += display(each.serving.name)
    field = "targetPort: " if target.path.startswith("spec.ports[") else ""
    field = field if target.path.endswith(".port") else ""
    return refuse(
        each.owner.at(target.path),
        seen,
        write(ports.answers, f"write {field}{ports.answers}"),
    )


def _title(pods: PodSet) -> str:
    kind = "workers" if pods.path.endswith("workerTemplate") else "entry pods"
    return f"the {kind} of role {display((pods.added or {}).get(naming.ROLE))}"
