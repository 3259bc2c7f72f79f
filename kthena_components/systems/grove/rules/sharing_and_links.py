"""Grove's rules about shared resource claims and links between nodes."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, join_path, not_checked, part_of_rule
from kthena_components.core.remedies import remove
from kthena_components.core.rules.support.admission import dns_label, refuse, unique
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    inside,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_inside,
    unknown_within,
)
from kthena_components.systems.grove.view import TEMPLATE, CliqueSet

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
    path = f"{at}.templateSpec.spec.devices.requests"
    asked: object = claim
    for step in ("templateSpec", "spec", "devices", "requests"):
        asked = inside(asked, step)
    if gap := unknown_in(asked):
        yield not_checked(path, gap)
    elif not sequence(asked):
        yield from refuse(path, "is empty", "ask for a device")
    if claim.get("name") == "":
        yield from refuse(f"{at}.name", "is empty", "name it")


@part_of_rule
def _shared(
    at: str, listed: object, names: frozenset[str], children: tuple[frozenset[Any], frozenset[Any]]
) -> Iterator[Finding]:
    require_known(at, unknown_inside(listed))
    items = [mapping(item) for item in sequence(listed)]
    given = ((f"{at}[{i}].name", item.get("name") or None) for i, item in enumerate(items))
    yield from unique(given)
    for index, item in enumerate(items):
        path, name = f"{at}[{index}]", text(item.get("name"), "")
        if name == "":
            remedy = "write the name of a template"
            yield from refuse(f"{path}.name", "is empty", remedy)
        elif item.get("namespace") not in (None, "") and name in names:
            seen = f"is {display(item['namespace'])}, but '{name}' is a template of this set"
            yield from refuse(f"{path}.namespace", seen, remove())
        if item.get("filter") is not None and any(children):
            yield from _filtered(f"{path}.filter", item["filter"], children)


@part_of_rule
def _filtered(
    path: str, stated: object, children: tuple[frozenset[Any], frozenset[Any]]
) -> Iterator[Finding]:
    require_known(path, unknown_within(stated), *(name for of in children for name in of))
    listed = [sequence(mapping(stated).get(name)) for name in _FILTERS]
    if not any(listed):
        yield from refuse(path, "names nothing", "name a clique, or remove it")
    for field, given, known in zip(_FILTERS, listed, children, strict=True):
        for index, name in enumerate(given):
            if text(name) not in known:
                seen = f"is {display(name)}, which does not exist"
                remedy = "write a name of this set"
                yield from refuse(f"{path}.{field}[{index}]", seen, remedy)


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
