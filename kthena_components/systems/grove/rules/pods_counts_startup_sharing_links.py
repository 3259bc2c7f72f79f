"""Grove's rules about the pods of a PodCliqueSet: counts, start, shared claims and links.

Mandatory rules cover what Grove's webhook or the API server rejects. scaling_groups.py checks
cliques in scaling groups.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    join_path,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import or_less, or_more, remove
from kthena_components.core.rules.support.admission import (
    at_least,
    cycle_in,
    dns_label,
    joined,
    one_of,
    unique,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    inside,
    list_of_texts,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_inside,
    unknown_within,
)
from kthena_components.systems.grove.view import EXPLICIT, TEMPLATE, Clique, CliqueSet

_STARTUP, _PODS = "grove-startup", "grove-pods"
_STARTUPS = ("CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", EXPLICIT)


def grove_counts(view: CliqueSet) -> Iterator[Finding]:
    """Every clique and scaling group has a pod, and waits for at most as many pods as it has.

    minAvailable is from 1 to replicas; an autoscaler's minReplicas is at least minAvailable, and
    its maxReplicas is at least replicas. A clique without minAvailable waits for all pods.

    Pass: replicas 3 with minAvailable 2; replicas 4 with maxReplicas 4.
    Fail: replicas 3 with minAvailable 4; minAvailable 0; replicas 4 with maxReplicas 2.
    Level: mandatory.
    Source: ai-dynamo/grove operator/internal/webhook/admission/pcs/validation/podcliqueset.go.
    """
    yield from at_least("spec.replicas", view.object.spec.get("replicas"), 0)
    for clique in view.cliques:
        yield from _counted(clique.at, clique.spec, clique.replicas, "autoScalingConfig")
    for group in view.groups:
        replicas = group.fields.get("replicas", 1)
        yield from _counted(group.path, group.fields, replicas, "scaleConfig")


@part_of_rule
def _counted(
    at: str, fields: Mapping[str, Any], replicas: object, scaling: str
) -> Iterator[Finding]:
    """Check the counts of a clique or a scaling group: a minimum of pods within replicas."""
    yield from at_least(f"{at}.replicas", replicas, 1)
    yield from at_least(f"{at}.minAvailable", fields.get("minAvailable"), 1)
    pods, minimum = count(replicas), count(fields.get("minAvailable"))
    if isinstance(pods, int) and isinstance(minimum, int) and minimum > pods > 0:
        seen = f"is {minimum}, but replicas is {pods}, so the gang would wait forever"
        yield refuse(f"{at}.minAvailable", seen, or_less(pods))
    given, where = fields.get(scaling), f"{at}.{scaling}"
    require_known(where, given)
    if given is not None:
        yield from _scaled(where, mapping(given), pods, minimum)


def _scaled(
    at: str, scaling: Mapping[str, Any], pods: object, minimum: object
) -> Iterator[Finding]:
    """Check minReplicas and maxReplicas against the pods and the gang's minimum."""
    few, many = scaling.get("minReplicas"), scaling.get("maxReplicas")
    yield from at_least(f"{at}.minReplicas", few, 1)
    yield from at_least(f"{at}.maxReplicas", many, 1)
    lowest, highest = count(few), count(many)
    if isinstance(lowest, int) and isinstance(minimum, int) and lowest < minimum:
        seen = f"is {lowest}, but minAvailable is {minimum}: it would break the gang"
        yield refuse(f"{at}.minReplicas", seen, or_more(minimum))
    floor = max((n for n in (pods, lowest) if isinstance(n, int)), default=None)
    if isinstance(highest, int) and floor is not None and highest < floor:
        seen = f"is {highest}, but there are {floor} already (replicas, or minReplicas)"
        yield refuse(f"{at}.maxReplicas", seen, or_more(floor))


def grove_startup(view: CliqueSet) -> Iterator[Finding]:
    """Cliques start after existing cliques, not after themselves, and not in a cycle.

    startsAfter applies with cliqueStartupType CliqueStartupTypeExplicit, and is ignored otherwise.

    Pass: worker with startsAfter [leader], 1 of 2 cliques.
    Fail: leader after worker and worker after leader; startsAfter with 1 name that is not a clique.
    Level: mandatory; advisory for startsAfter that is ignored.
    Source: ai-dynamo/grove operator/internal/webhook/admission/pcs/validation/podcliquedeps.go.
    """
    kind = text(view.template.get("cliqueStartupType"), _STARTUPS[0])
    yield from one_of(f"{TEMPLATE}.cliqueStartupType", kind, _STARTUPS)
    after = [c for c in view.cliques if c.spec.get("startsAfter") not in (None, [], ())]
    if unknown_in(kind):
        return
    for clique in after:
        if kind != EXPLICIT and unknown_in(clique.spec.get("startsAfter")) is None:
            seen = f"is given, but cliqueStartupType is {display(kind)}, so it has no effect"
            at, remedy = f"{clique.at}.startsAfter", f"write cliqueStartupType: {EXPLICIT}"
            yield advise(at, seen, remedy, _STARTUP)
    if kind == EXPLICIT and after:
        yield from _order(view, after)


def _order(view: CliqueSet, after: list[Clique]) -> Iterator[Finding]:
    """Check startsAfter: it names other cliques of the set, and forms no cycle."""
    names = {clique.name for clique in view.cliques if isinstance(clique.name, str)}
    known = f"the set has {len(names)}: {joined(sorted(names))}"
    edges: dict[str, list[str]] = {}
    hidden = view.gap
    for clique in after:
        given, at = clique.spec.get("startsAfter"), f"{clique.at}.startsAfter"
        require_known(at, given, *sequence(given), hidden)
        wanted = list_of_texts(given)
        yield from unique(((f"{at}[{i}]", n) for i, n in enumerate(wanted)), _STARTUP, "entries")
        for index, name in enumerate(wanted):
            if name == clique.name:
                seen = f"is {display(name)}, the clique itself: it would wait forever"
                yield refuse(f"{at}[{index}]", seen, remove())
            elif name not in names:
                seen = f"is {display(name)}, and {known}"
                yield refuse(f"{at}[{index}]", seen, "name one of them")
        if isinstance(clique.name, str):
            edges[clique.name] = [name for name in wanted if name != clique.name]
    if circle := cycle_in(edges):
        seen = f"is part of a cycle of {count_of(len(circle) - 1, 'clique')}: "
        seen += " → ".join(display(name).strip("'") for name in circle[:8])
        remedy = "remove one of these startsAfter"
        yield refuse(f"{TEMPLATE}.cliques", seen, remedy)


def grove_pods(view: CliqueSet) -> Iterator[Finding]:
    """The pods of all cliques have one scheduler, and leave their placement to Grove.

    There is at least one clique; schedulerName is the same everywhere or left out everywhere;
    nodeName and topologySpreadConstraints are not given; a container sets each variable once.

    Pass: 2 cliques with schedulerName kai-scheduler.
    Fail: schedulerName volcano in 1 of 2 cliques; a podSpec with nodeName; 2 variables named A.
    Level: mandatory; advisory if 1 clique states a scheduler and another one none, which is
    rejected unless the operator's default is the stated one.
    Source: ai-dynamo/grove operator/internal/webhook/admission/pcs/validation/podcliqueset.go.
    """
    given = view.template.get("cliques")
    if gap := unknown_in(given):
        yield not_checked(f"{TEMPLATE}.cliques", gap)
    elif not view.cliques and view.object.spec:
        yield refuse(f"{TEMPLATE}.cliques", "holds no clique", "write a clique")
    yield from _schedulers(view)
    for clique in view.cliques:
        pod, at = mapping(clique.pod), f"{clique.at}.podSpec"
        if gap := unknown_in(clique.pod):
            yield not_checked(at, gap)
            continue
        for key in ("topologySpreadConstraints", "nodeName"):
            if pod.get(key) not in (None, ""):
                seen = f"is given in 1 of {len(view.cliques)} cliques, and Grove places the pods"
                yield refuse(f"{at}.{key}", seen, remove())
        for field in ("containers", "initContainers"):
            for index, container in enumerate(sequence(pod.get(field))):
                yield from _variables(f"{at}.{field}[{index}].env", mapping(container).get("env"))


def _variables(at: str, env: object) -> Iterator[Finding]:
    names = [mapping(item).get("name") for item in sequence(env)]
    named = ((f"{at}[{i}].name", name) for i, name in enumerate(names))
    yield from unique(named, _PODS, "variables")


@part_of_rule
def _schedulers(view: CliqueSet) -> Iterator[Finding]:
    """Report cliques of a set whose schedulers differ."""
    first = ""
    for clique in view.cliques:
        name = mapping(clique.pod).get("schedulerName", "")
        at = f"{clique.at}.podSpec.schedulerName"
        if unknown_in(clique.pod):
            continue
        require_known(at, name)
        if isinstance(name, str) and name:
            if first and name != first:
                seen = (
                    f"is {display(name)}, but another clique has {display(first)}, and all must "
                    "have the same"
                )
                yield refuse(at, seen, f"write {display(first)} in all")
                return
            first = name
    silent = [c for c in view.cliques if mapping(c.pod).get("schedulerName", "") in ("", None)]
    if first and silent:
        at = f"{silent[0].at}.podSpec.schedulerName"
        seen = f"is not stated in {len(silent)} of {len(view.cliques)} cliques, and another one has"
        seen += f" {display(first)}: all must have the same scheduler"
        yield advise(at, seen, f"write {display(first)} in all", _PODS)


_SHARING = "grove-sharing"
_GROUP, _NONE = "grove.io/mnnvl-group", "none"
_CLAIMS, _SHARED = "resourceClaimTemplates", "resourceSharing"
_FILTERS = ("childCliqueNames", "childScalingGroupNames")


def grove_sharing(view: CliqueSet) -> Iterator[Finding]:
    """Templates of shared resource claims request devices, and each claim is shared validly.

    Each place shares a claim at most once. A claim of a template in the same set has no namespace.
    A filter names cliques or scaling groups of the place where it is.

    Pass: resourceClaimTemplates gpus with 1 device request, shared by a clique as gpus.
    Fail: a template without device requests; the same claim twice in one clique.
    Level: mandatory. Grove's webhook rejects it.
    Source: ai-dynamo/grove v0.1.0-alpha.9 operator/internal/webhook/admission/pcs/validation
    /podcliqueset.go validateResourceClaimTemplates, validateResourceSharingSpecs,
    validatePCSResourceSharing, validatePCSGResourceSharing.
    """
    template, at = view.template, f"{TEMPLATE}.{_CLAIMS}"
    held = [template, *(one.fields for one in view.cliques), *(one.fields for one in view.groups)]
    if not any(fields.get(name) for fields in held for name in (_CLAIMS, _SHARED)):
        return
    require_known(at, view.gap, unknown_inside(template.get(_CLAIMS)))
    claims = [mapping(item) for item in sequence(template.get(_CLAIMS))]
    for index, claim in enumerate(claims):
        yield from _claim(f"{at}[{index}]", claim)
    named = [(f"{at}[{index}].name", claim.get("name")) for index, claim in enumerate(claims)]
    yield from unique(named, _SHARING, "templates")
    names = frozenset(name for _, name in named if isinstance(name, str))
    cliques = frozenset(clique.name for clique in view.cliques)
    groups = frozenset(group.name for group in view.groups)
    places: list[tuple[str, object, tuple[frozenset[Any], frozenset[Any]]]] = [
        (TEMPLATE, template.get(_SHARED), (cliques, groups))
    ]
    places += [
        (clique.path, clique.fields.get(_SHARED), (frozenset(), frozenset()))
        for clique in view.cliques
    ]
    places += [
        (group.path, group.fields.get(_SHARED), (frozenset(group.cliques), frozenset()))
        for group in view.groups
        if all(isinstance(name, str) for name in group.cliques)
    ]
    for path, listed, children in places:
        yield from _shared(f"{path}.{_SHARED}", listed, names, children)


def _claim(at: str, claim: Mapping[str, Any]) -> Iterator[Finding]:
    """Check a template of a claim: a name, and a request for a device."""
    path = f"{at}.templateSpec.spec.devices.requests"
    asked: object = claim
    for step in ("templateSpec", "spec", "devices", "requests"):
        asked = inside(asked, step)
    if gap := unknown_in(asked):
        yield not_checked(path, gap)
    elif not sequence(asked):
        yield refuse(path, "is empty", "ask for a device")
    if claim.get("name") == "":
        yield refuse(f"{at}.name", "is empty", "name it")


@part_of_rule
def _shared(
    at: str, listed: object, names: frozenset[str], children: tuple[frozenset[Any], frozenset[Any]]
) -> Iterator[Finding]:
    """Check shared claims of a set: names, templates that exist, and the children they name.

    `children` are the names of cliques and of scaling groups below.
    """
    require_known(at, unknown_inside(listed))
    items = [mapping(item) for item in sequence(listed)]
    given = ((f"{at}[{i}].name", item.get("name") or None) for i, item in enumerate(items))
    yield from unique(given)
    for index, item in enumerate(items):
        path, name = f"{at}[{index}]", text(item.get("name"), "")
        if name == "":
            remedy = "write the name of a template"
            yield refuse(f"{path}.name", "is empty", remedy)
        elif item.get("namespace") not in (None, "") and name in names:
            seen = f"is {display(item['namespace'])}, but '{name}' is a template of this set"
            yield refuse(f"{path}.namespace", seen, remove())
        if item.get("filter") is not None and any(children):
            yield from _filtered(f"{path}.filter", item["filter"], children)


@part_of_rule
def _filtered(
    path: str, stated: object, children: tuple[frozenset[Any], frozenset[Any]]
) -> Iterator[Finding]:
    """Check a filter of a shared claim: it names cliques or groups of this set."""
    require_known(path, unknown_within(stated), *(name for of in children for name in of))
    listed = [sequence(mapping(stated).get(name)) for name in _FILTERS]
    if not any(listed):
        yield refuse(path, "names nothing", "name a clique, or remove it")
    for field, given, known in zip(_FILTERS, listed, children, strict=True):
        for index, name in enumerate(given):
            if text(name) not in known:
                seen = f"is {display(name)}, which does not exist"
                remedy = "write a name of this set"
                yield refuse(f"{path}.{field}[{index}]", seen, remedy)


def grove_links(view: CliqueSet) -> Iterator[Finding]:
    """The annotation grove.io/mnnvl-group is a DNS label, or none.

    It may be on the set, on cliques and on scaling groups. Whether the operator uses it depends on
    its configuration, which `check` does not know.

    Pass: grove.io/mnnvl-group training; none.
    Fail: grove.io/mnnvl-group Training; an empty one.
    Level: mandatory. Grove's webhook rejects it.
    Source: ai-dynamo/grove v0.1.0-alpha.9 operator/internal/mnnvl/helpers.go
    ValidateMNNVLGroupName; webhook.go ValidatePCSOnCreate.
    """
    held = [("metadata", mapping(view.object.body.get("metadata")))]
    held += [(clique.path, clique.fields) for clique in view.cliques]
    held += [(group.path, group.fields) for group in view.groups]
    for place, fields in held:
        notes = mapping(fields.get("annotations"))
        if _GROUP in notes and notes[_GROUP] != _NONE:
            path = join_path(f"{place}.annotations", _GROUP)
            yield from dns_label(path, notes[_GROUP])
