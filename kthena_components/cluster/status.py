"""Shows the pods of servings in a table, and why others do not run. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from tabulate import tabulate

from kthena_components.cluster.objects import (
    Body,
    Listed,
    annotations_of,
    condition_of,
    in_order,
    known,
    labels_of,
    name_of,
    namespace_of,
    node_labels,
    status_of,
    title_of,
)
from kthena_components.cluster.pending import (
    is_ending,
    missing_group,
    node_of,
    resized_groups,
    short,
    why_gang_waits,
    why_node_holds,
    why_pod_waits,
)
from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.topology.domains import Domain, lowest, read_domains
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import shell_word
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.lws.view import GROUP_INDEX

HEADERS = ["serving", "group", "role", "pod", "state", "node", "rack", "tier", "PodGroup"]
RUNNING = "Running"
_NONE, _HIDDEN = "-", "?"
_ENDED = frozenset({"Running", "Completed"})

Key = tuple[str, str, str]
"""Kind, namespace and name."""
_SCHEDULER = frozenset({"FailedScheduling", "Unschedulable", "NotEnoughResources"})
"""What a pod's conditions say, too, and better."""


@dataclass(frozen=True, kw_only=True)  # without slots: cached properties need a __dict__
class Servings:
    """The listed objects of servings, and the nodes that they run on."""

    pods: Sequence[Body]
    pod_groups: Listed
    model_servings: Listed = ()
    stateful_sets: Listed = ()
    hyper_nodes: Listed = ()
    nodes: Listed = ()
    events: Listed = ()

    @cached_property
    def warnings(self) -> dict[Key, str]:
        """The newest warning about each object."""
        return newest_warnings(known(self.events))

    @cached_property
    def domains(self) -> list[Domain] | Unknown:
        """HyperNodes with their nodes; Unknown when either cannot be listed."""
        for listed in (self.hyper_nodes, self.nodes):
            if isinstance(listed, Unknown):
                return listed
        return read_domains(known(self.hyper_nodes), node_labels(self.nodes))

    @cached_property
    def by_name(self) -> dict[str, Body]:
        """Nodes by name; empty when they cannot be listed."""
        return {name_of(node): node for node in known(self.nodes)}

    @cached_property
    def groups(self) -> dict[tuple[str, str, str], list[Body]]:
        """Pods of each ServingGroup, by namespace, serving and group, sorted."""
        found: dict[tuple[str, str, str], list[Body]] = {}
        for pod in sorted(self.pods, key=lambda pod: in_order(title_of(pod))):
            serving, group = labels_of(pod).get(naming.NAME, ""), group_of(pod)
            found.setdefault((namespace_of(pod), serving, group), []).append(pod)
        return dict(sorted(found.items(), key=lambda item: [in_order(part) for part in item[0]]))

    @property
    def names(self) -> set[str]:
        """Names of all servings."""
        labelled = (*self.pods, *known(self.stateful_sets))
        found = {labels_of(body).get(naming.NAME, "") for body in labelled}
        return (found | {name_of(body) for body in known(self.model_servings)}) - {""}

    def only(self, serving: str) -> "Servings":
        """Keep the objects of one serving, and PodGroups that belong to none."""
        own = [pod for pod in self.pods if labels_of(pod).get(naming.NAME) == serving]
        return replace(
            self,
            pods=own,
            pod_groups=_keep(self.pod_groups, serving, none=True),
            stateful_sets=_keep(self.stateful_sets, serving),
            model_servings=_with_name(self.model_servings, serving),
        )

    def pod_group(self, namespace: str, name: str) -> Body | None:
        """Find a PodGroup."""
        wanted = (namespace, name)
        groups = known(self.pod_groups)
        return next((g for g in groups if (namespace_of(g), name_of(g)) == wanted), None)


def group_of(pod: Body) -> str:
    """Name of a pod's ServingGroup, or of its group in a LeaderWorkerSet; empty without one."""
    labels = labels_of(pod)
    index, of = labels.get(GROUP_INDEX), labels.get(naming.LWS_NAME)
    return labels.get(naming.GROUP_NAME) or (f"{of}-{index}" if index and of else "")


def _keep(listed: Listed, serving: str, *, none: bool = False) -> Listed:
    if isinstance(listed, Unknown):
        return listed
    wanted = {serving, None} if none else {serving}
    return [body for body in listed if labels_of(body).get(naming.NAME) in wanted]


def _with_name(listed: Listed, name: str) -> Listed:
    """Return the objects with a name."""
    return listed if isinstance(listed, Unknown) else [b for b in listed if name_of(b) == name]


def render_status(seen: Servings) -> str:
    """Write the table, then what waits and why, then what could not be read."""
    rows = list(_rows(seen))
    parts = []
    if rows:
        parts.append(tabulate(rows, HEADERS, "simple", disable_numparse=True))
    waiting = list(waits(seen))
    if waiting:
        ended = ((title, why if why.endswith("?") else f"{why}.") for title, why in waiting)
        parts.append("\n".join(f"{title}: {why}" for title, why in ended))
    hidden = _hidden(seen)
    if hidden:
        parts.append("\n".join(hidden))
    return "\n\n".join(parts)


def describe_status(seen: Servings) -> dict[str, object]:
    """Return the same as data."""
    rows = [dict(zip(HEADERS, row, strict=True)) for row in _rows(seen)]
    waiting = [{"object": title, "reason": why} for title, why in waits(seen)]
    return {"pods": rows, "waiting": waiting, "unknown": _hidden(seen)}


def _rows(seen: Servings) -> Iterator[list[str]]:
    """List a row for each pod: serving, group, role, state, node and rack."""
    for (namespace, serving, group), pods in seen.groups.items():
        reached = _reached(seen, pods)
        for pod in pods:
            yield [
                f"{namespace}/{serving}", group.removeprefix(f"{serving}-"),
                role_of(pod), name_of(pod), state_of(pod),
                node_of(pod) or _NONE, _rack(seen, pod), reached, _phase(seen, pod),
            ]  # fmt: skip


def role_of(pod: Body) -> str:
    """Return the engine of a pod, or its role, as `status` shows it."""
    labels = labels_of(pod)
    return labels.get(naming.ROLE_ID) or labels.get(naming.ROLE) or _NONE


def state_of(pod: Body) -> str:
    """Return a pod's state in one word, as kubectl shows it."""
    if is_ending(pod):
        return "Terminating"
    status = status_of(pod)
    for item in sequence(status.get("containerStatuses")):
        reason = mapping(mapping(mapping(item).get("state")).get("waiting")).get("reason")
        if reason:
            return str(reason)
    phase = str(status.get("reason") or status.get("phase") or _HIDDEN)
    if phase == RUNNING and condition_of(pod, "Ready").get("status") != "True":
        return "not ready"
    return "Completed" if phase == "Succeeded" else phase


def _reached(seen: Servings, pods: Sequence[Body]) -> str:
    """Return the tier that contains all nodes of a group: the lower, the closer."""
    nodes = {node for node in map(node_of, pods) if node}
    if isinstance(seen.domains, Unknown):
        return _HIDDEN
    if not nodes or not seen.domains:
        return _NONE
    found = lowest(seen.domains, nodes)
    return "none" if found is None else str(found.tier)


def _rack(seen: Servings, pod: Body) -> str:
    if isinstance(seen.domains, Unknown):
        return _HIDDEN
    found = lowest(seen.domains, {node} if (node := node_of(pod)) else set())
    return _NONE if found is None else found.name


def gang_of(pod: Body) -> str:
    """Name of a pod's PodGroup, empty without one."""
    return annotations_of(pod).get(naming.POD_GROUP, "")


def _phase(seen: Servings, pod: Body) -> str:
    name = gang_of(pod)
    if not name:
        return _NONE
    if isinstance(seen.pod_groups, Unknown):
        return _HIDDEN
    group = seen.pod_group(namespace_of(pod), name)
    return "missing" if group is None else str(status_of(group).get("phase") or "new")


def waits(seen: Servings) -> Iterator[tuple[str, str]]:
    """Explain what does not run: first gangs, then single pods, then owners without pods."""
    listed: set[str] = set()
    for gang, pods in _gangs(seen).items():
        namespace, name = gang
        group = seen.pod_group(namespace, name)
        unplaced = [pod for pod in pods if not node_of(pod)]
        if group is None and pods and not isinstance(seen.pod_groups, Unknown):
            listed.update(map(title_of, pods))
            yield f"{namespace}/{name}", missing_group(name, pods)
        elif group is not None and (unplaced or not pods):
            listed.update(map(title_of, unplaced))
            yield f"{namespace}/{name}", why_gang_waits(group, pods)
    for pod in sorted(seen.pods, key=lambda pod: in_order(title_of(pod))):
        state = state_of(pod)
        if state not in _ENDED and title_of(pod) not in listed:
            held = why_node_holds(pod, seen.by_name.get(node_of(pod)))
            warned = seen.warnings.get(key_of("Pod", pod))
            yield title_of(pod), held or why_pod_waits(pod) or warned or f"is {state}"
    yield from _without_pods(seen)
    yield from resized_groups(known(seen.model_servings), seen.groups)


def _gangs(seen: Servings) -> dict[tuple[str, str], list[Body]]:
    """Pods by namespace and PodGroup, including PodGroups of servings without pods."""
    found: dict[tuple[str, str], list[Body]] = {
        (namespace_of(group), name_of(group)): []
        for group in known(seen.pod_groups)
        if naming.NAME in labels_of(group)
    }
    for pod in seen.pods:
        if gang := gang_of(pod):
            found.setdefault((namespace_of(pod), gang), []).append(pod)
    return dict(sorted(found.items(), key=lambda item: [in_order(part) for part in item[0]]))


def _without_pods(seen: Servings) -> Iterator[tuple[str, str]]:
    """Report owners that have not created all of their pods."""
    for owner in known(seen.stateful_sets):
        wanted = int(mapping(owner.get("spec")).get("replicas") or 0)
        made = int(status_of(owner).get("replicas") or 0)
        if made < wanted:
            asked = f"see `kubectl describe statefulset {shell_word(name_of(owner))}` for why"
            why = seen.warnings.get(key_of("StatefulSet", owner), asked)
            created = f"this StatefulSet has created {made} of {count_of(wanted, 'pod')}"
            yield title_of(owner), f"{created}: {why}"
    serving_pods = {(n, serving) for n, serving, _ in seen.groups}
    for serving in known(seen.model_servings):
        wanted = int(mapping(serving.get("spec")).get("replicas") or 0)
        if wanted and (namespace_of(serving), name_of(serving)) not in serving_pods:
            warned = seen.warnings.get(key_of("ModelServing", serving))
            yield title_of(serving), _no_pods(serving, wanted, warned)


def _no_pods(serving: Body, wanted: int, warned: str | None) -> str:
    seen = "this ModelServing requests " + count_of(wanted, "group") + " and has no pods; "
    if warned:
        return f"{seen}its controller warns: {warned}"
    if not status_of(serving):
        return f"{seen}it has no status either: is Kthena's controller running?"
    said = condition_of(serving, "Available").get("message")
    return f"{seen}its controller says: {said or 'nothing'}"


def _hidden(seen: Servings) -> list[str]:
    """List the columns that could not be filled, with the reasons."""
    columns = {"PodGroup": seen.pod_groups, "rack and tier": seen.domains}
    if any(waits(seen)):  # otherwise nobody misses them
        columns["events"] = seen.events
    return [
        f"{column}: unknown, because {listed.because}."
        for column, listed in columns.items()
        if isinstance(listed, Unknown)
    ]


def newest_warnings(events: Sequence[Body]) -> dict[Key, str]:
    """Return the newest warning of the Events about each object, as `reason: message`."""
    found: dict[Key, tuple[str, str]] = {}
    for event in events:
        about = mapping(event.get("involvedObject"))
        key = (str(about.get("kind")), str(about.get("namespace", "")), str(about.get("name")))
        reason = str(event.get("reason") or "")
        if event.get("type") != "Warning" or reason in _SCHEDULER:
            continue
        said = (_time(event), short(f"{reason}: {event.get('message') or ''}".strip(": ")))
        if key not in found or found[key][0] <= said[0]:
            found[key] = said
    return {key: said for key, (_, said) in found.items()}


def key_of(kind: str, body: Body) -> Key:
    """Return the key of an object, whose kind a list leaves out."""
    return kind, namespace_of(body), name_of(body)


def _time(event: Mapping[str, object]) -> str:
    """Return when it last happened. Times in RFC 3339 and UTC sort as strings."""
    last = mapping(event.get("series")).get("lastObservedTime")
    stated = (last, event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(time) for time in stated if time), "")
