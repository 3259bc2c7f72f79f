"""Reads Kubernetes' own workloads: facts, pods, and the variables of their pods for `convert`.

One object has one pod template. The number of pods in an engine is read from variables and commands
(GROUP_SIZE, --nnodes, ray_cluster_size), never guessed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.members import Numbers, Template, with_members, with_siblings
from kthena_components.core.facts.network import HostedPods, PodHosts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.server_ports import servers_in
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts, StartOrder
from kthena_components.core.facts.workload import (
    NO_SCHEDULER,
    admitted_together,
    engines_in,
    labels_of,
    pods_of_template,
)
from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.plan.controller_variables import PodVariables, first_pod
from kthena_components.core.remedies import write
from kthena_components.core.values.caches import cached_last
from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.read import (
    first_unknown,
    inside,
    is_name,
    list_of_texts,
    mapping,
    name_of,
    sequence,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, is_unresolved

_COPIED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds whose pods all have the same template."""
_GROUPED = frozenset({"Job", "StatefulSet"})
"""Kinds whose pods Kueue admits as one group."""
_ORDERED = "OrderedReady"
_LONGEST_KEPT = 40
"""Characters of a name that a host name holds with all that its controller adds."""
_BY_STATEFUL_SET = ("run the pods as a StatefulSet, which numbers them", "")
_TEMPLATE = "spec.template"


def facts_of_pod(found: Object) -> ServingFacts:
    """Read the facts of a Pod, which is its own template."""
    return _facts(found, found.body, found.path, {})


def facts_of_template(found: Object) -> ServingFacts:
    """Read the facts of a PodTemplate, whose template stands beside its metadata.

    Source: kubernetes staging/src/k8s.io/api/core/v1/types.go PodTemplate.
    """
    return _facts(found, found.body.get("template"), found.at("template"), {})


@cached_last
def facts_of_copies(found: Object) -> ServingFacts:
    """Read the facts of a workload with a number of copies of its template."""
    spec, template = found.body.get("spec"), inside(found.body.get("spec"), "template")
    facts = _facts(found, template, found.at(_TEMPLATE), spec, read_pods_of(found))
    if found.kind != "StatefulSet":
        facts = replace(facts, has_random_names=_has_random_names(found))
    if found.kind not in _COPIED:
        return facts
    is_set = found.kind == "StatefulSet"
    facts = replace(
        facts, gang_by_annotation=True, numbered_with=("", "") if is_set else _BY_STATEFUL_SET
    )
    name = facts.name if is_set and is_name(facts.name) else ""
    body, order = mapping(spec), _order(found)
    engines = with_siblings(facts.engines, template, body, name=name, context=found.context)
    return replace(facts, engines=tuple(replace(engine, order=order) for engine in engines))


def _has_random_names(found: Object) -> bool:
    """Return whether the names of pods, which are their host names, end in random letters.

    A long name is cut, and an indexed Job has host names with an index.
    """
    spec = mapping(inside(found.spec.get("template"), "spec"))
    stated = any(spec.get(name) for name in ("hostname", "hostNetwork"))
    short = is_name(found.name) and len(str(found.name)) <= _LONGEST_KEPT
    return short and not stated and found.spec.get("completionMode") in (None, "NonIndexed")


@cached_last
def read_pods_of(found: Object) -> Sequence[PodFacts]:
    """Read the pods of a workload with copies, which its facts and the native backend read."""
    template = inside(found.body.get("spec"), "template")
    return pods_of_template(template, found.at(_TEMPLATE), found.context)


def _order(found: Object) -> StartOrder | None:
    """Return why each pod of a StatefulSet waits for the one before it, if it does.

    Source: kubernetes pkg/controller/statefulset/stateful_set_control.go.
    """
    policy = found.spec.get("podManagementPolicy", _ORDERED)
    if found.kind != "StatefulSet" or policy != _ORDERED:
        return None
    why = f"is {_ORDERED}, the default, with which a pod starts only after the one before is ready"
    path = found.at("spec.podManagementPolicy")
    return StartOrder(path=path, why=why, remedy=write("Parallel"))


def facts_of_job(found: Object) -> ServingFacts:
    """Read the facts of a Job. An indexed one numbers its pods, and gives them names.

    Source: kubernetes pkg/controller/job/job_controller.go (template.Spec.Hostname).
    """
    facts = facts_of_copies(found)
    if found.spec.get("completionMode") != "Indexed":
        return replace(facts, numbered_with=indexed_by(found.at("spec")))
    count, at_once = copies_in(found.spec.get("completions"), 1), _at_once(found.spec)
    hosts, body = _hosts_of_job(found, count), mapping(found.spec.get("template"))
    named = hosts is not None and mapping(body.get("spec")).get("hostNetwork") in (None, False)
    template = Template(body=body, count=count, hosted=hosts.pods[0] if hosts and named else None)
    engines = [_indexed(engine, template, at_once, found) for engine in facts.engines]
    return replace(facts, engines=tuple(engines), hosts=hosts)


def indexed_by(path: str) -> tuple[str, str]:
    """Return how to let a Job number its pods, at the path of its spec, and the variable for it."""
    how = "write completionMode: Indexed"
    return write("Indexed", how, at=f"{path}.completionMode"), COMPLETION_INDEX


def _indexed(
    engine: EngineFacts, template: Template, at_once: MaybeInt, found: Object
) -> EngineFacts:
    numbers = Numbers(ordinal=(COMPLETION_INDEX,), fields=COMPLETION_FIELDS)
    made = with_members(engine, template, None, numbers, found.context, fewest=1)
    if made.siblings is None:
        return made
    return replace(made, siblings=replace(made.siblings, at_once=at_once))


def _hosts_of_job(found: Object, count: MaybeInt) -> PodHosts | None:
    """Return the names of the pods of an indexed Job; None if they are not known."""
    template = mapping(inside(found.spec.get("template"), "spec"))
    domain = template.get("subdomain")
    if not is_name(found.name) or not template or not (domain in (None, "") or is_name(domain)):
        return None
    pods = HostedPods(path=found.at("spec.template"), prefix=f"{found.name}-", count=count)
    missing = "" if domain else "its pods have no subdomain"
    remedy = "write subdomain in the template, with the name of a headless Service of these pods"
    return PodHosts(
        domain=str(domain or ""),
        pods=(pods,),
        missing=missing,
        remedy=remedy,
        namespace=found.stated_namespace,
    )


def _at_once(spec: Mapping[str, Any]) -> MaybeInt:
    """Return how many pods of a Job run at a time: no more than it still has to complete."""
    parallelism, stated = copies_in(spec.get("parallelism"), 1), spec.get("completions")
    completions = copies_in(stated, 1)
    if stated is None or isinstance(parallelism, Unknown):
        return parallelism
    return completions if isinstance(completions, Unknown) else min(parallelism, completions)


def facts_of_cron_job(found: Object) -> ServingFacts:
    """Read the facts of the Jobs that a CronJob creates."""
    spec = inside(inside(found.body.get("spec"), "jobTemplate"), "spec")
    at = found.at("spec.jobTemplate")
    facts = _facts(found, inside(spec, "template"), f"{at}.spec.template", spec)
    by = indexed_by(f"{at}.spec") if _is_plain(found) else ("", "")
    return replace(facts, path=at, numbered_with=by)


def _facts(
    found: Object, template: object, at: str, spec: object, pods: Sequence[PodFacts] | None = None
) -> ServingFacts:
    """Read the facts of an object with a template, whose pods may have been read already."""
    if pods is None:
        pods = pods_of_template(template, at, found.context)
    name, role = name_of(found.body), labels_of(template).get(naming.ROLE)
    engines = engines_in(pods, template, at, role if is_name(role) else name, spec)
    scheduler = mapping(mapping(template).get("spec")).get("schedulerName")
    return ServingFacts(
        path=found.path,
        name=name,
        engines=tuple(engines),
        gang_expected=_placed_together(found, scheduler),
        names=_names(found, ours=role is not None),
        servers=tuple(servers_in(template, at, found.context)),
    )


def _placed_together(found: Object, scheduler: object) -> MaybeBool:
    if found.kind in _GROUPED and admitted_together(found.metadata):
        return True
    return NO_SCHEDULER if is_unresolved(scheduler) else scheduler == "volcano"


def _names(found: Object, *, ours: bool) -> tuple[NameFacts, ...]:
    name = found.metadata.get("name")
    if found.kind != "StatefulSet" or not isinstance(name, str):
        return ()
    at, limit = found.at("metadata.name"), naming.STATEFUL_SET_NAME
    return (NameFacts(path=at, name=name, limit=limit, what="StatefulSet", made=ours),)


# The pods of Kubernetes' own workloads.


_NODES = Unknown("a DaemonSet has as many pods as there are nodes")


def pods_of_pod(entry: Object) -> Iterator[PodSet]:
    """Return the pod itself."""
    yield pod_set(entry, "", entry.body, 1)


def pods_of_daemons(entry: Object) -> Iterator[PodSet]:
    """Return a DaemonSet's pods."""
    yield pod_set(entry, "spec.template", entry.spec.get("template"), _NODES)


@cached_last
def pods_of_copies(entry: Object) -> tuple[PodSet]:
    """Return the pods of a workload with a number of copies."""
    number = copies_in(entry.spec.get("replicas"), 1)
    return (pod_set(entry, "spec.template", entry.spec.get("template"), number),)


def pods_of_job(entry: Object) -> Iterator[PodSet]:
    """Return a Job's concurrent pods, to which Kubernetes adds labels with its name."""
    made = pod_set(entry, "spec.template", entry.spec.get("template"), _at_once(entry.spec))
    yield replace(made, added=dict.fromkeys(naming.JOB_NAMES, entry.name))


def pods_of_cron_job(entry: Object) -> Iterator[PodSet]:
    """Return the pods of one Job of a CronJob."""
    job, at = mapping(mapping(entry.spec.get("jobTemplate")).get("spec")), "spec.jobTemplate.spec"
    yield pod_set(entry, f"{at}.template", job.get("template"), _at_once(job))


# What the pods of Kubernetes' own workloads learn beside their templates, for `convert`.
#
# Source: kubernetes pkg/controller/statefulset/stateful_set_utils.go updateIdentity, and
# pkg/controller/job/indexed_job_utils.go addCompletionIndexEnvVariable.


COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
COMPLETION_FIELDS = tuple(
    f"metadata.{part}['{naming.COMPLETION_INDEX}']" for part in ("annotations", "labels")
)


def tells_of_set(found: Object) -> PodVariables:
    """Return the variables of a StatefulSet's pods: their names end with their numbers."""
    first = mapping(found.spec.get("ordinals")).get("start")
    if first is not None and first != 0:
        return PodVariables()
    domain = found.spec.get("serviceName")
    address = first_pod(f"{name_of(found.body)}-0", domain, found.metadata.get("namespace"))
    return PodVariables(
        fields=(f"metadata.labels['{naming.POD_INDEX}']",),
        numbered_names=True,
        addresses=(address,) if is_name(domain) else (),
    )


def tells_of_job(found: Object) -> PodVariables:
    """Return the variables of a Job's pods: their index, if it is an indexed one."""
    if _is_plain(found):
        return PodVariables()
    return PodVariables(ordinal=(COMPLETION_INDEX,), fields=COMPLETION_FIELDS)


def _is_plain(found: Object) -> bool:
    """Return whether the pods of a Job, or of a CronJob's Jobs, have no index."""
    spec = mapping(inside(found.spec.get("jobTemplate"), "spec")) or found.spec
    return spec.get("completionMode") in (None, "NonIndexed")


# Pods that a controller creates when others are ready.


_LWS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_CLIQUES = ("grove.io", "PodCliqueSet")
_ROLES = ("workloads.x-k8s.io", "RoleBasedGroup")
_OWN_NAME = r"\$[({]?(?:HOSTNAME|POD_NAME)[)}]?"
_CLIQUE = regex(r"\.cliques\[(\d{1,4})\]")


def created_later(pods: PodSet, host: str) -> str | None:
    """Explain that the pod with a name is created when the pods of a template are ready.

    Args:
        host: A name in DNS, with variables that are not known as $NAME.

    Source: kubernetes-sigs/lws pkg/controllers/pod_controller.go Reconcile: the StatefulSet of
    the workers, `<name>-<group>`, comes when the leader is ready; ai-dynamo/grove
    operator/initc/internal/wait.go: an init container of each later clique waits until the pods of
    the others are ready, and their names are `<set or group>-<number>-<clique>-<number>`;
    sgl-project/rbg pkg/dependency/dependency.go CheckDependencyReady, and api/workloads/v1alpha2
    helper.go: a role's pods are `<group>-<role>-<number>`, and its Service `s-<group>-<role>`.
    """
    owner, first = pods.owner, host.partition(".")[0]
    if owner.group_kind == _LWS:
        return _of_group(pods, first)
    if owner.group_kind == _ROLES:
        return _of_roles(pods, host)
    return _of_cliques(pods, first) if owner.group_kind == _CLIQUES else None


def _of_roles(pods: PodSet, host: str) -> str | None:
    """Explain that a pod or a Service is of a role that depends on the pods' own role."""
    stated = sequence(pods.owner.spec.get("roles"))
    roles = list(map(mapping, stated))
    if first_unknown(*stated, *(role.get("name") for role in roles)):
        return None
    named = [role for role in roles if is_name(role.get("name"))]
    before = {str(role["name"]): list_of_texts(role.get("dependencies")) for role in named}
    labels = host.split(".")[:2]
    for role in sorted(before, key=len, reverse=True):
        made = rf"(?:s-)?{re.escape(f'{pods.owner.name}-{role}')}(?:-\d+)*"
        if any(re.fullmatch(made, label) for label in labels):
            waits = pods.name in all_before(role, before)
            created = f"but RBG creates role '{role}' when the pods of '{pods.name}' are ready"
            return created if waits else None
    return None


def _of_group(pods: PodSet, first: str) -> str | None:
    owner, template = pods.owner, mapping(pods.owner.spec.get("leaderWorkerTemplate"))
    if owner.spec.get("startupPolicy") != "LeaderReady":
        return None
    if not pods.path.endswith("leaderTemplate") or not mapping(template.get("leaderTemplate")):
        return None
    group = rf"(?:{re.escape(str(owner.name))}-\d+|{_OWN_NAME})"
    is_worker = re.fullmatch(rf"{group}-[1-9]\d*", first)
    return "but LWS creates that worker when the leader is ready" if is_worker else None


def _of_cliques(pods: PodSet, first: str) -> str | None:
    """Explain that a pod is of a clique that waits for the pods' own clique."""
    found, (names, before) = _CLIQUE.search(pods.path), _cliques(pods.owner)
    if found is None or int(found[1]) >= len(names):
        return None
    own = names[int(found[1])]
    fitting = [n for n in names if re.fullmatch(rf".+-{re.escape(n)}-\d+", first)]
    other = max(fitting, key=len, default=None)
    if other is None or own not in all_before(other, before):
        return None
    return f"but Grove starts clique '{other}' when the pods of '{own}' are ready"


def _cliques(owner: Object) -> tuple[list[str], Mapping[str, list[str]]]:
    """Return the names of the cliques, and the cliques that each waits for at once."""
    template = mapping(owner.spec.get("template"))
    cliques = list(map(mapping, sequence(template.get("cliques"))))
    names = [clique.get("name") for clique in cliques]
    if not all(isinstance(name, str) for name in names):
        return [], {}
    given = [str(name) for name in names]
    kind = template.get("cliqueStartupType", "CliqueStartupTypeAnyOrder")
    if kind == "CliqueStartupTypeInOrder":
        return given, {name: given[:at] for at, name in enumerate(given)}
    if kind != "CliqueStartupTypeExplicit":
        return given, {}
    after = [list_of_texts(mapping(clique.get("spec")).get("startsAfter")) for clique in cliques]
    return given, dict(zip(given, after, strict=True))


def all_before(name: str, before: Mapping[str, list[str]]) -> set[str]:
    """Return the cliques that one waits for, at once or by others."""
    seen = set[str]()
    left = list(before.get(name, ()))
    while left:
        at = left.pop()
        if at not in seen:
            seen.add(at)
            left += before.get(at, ())
    return seen


def number_in(pods: PodSet, name: str) -> int | None:
    """Return how many pods of a StatefulSet are before the one with a name; None for another."""
    numbered = re.fullmatch(rf"{re.escape(str(pods.owner.name))}-(\d{{1,9}})", name)
    start, count = whole(mapping(pods.owner.spec.get("ordinals")).get("start", 0)), pods.count
    if numbered is None or not isinstance(start, int) or not isinstance(count, int):
        return None
    number = int(numbered[1]) - start
    return number if 0 <= number < count else None
