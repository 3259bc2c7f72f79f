"""Checks LeaderWorkerSets and DisaggregatedSets.

Mandatory rules cover what the API server or the webhook of LeaderWorkerSet rejects; advisory ones
what they accept and then ignore. rollout_disaggregated.py checks updates, and the roles of a
DisaggregatedSet.
"""

from collections.abc import Iterator, Mapping

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, count_of, not_checked, part_of_rule
from kthena_components.core.remedies import at_most, either, remove, write
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    text,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.lws.rules.rollout_disaggregated import (
    at_least,
    check_roles,
    check_rollout,
    refusal,
)
from kthena_components.systems.lws.view import LEADER, WORKER, Group, Sets

_STARTUP = "lws-gang-startup"
_INT32 = 2**31 - 1
_VOLCANO = ("scheduling.volcano.sh/", "volcano.sh/")
_SUBGROUP_TOPOLOGY = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_TOPOLOGY = "leaderworkerset.sigs.k8s.io/exclusive-topology"
_STEM = 58
"""Characters of a generateName that the API server keeps in front of its five random ones."""
_TRIED = 1000
"""Maximum number of subgroup sizes tried for a remedy."""


def lws_shape(view: Sets) -> Iterator[Finding]:
    """A LeaderWorkerSet, or each one that a DisaggregatedSet creates, has valid names and counts.

    The name is a DNS-1035 label; size is 1 or more; replicas × size fit 32 bits; one of
    maxUnavailable and maxSurge is above 0; a subgroup divides the group.

    Pass: size 2, subGroupSize 1, maxUnavailable 1.
    Fail: size 8, subGroupSize 3; maxUnavailable 0 and maxSurge 0.
    Level: mandatory.
    Source: kubernetes-sigs/lws pkg/webhooks/leaderworkerset_webhook.go generalValidate;
    pkg/webhooks/disaggregatedset/disaggregatedset_webhook.go.
    """
    yield from _name(view)
    yield from _stem(view)
    for group in view.groups:
        yield from _counts(group)
        yield from _templates(group)
        yield from check_rollout(group)
        yield from _subgroups(group)
    if view.disaggregated:
        yield from check_roles(view)


@part_of_rule
def _name(view: Sets) -> Iterator[Finding]:
    name = known(view.object.name, "metadata.name")
    if name and not _is_label(name):
        seen = f"is {display(name)}, which is not a DNS-1035 label of at most {naming.DNS_LABEL} "
        seen += "characters"
        remedy = "write lower-case letters, digits and dashes, a letter first, no dash last"
        yield refusal("metadata.name", seen, remedy)


def _stem(view: Sets) -> Iterator[Finding]:
    """Check the names that the API server generates."""
    given = view.object.metadata
    stem = "" if given.get("name") else given.get("generateName")
    if not isinstance(stem, str) or not stem or unknown_in(stem):
        return
    if not naming.DNS_1035.fullmatch(f"{stem[:_STEM]}aaaaa"):
        seen = f"is {display(stem)}, and names that begin with it are not DNS-1035 labels"
        remedy = "write lower-case letters, digits and dashes, a letter first"
        yield refusal("metadata.generateName", seen, remedy)


def _is_label(name: str) -> bool:
    return (
        naming.least_length(name) <= naming.DNS_LABEL
        and naming.DNS_1035.fullmatch(name) is not None
    )


def _counts(group: Group) -> Iterator[Finding]:
    """Check size and replicas of a set; all its pods together are counted in 32 bits."""
    size_at = f"{group.path}.leaderWorkerTemplate.size"
    yield from at_least(size_at, group.template.get("size"), 1, ": the leader counts")
    yield from at_least(f"{group.path}.replicas", group.spec.get("replicas"), 0)
    size, replicas = group.size, group.replicas
    if isinstance(size, int) and isinstance(replicas, int) and size > 0 < replicas > _INT32 // size:
        seen = (
            f"creates {display(size)} × {count_of(display(replicas), 'pod')}, but may "
            f"create at most {_INT32}"
        )
        yield refusal(f"{group.path}.replicas", seen, f"write at most {_INT32 // size}")


def _templates(group: Group) -> Iterator[Finding]:
    """Check that templates have containers.

    The CRD does not require a spec, but the webhook writes one whose containers are null, which the
    CRD rejects.
    """
    for field in (LEADER, WORKER):
        template = group.template.get(field)
        if isinstance(template, Mapping) and template.get("spec") is None:
            at = f"{group.path}.leaderWorkerTemplate.{field}.spec"
            yield refusal(at, "is missing, so the pods have no containers", "add spec.containers")


@part_of_rule
def _subgroups(group: Group) -> Iterator[Finding]:
    """Check subGroupSize, and that the annotation of its topology has subgroups."""
    policy = group.template.get("subGroupPolicy")
    at = f"{group.path}.leaderWorkerTemplate.subGroupPolicy"
    require_known(at, policy)
    if not isinstance(policy, Mapping):
        if _SUBGROUP_TOPOLOGY in group.annotations:
            where = f"{group.annotations_path}.{_SUBGROUP_TOPOLOGY}"
            seen = "is given, but there are no subgroups"
            yield refusal(where, seen, "add subGroupPolicy.subGroupSize, or remove it")
        return
    given, kind = policy.get("subGroupSize"), text(policy.get("subGroupPolicyType"))
    if given is None:
        seen = "is missing, and the webhook of LWS fails without it"
        yield refusal(f"{at}.subGroupSize", seen, "write the number of pods of a subgroup")
    yield from at_least(f"{at}.subGroupSize", given, 1)
    number = whole(given)
    if isinstance(number, int) and number > 0:
        require_known(f"{at}.subGroupSize", group.size, kind)
        if isinstance(group.size, int) and group.size > 0:
            yield from _divides(f"{at}.subGroupSize", number, group.size, kind)


def _divides(at: str, number: int, size: int, kind: object) -> Iterator[Finding]:
    """Check that a subgroup's size divides the group, with or without its leader."""
    excluded = kind == "LeaderExcluded"
    if number > size:
        seen = f"is {display(number)}, but the group has {count_of(size, 'pod')}"
        yield refusal(at, seen, at_most(size))
    elif not _fits(number, size, excluded):
        seen = f"is {number}, which divides neither {size} (size) nor {size - 1} (without leader)"
        if excluded:
            seen = f"is {number}, which does not divide {size - 1} (size {size} without leader)"
        nearest = range(min(number, size - 1, _TRIED), 0, -1)
        fits = next((n for n in nearest if _fits(n, size, excluded)), 1)
        yield refusal(at, seen, f"write, for example, {fits}")


def _fits(number: int, size: int, excluded: bool) -> bool:
    return (size - 1) % number == 0 or (not excluded and size % number == 0)


def lws_gang_startup(view: Sets) -> Iterator[Finding]:
    """A gang starts whole groups, so workers must not wait for a ready leader.

    With startupPolicy LeaderReady the PodGroup's minMember is 1: only the leader is placed, and
    blocks its GPUs while its workers may find no room. With LeaderCreated it is the whole group,
    but with the annotation exclusive-topology the workers are created only when the leader has a
    node: no pod ever gets one.

    Pass: startupPolicy LeaderCreated with the annotation scheduling.volcano.sh/queue-name.
    Fail: startupPolicy LeaderReady with schedulerName volcano; exclusive-topology with volcano.
    Level: advisory; mandatory for exclusive-topology, because no pod ever starts.
    Source: kubernetes-sigs/lws pkg/schedulerprovider/volcano_provider.go; keps/407-gang-scheduling;
    pkg/controllers/pod_controller.go Reconcile. Run on LeaderWorkerSet 0.9.0 with Volcano 1.14.1.
    """
    for group in view.groups:
        yield from _exclusive(group)
        at, policy = f"{group.path}.startupPolicy", group.spec.get("startupPolicy")
        if group.size == 1 or (isinstance(policy, str) and policy == "LeaderCreated"):
            continue
        gang = _gang(group, view)
        gap = first_unknown(policy, group.size, gang)
        if gap is not None and gang != "" and (policy == "LeaderReady" or unknown_in(policy)):
            yield not_checked(at, gap, _STARTUP)
        elif policy == "LeaderReady" and gang and isinstance(group.size, int):
            yield Finding(
                path=at,
                seen=f"is LeaderReady, but {gang} requests a gang: it would contain only the "
                f"leader, and not the {count_of(group.size, 'pod')} of a group",
                remedy=either(
                    write("LeaderCreated", "write LeaderCreated"), "disable gang scheduling"
                ),
                rule=_STARTUP,
                level=Level.ADVISORY,
            )


@part_of_rule
def _exclusive(group: Group) -> Iterator[Finding]:
    """Report workers that are created after their leader has a node, which waits for them."""
    path, policy = f"{group.annotations_path}.{_TOPOLOGY}", group.spec.get("startupPolicy")
    if _TOPOLOGY not in group.annotations or group.size == 1 or policy == "LeaderReady":
        return
    name = mapping(mapping(group.template.get(group.leader)).get("spec")).get("schedulerName")
    require_known(path, name)
    if name != "volcano":
        return
    require_known(path, policy, group.size)
    if isinstance(group.size, int) and group.size > 1:
        yield Finding(
            path=path,
            seen="is stated, so LWS creates the workers of a group when its leader has a node, but "
            f"Volcano places all {count_of(group.size, 'pod')} of a group together, so none of "
            "them ever starts",
            remedy=either(remove(), "write schedulerName: default-scheduler"),
            rule=_STARTUP,
        )


def _gang(group: Group, view: Sets) -> str | Unknown:
    """Name what requests a gang; empty if nothing does."""
    unknown: Unknown | None = None
    for annotations in (group.annotations, mapping(view.object.metadata.get("annotations"))):
        for key in annotations:
            if key_text(key).startswith(_VOLCANO):
                return f"the annotation {key_text(key)}"
        # Every field of an unknown map is unknown.
        unknown = unknown or unknown_in(annotations.get(_VOLCANO[0]))
    for name in group.schedulers:
        unknown = unknown or unknown_in(name)
        if name == "volcano":
            return "the scheduler volcano"
    return unknown or ""
