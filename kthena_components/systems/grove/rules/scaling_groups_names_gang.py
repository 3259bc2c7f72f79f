"""Checks the names of a PodCliqueSet, and the cliques of its scaling groups."""

from collections.abc import Iterator

from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, advise, count_of, not_checked, refuse
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.rules.support.admission import joined, subdomain, unique
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, first_unknown, require_known, unknown_in
from kthena_components.systems.grove.view import TEMPLATE, Clique, CliqueSet

_NAMES, _GROUPS, _GANG = "grove-names", "grove-scaling-groups", "grove-gang"
NAME_SUM = 45
"""Maximum total length of the names of a pod's set, scaling group and clique."""


def grove_names(view: CliqueSet) -> Iterator[Finding]:
    """Names of cliques, roles and scaling groups are unique, and short enough for pod names.

    The names of the set, the scaling group if there is one, and the clique have at most 45
    characters together, because a pod's name contains them. Each is a DNS-1123 subdomain.

    Pass: set deepseek, scaling group decode and clique worker: 20 characters.
    Fail: a set of 20 characters, a scaling group of 14 and a clique of 12: 46 characters.
    Level: mandatory.
    Source: ai-dynamo/grove operator/internal/webhook/admission/pcs/validation/podcliqueset.go,
    validatePodNameConstraints.
    """
    yield from subdomain("metadata.name", view.object.name)
    cliques = [(f"{clique.path}.name", clique.name) for clique in view.cliques]
    groups = [(f"{group.path}.name", group.name) for group in view.groups]
    roles = [(f"{clique.at}.roleName", clique.spec.get("roleName")) for clique in view.cliques]
    for path, name in (*cliques, *groups):
        if name in {None, ""}:
            yield refuse(path, "is empty", "write a name")
        else:
            yield from subdomain(path, name)
    yield from unique(cliques, _NAMES, "cliques")
    yield from unique(groups, _NAMES, "scaling groups")
    yield from unique(roles, _NAMES, "roles")
    require_known("metadata.name", view.gap, view.object.name)
    yield from _lengths(view)


def _lengths(view: CliqueSet) -> Iterator[Finding]:
    """Check the lengths of the names that Grove makes for cliques, inside and outside of groups."""
    stem = view.object.name if isinstance(view.object.name, str) else ""
    grouped = view.grouped
    for clique in view.cliques:
        if isinstance(clique.name, str) and clique.name not in grouped:
            yield from _length(f"{clique.path}.name", stem, "", clique.name)
    for group in view.groups:
        name = group.name if isinstance(group.name, str) else ""
        for index, member in enumerate(group.cliques):
            if isinstance(member, str):
                yield from _length(f"{group.path}.cliqueNames[{index}]", stem, name, member)


def _length(at: str, stem: str, group: str, clique: str) -> Iterator[Finding]:
    total = len(stem) + len(group) + len(clique)
    if total > NAME_SUM:
        middle = f" + {len(group)} (scaling group)" if group else ""
        seen = f"gives names of {len(stem)} (set){middle} + {len(clique)} (clique) = {total} "
        seen += f"characters, but at most {NAME_SUM} together are allowed"
        remedy = f"shorten them by {count_of(total - NAME_SUM, 'character')}"
        yield refuse(at, seen, remedy)


def grove_scaling_groups(view: CliqueSet) -> Iterator[Finding]:
    """A scaling group consists of existing cliques, and no clique is in two of them.

    A clique in a scaling group has no autoscaler of its own: the group is scaled as a whole.

    Pass: cliqueNames [leader, worker] in 1 scaling group, and 2 cliques of these names.
    Fail: cliqueNames with 1 name that is not a clique; worker in 2 scaling groups.
    Level: mandatory.
    Source: ai-dynamo/grove operator/internal/webhook/admission/pcs/validation/podcliqueset.go.
    """
    require_known(f"{TEMPLATE}.podCliqueScalingGroups", view.gap)
    names = {clique.name for clique in view.cliques if isinstance(clique.name, str)}
    known = f"the set has {len(names)}: {joined(sorted(names))}"
    places = [
        (f"{group.path}.cliqueNames[{index}]", name)
        for group in view.groups
        for index, name in enumerate(group.cliques)
    ]
    for path, name in places:
        if not isinstance(name, str) or name not in names:
            seen = f"is {display(name)}, and {known}"
            yield refuse(path, seen, "name one of them")
    yield from unique(places, _GROUPS, "entries")
    grouped = view.grouped
    for clique in view.cliques:
        scaling = clique.spec.get("autoScalingConfig")
        if clique.name in grouped and (gap := unknown_in(scaling)):
            yield not_checked(f"{clique.at}.autoScalingConfig", gap)
        elif clique.name in grouped and scaling is not None:
            seen = "is given, but the clique is in 1 scaling group, which is scaled as a whole"
            at, remedy = f"{clique.at}.autoScalingConfig", "write scaleConfig in the scaling group"
            yield refuse(at, seen, remedy)


def grove_gang(view: CliqueSet) -> Iterator[Finding]:
    """The gang waits for all pods of a clique that form one engine.

    Grove places minAvailable pods of a clique together. If they are ranks of one engine, fewer than
    all block their GPUs and serve nothing. A clique without minAvailable waits for all.

    Pass: 3 workers of one engine with minAvailable 3, or with none.
    Fail: 3 workers of one engine (--nnodes 4) with minAvailable 1.
    Level: advisory.
    Source: ai-dynamo/grove operator/api/core/v1alpha1/podclique.go, MinAvailable.
    """
    for clique in view.cliques:
        minimum, pods = count(clique.spec.get("minAvailable")), count(clique.replicas)
        if minimum is None or not _joins(clique, view.object.context):
            continue
        at = f"{clique.at}.minAvailable"
        if gap := first_unknown(minimum, pods):
            yield not_checked(at, gap)
        elif isinstance(minimum, int) and isinstance(pods, int) and 0 < minimum < pods:
            seen = f"is {minimum} of {count_of(pods, 'pod')}, and one engine needs all of them"
            yield advise(at, seen, either(write(pods), remove()), _GANG)


def _joins(clique: Clique, context: Context) -> bool:
    """Return whether the pods of a clique are parts of one engine, by their command."""
    spec = HIDDEN if unknown_in(clique.pod) else clique.pod
    command = read_pod({"spec": spec}, clique.at, context=context).command
    if command is None:
        return False
    if command.engine is None:
        return command.ray_role == "worker"
    return command.headless is True or command.nnodes not in (None, 1)
