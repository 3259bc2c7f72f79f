"""The rule leader-pod-exists."""

import re
from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.listening import waits_for_engine
from kthena_components.core.facts.network import HostedPods, PodHosts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, all_gpus_of
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.support.engine_pods import (
    Meeting,
    first_pod,
    meeting_of,
    meetings,
    port_of,
)
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import product

_HOST = regex(
    r"(?:tcp://)?(?P<pod>[\w-]+)\.(?P<domain>[\w-]+)(?:\.(?P<space>[\w-]+)(?P<rest>\.[\w.-]+)?)?(?::\d+)?"
)
_SVC = regex(r"\.svc(?:\..*)?|")
"""What may follow a namespace: of another text, it may be no name in the cluster."""
_SERVICE = regex(r"(?:tcp://)?([\w-]+)(?:\.([\w-]+)(?:\.svc(?:\.[\w.-]+)?)?)?(?::\d+)?")
_OF_ALL = "the name of a Service of all its pods, so a pod may ask any of them"
_OTHERS = "the name of another object's pod, but it has all pods itself"
_NONE = "and no pod has this name"
_LEVELS = (Level.MANDATORY, Level.ADVISORY)
_SHOWN = 4
_NUMBERED = regex(r"(.*-)(\d{1,9})")


def leader_pod_exists(facts: ServingFacts) -> Iterator[Finding]:
    """The pods of an engine look for its first rank at a name that its first pod has.

    Volcano gives a pod of a Job the name JOB-TASK-NUMBER below the Job's, if the Job has the plugin
    svc, or one that includes it: pytorch, tensorflow, mpi, ray. VC_TASK_HOSTS has these names.
    JobSet makes JOBSET-JOB-NUMBER-NUMBER below its subdomain, unless enableDNSHostnames is false.
    LeaderWorkerSet gives the leader of a group the name SET-GROUP, and its workers
    SET-GROUP-NUMBER, below SET, or below SET-GROUP by subdomainPolicy UniquePerReplica.
    Grove makes SET-COPY-CLIQUE-NUMBER, or SET-COPY-GROUP-NUMBER-CLIQUE-NUMBER, below SET-COPY. An
    indexed Job of Kubernetes makes JOB-NUMBER below the subdomain in its template. AIBrix makes
    PODSET_NAME-NUMBER below the name of the StormService, for a group of pods. A Service of
    Volcano has names of ready pods only, unless svc states --publish-not-ready-addresses. The
    Service of a JobSet with publishNotReadyAddresses false has such names only, too. A namespace in
    the address is the namespace of the pods.

    Pass: big-head-0.big in a Job big with the plugin svc and a task head, which starts rank 0.
    Fail: big-head-0.big without svc; big-leader-0.big without a task leader; big-worker-0.big, if
    the task worker has --node-rank 1; job-1.job in an indexed Job, or job-0.job without subdomain;
    set-0.set in a LeaderWorkerSet with UniquePerReplica; set-0.set.default in the namespace models;
    set in a LeaderWorkerSet set, or $(GROVE_HEADLESS_SERVICE); other-0.other in the namespace
    models, if all ranks are pods of this object.
    Level: mandatory; advisory for another name than AIBrix 0.5 to 0.7 gives, and for the Service of
    one copy, because some libraries try all its addresses.
    Source: Volcano v1.14 pkg/controllers/job/plugins/svc/svc.go; kubernetes-sigs/jobset v0.10
    pkg/controllers/jobset_controller.go; kubernetes-sigs/lws v0.9.0 pkg/webhooks/pod_webhook.go
    (Subdomain) and pkg/controllers/pod_controller.go; ai-dynamo/grove
    operator/api/common/namegen.go and operator/internal/controller/podclique/components/pod/pod.go;
    kubernetes pkg/controller/job/job_controller.go (template.Spec.Hostname); vllm-project/aibrix
    v0.7.0 pkg/controller/podset/podset_controller.go createPodFromTemplate.
    """
    yield from _of_own(facts, facts.hosts) if facts.hosts is not None else _of_no_pod(facts)


def _of_own(facts: ServingFacts, hosts: PodHosts) -> Iterator[Finding]:
    """Compare addresses with the names that the pods of an object have."""
    for engine in facts.engines:
        one = product(engine.replicas, facts.copies) == 1
        for pod, meeting in _meetings(engine):
            # The name of one copy for all of them is the concern of leader-address.
            text = hosts.resolve(meeting.shown)
            found = _problem(hosts, engine, text) if one or text != meeting.shown else None
            of_all = found is None and _is_of_all(hosts, text)
            if of_all:
                found = _OF_ALL, _first_name(hosts, engine, text)
            if found is not None:
                unsure = (of_all and one) or (hosts.by_release and found[0].startswith(_NONE))
                yield _finding(engine, pod, meeting, found, _LEVELS[unsure])
                break


def _of_no_pod(facts: ServingFacts) -> Iterator[Finding]:
    """Report names of other objects' pods, of engines whose own pods have names of a controller."""
    for engine in facts.engines if facts.unnamed_in else ():
        for pod, meeting in _meetings(engine):
            named = _HOST.fullmatch(meeting.shown)
            own = facts.name in meeting.shown  # Another rule compares names of its own pods.
            if named and not own and _is_others_pod(named, facts.unnamed_in) and _has_all(engine):
                first = first_pod(facts.controller_env) or "the name of the first pod"
                port = port_of(meeting.shown)
                found = (_OTHERS, f"write {first}{f':{port}' if port else ''}")
                yield _finding(engine, pod, meeting, found, Level.MANDATORY)
                break


def _is_others_pod(found: re.Match[str], namespace: str) -> bool:
    """Return whether a name is one of a pod below a Service, and not of a Service.

    A Service in another namespace than the pods does not lead to them either.
    """
    if _NUMBERED.fullmatch(found["pod"]) is None:
        return False
    if found["space"] == "svc":
        return bool(namespace) and found["domain"] != namespace
    return found["space"] is not None or found["domain"] not in {namespace, "svc"}


def _finding(
    engine: EngineFacts, pod: PodFacts, meeting: Meeting, found: tuple[str, str], level: Level
) -> Finding:
    seen = f"{title(engine)} looks for its first rank at {display(meeting.shown)} "
    seen += f"({meeting.option}), {found[0]}"
    return Finding(path=pod.command_path, seen=seen, remedy=found[1], level=level)


def _is_of_all(hosts: PodHosts, text: str) -> bool:
    """Return whether an address leads to all pods of an object."""
    found = _SERVICE.fullmatch(text)
    if found is None or found[1] != hosts.domain or found[2] not in {None, hosts.namespace}:
        return False
    pods = sum(p.count if isinstance(p.count, int) else 1 for p in hosts.pods)
    return pods > 1 and not hosts.missing


def _meetings(engine: EngineFacts) -> Iterator[tuple[PodFacts, Meeting]]:
    """Yield each pod with the address at which it looks for the first one, also the entry."""
    yield from meetings(engine)
    command = engine.entry.command
    own = (meeting_of(command) or _of_copies(command)) if command is not None else None
    if own is not None and engine.worker is not None:
        yield engine.entry, own


def _of_copies(command: CommandFacts) -> Meeting | None:
    """Return where the first pod of several copies waits for the others."""
    option = "--data-parallel-address"
    address, data, local = command.options.get(option), command.data, command.data_local
    if address is None or command.engine != "vllm" or command.hidden is not None:
        return None
    if not isinstance(data, int) or not isinstance(local, int) or local >= data:
        return None
    return Meeting(option, address, f"--data-parallel-size {data}", command.written.get(option, ""))


def _problem(hosts: PodHosts, engine: EngineFacts, text: str) -> tuple[str, str] | None:
    """Return why no pod finds the first one by a name, and the remedy; None if one may."""
    name = _first_name(hosts, engine, text)
    if "," in text and "$" not in text:
        return f"which is a list of {text.count(',') + 1} names", name
    found = _HOST.fullmatch(text)
    if found is None:
        return None
    numbered = _NUMBERED.fullmatch(found["pod"])
    named = next((p for p in hosts.pods if numbered and p.prefix == numbered[1]), None)
    if hosts.missing:
        # Without pods of such names, a Service of this name may be another one's.
        is_its = named and hosts.domain in {found["domain"], ""}
        seen = f"but the DNS has no such name, because {hosts.missing}"
        return (seen, hosts.remedy) if is_its else None
    if found["domain"] != hosts.domain:
        seen = _elsewhere(hosts, engine, found, named)
        return (seen, name) if seen else None
    if named is None or numbered is None or _is_beyond(named, int(numbered[2])):
        shown = [pods.first for pods in hosts.pods[:_SHOWN]]
        return f"{_NONE}: they are {', '.join(shown)}, …", name
    seen = _away(hosts, found)
    return (seen, name) if seen else _of_pod(hosts, engine, named, int(numbered[2]), text)


def _away(hosts: PodHosts, found: re.Match[str]) -> str:
    """Explain that the name of a pod has another namespace than the pod."""
    space, is_inside = found["space"], _SVC.fullmatch(found["rest"] or "")
    if space == "svc" and found["rest"] in {None, ".cluster.local"}:
        return "which has no namespace in front of svc"
    if not hosts.namespace or space in {None, hosts.namespace} or not is_inside:
        return ""
    return f"in the namespace {display(space)}, but its pods are in {display(hosts.namespace)}"


def _elsewhere(
    hosts: PodHosts, engine: EngineFacts, found: re.Match[str], named: HostedPods | None
) -> str:
    """Explain that a name below another Service is none of an engine's pods."""
    if named is not None:
        return f"but its pods have names below {hosts.domain} only"
    # A name that begins with the name of its Service names a pod, not a Service.
    is_pod = found["pod"].startswith(f"{found['domain']}-") and _NUMBERED.fullmatch(found["pod"])
    is_pod = is_pod or (hosts.namespace and _is_others_pod(found, hosts.namespace))
    return _OTHERS if is_pod and _has_all(engine) else ""


def _has_all(engine: EngineFacts) -> bool:
    """Return whether all ranks that an engine counts are pods of its object."""
    first, siblings = engine.entry.command, engine.siblings
    commands = siblings.commands if siblings is not None else ()
    if first is not None and first.engine is not None and first.ray_role == "head":
        return engine.worker is not None and all_gpus_of(engine) == first.per_rank_world
    if first is None or not isinstance(first.nnodes, int):
        return False
    if engine.worker is not None:
        return first.node_rank in {0, None} and first.nnodes == engine.pods
    return {each.node_rank for each in commands} == {*range(first.nnodes)}


def _of_pod(
    hosts: PodHosts, engine: EngineFacts, named: HostedPods, number: int, text: str
) -> tuple[str, str] | None:
    """Say why the named pod has not the first rank, and the name to write; None if it may have it.

    The wrong pods are workers, pods whose --node-rank is above 0, and pods whose name resolves only
    when they are ready.
    """
    if named.path != engine.path and engine.worker_template({named.path}) == named.path:
        seen = "the name of a worker, which does not have the first rank"
        return seen, _first_name(hosts, engine, text)
    siblings = engine.siblings if engine.worker is None and named.path == engine.path else None
    ranks = [command.node_rank for command in siblings.commands] if siblings is not None else []
    rank = ranks[number] if number < len(ranks) else None
    if isinstance(rank, int) and rank > 0:
        return f"the name of a pod with --node-rank {rank}", _first_name(hosts, engine, text)
    if hosts.late and named.path == engine.path and waits_for_engine(engine.entry):
        seen = f"but {hosts.late}, and this pod is ready only when all of its engine have met"
        return seen, hosts.remedy
    return None


def _is_beyond(pods: HostedPods, number: int) -> bool:
    most = max(pods.count, 1) if isinstance(pods.count, int) else number + 1
    return not pods.start <= number < pods.start + most


def _first_name(hosts: PodHosts, engine: EngineFacts, text: str) -> str:
    """Return the remedy that names the first pod, with the port of the address as it is."""
    first = next((pods for pods in hosts.pods if pods.path == engine.path), None)
    if first is None:
        return "write the name of the first pod"
    port = port_of(text.partition(",")[0])
    return f"write {first.written or f'{first.first}.{hosts.domain}'}{f':{port}' if port else ''}"
