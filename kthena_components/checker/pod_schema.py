"""Checks the types of fields in pod templates, in any object, and says where one belongs.

Findings that a misplaced field causes: the remedy is to move the field, not to write another.

`volumes` beside a template's `spec` is not a field there. A rule then finds mounts without a
volume, and would say "add the volume", though it only needs to be moved.
"""

import marshal
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

from kthena_components.checker.crd_schema import SCHEMA_RULE, SCHEMA_RULES
from kthena_components.core.findings import Finding, Level, join_path, paths_above, run_rule
from kthena_components.core.schema.fast_check import check_quickly
from kthena_components.core.schema.language import UNDECLARED
from kthena_components.core.schema.metadata import say
from kthena_components.core.schema.misplaced_fields import move_in, moves
from kthena_components.core.schema.pod import ROOT_TYPE, shape_of, unknown_field
from kthena_components.core.schema.pod_values import check_values
from kthena_components.core.schema.pod_volumes import Added
from kthena_components.core.values.display import listing
from kthena_components.core.values.read import is_map, mapping, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.system import Kind

RULE = "pod-schema"
_OF_A_POD = frozenset({"apiVersion", "kind", "status"})
"""Fields of a Pod that a template does not have."""


_CLAIMS = frozenset({"volumeClaimTemplates", "templates"})
"""Fields with claims: of StatefulSets and others, and of a JobSet's volumeClaimPolicies."""
_DEEPEST = 12
_POLICIES = ("Always", "OnFailure", "Never")
_WITHOUT_REFERENCES = 2
"""A format of marshal in which equal values are equal strings."""
_REMEMBERED = 1000
_KNOWN: dict[tuple[object, ...], Sequence[Finding]] = {}
_SCHEMAS = (RULE, SCHEMA_RULE, *SCHEMA_RULES.values())
_INDEX = regex(r"\[(\d+)\]")
_Move = tuple[str, str]
"""The path of a misplaced field, and the path of the map into which it belongs."""
_MOST = 8
"""Up to this number of misplaced fields, each is also moved alone: every move needs a check."""
Check = Callable[[Mapping[str, Any]], Iterable[Finding]]


def check_templates(manifest: Mapping[str, Any], kind: Kind[Any]) -> Sequence[Finding]:
    """Apply pod_schema and pod_values. Equal templates at equal places are checked once in a run.

    Args:
        kind: Its kind, with the places of its templates.
    """
    places = (*kind.templates, *kind.own_templates)
    found = [each for place in places for each in places_of(manifest, place)]
    if not found:
        return ()
    claims, injector = frozenset(_claims(manifest)), Added(bodies=(manifest,)).injector()
    try:
        # Only plain values can be written so. Others are unknown, and rare.
        key = kind.group_kind, claims, injector, marshal.dumps(found, _WITHOUT_REFERENCES)
    except ValueError:
        return _findings(manifest, kind, claims)
    if key not in _KNOWN:
        if len(_KNOWN) >= _REMEMBERED:
            _KNOWN.clear()
        _KNOWN[key] = _findings(manifest, kind, claims)
    return _KNOWN[key]


def _findings(
    manifest: Mapping[str, Any], kind: Kind[Any], claims: frozenset[str]
) -> Sequence[Finding]:
    found = run_rule(pod_schema, manifest, kind.templates)
    return found + run_rule(pod_values, manifest, kind, claims)


def pod_schema(manifest: Mapping[str, Any], templates: Iterable[str]) -> Iterator[Finding]:
    """The fields of a pod template have the types that Kubernetes 1.34 requires.

    The rule checks templates in Kubernetes' own workloads, LeaderWorkerSets, KubeRay's clusters,
    RoleBasedGroups, ModelInfers and Volcano Jobs, but not patches; a ModelServing's schema covers
    its own templates. Values that are not known yet are skipped: rules that need them report it.

    kubectl, server-side apply and strict clients reject a field that does not exist; for others the
    API server drops it, and a probe or a node selector is gone without a word.

    Pass: env value "8", in quotes; cpu 0.5; livenessProbe.periodSeconds 10.
    Fail: env value 8, without quotes; livenessProbe 5; a container without a name; no containers;
    node_selector in place of nodeSelector.
    Level: mandatory. The API server, or the controller that creates the pods, rejects it. Advisory
    for a field that resembles none of Kubernetes 1.34: a newer server may know it.
    Source: the OpenAPI document of Kubernetes 1.34, io.k8s.api.core.v1.PodTemplateSpec.
    """
    shape = shape_of(ROOT_TYPE, by_crd=False, whole=True)
    for place in templates:
        for path, found in places_of(manifest, place):
            if found is None:
                continue
            template = found if path else _template_of(found)
            yield from _empty(template, path)
            findings = list(check_quickly(template, shape, path))
            unknown = any(finding.seen == UNDECLARED for finding in findings)
            moved = dict(moves(template, shape, path)) if unknown else {}
            for finding in findings:
                if finding.seen == UNDECLARED:
                    unknown_name = unknown_field(finding, RULE)
                    yield replace(unknown_name, remedy=moved.get(finding.path, unknown_name.remedy))
                elif finding.level is not Level.UNKNOWN:
                    yield replace(finding, rule=RULE)


def pod_values(
    manifest: Mapping[str, Any], kind: Kind[Any], claims: frozenset[str]
) -> Iterator[Finding]:
    """The values in a pod template are those that Kubernetes accepts in a pod.

    The rule checks names, amounts of resources, variables, ports, volumes, mounts, probes, security
    contexts, DNS, affinity, spread and tolerations, and the restartPolicy that a kind requires. The
    API server rejects its own workloads. It takes StatefulSets and custom resources with such a
    template, and then rejects each pod. Values that are not known yet are skipped.

    Pass: container engine-1; nvidia.com/gpu 8; a request of 4Gi below a limit of 8Gi.
    Fail: container A_B; nvidia.com/gpu "7.5"; a memory request above its limit; a volumeMount
    without its volume; resourceFieldRef limits.nvidia.com/gpu; a probe with 2 actions.
    Level: mandatory. Advisory for a mount of a volume that a controller or webhook may add, as
    KubeRay and those of Vault or Istio do, and for a container's restartPolicy before 1.35.
    Source: kubernetes v1.34 pkg/apis/core/validation/validation.go; compared with the API server on
    random pod templates.
    """
    for place in (*kind.templates, *kind.own_templates):
        for path, found in places_of(manifest, place):
            added = Added(claims=claims, names=kind.adds_volumes, bodies=(found, manifest))
            yield from check_values(found, path, added)
            yield from _ends(mapping(mapping(found).get("spec")), join_path(path, "spec"), kind)


def _ends(pod: Mapping[str, Any], path: str, kind: Kind[Any]) -> Iterator[Finding]:
    """Report a restartPolicy or a deadline that pods may have, but not the pods of this kind."""
    allowed, policy = kind.restart_policies, pod.get("restartPolicy") or "Always"
    if policy in _POLICIES and allowed and policy not in allowed:
        seen = (
            f"is {policy}" if pod.get("restartPolicy") else "is missing, and its default is Always"
        )
        seen += f", but for a {kind.name} it must be {' or '.join(allowed)}"
        yield say(f"{path}.restartPolicy", seen, f"write {allowed[0]}")
    deadline = pod.get("activeDeadlineSeconds")
    if allowed == ("Always",) and deadline is not None and not unknown_in(deadline):
        seen = f"is given, but the pods of a {kind.name} do not end"
        yield say(f"{path}.activeDeadlineSeconds", seen, "remove it")


def _claims(manifest: Mapping[str, Any]) -> Iterator[str]:
    """List the names of the claims that a controller mounts, at any depth outside templates."""
    maps: list[Mapping[Any, Any]] = [manifest]
    for _ in range(_DEEPEST):
        below: list[Mapping[Any, Any]] = []
        for one in maps:
            outside = "containers" not in one
            for key, item in one.items():
                kind = type(item)
                if kind is str:
                    continue  # most fields, and quicker to tell
                if kind is list or isinstance(item, list | tuple):
                    yield from _claim_names(item) if key in _CLAIMS else ()
                    below += filter(is_map, item) if outside else ()
                elif outside and (kind is dict or is_map(item)):
                    below.append(item)
        maps = below


def _claim_names(claims: Iterable[object]) -> Iterator[str]:
    for claim in claims:
        name = mapping(mapping(claim).get("metadata")).get("name")
        if isinstance(name, str):
            yield name


def _template_of(pod: object) -> object:
    """Return a Pod without the fields that a template does not have."""
    if not isinstance(pod, Mapping):
        return pod
    return {key: value for key, value in pod.items() if key not in _OF_A_POD}


def _empty(template: object, path: str) -> Iterator[Finding]:
    """Report pods without containers. A spec that lacks the field does not have the shape."""
    if not isinstance(template, Mapping) or any(map(is_unresolved, template.values())):
        return
    spec = template.get("spec")
    listed = spec.get("containers") if isinstance(spec, Mapping) else None
    if spec is None or listed in ([], ()):
        where, seen = join_path(path, "spec.containers"), "is empty"
        remedy = "write at least one container"
        yield Finding(path=where, seen=seen, remedy=remedy, rule=RULE)


@cache
def _keys_of(place: str) -> tuple[tuple[str, str], ...]:
    """Return the keys of a place, each as it is written and without its `[]`."""
    return tuple((key, key.removesuffix("[]")) for key in place.split(".") if key)


def places_of(manifest: Mapping[str, Any], place: str) -> list[tuple[str, object]]:
    """Find the values at a place, each with its path; `[]` after a key is each member of a list."""
    found: list[tuple[str, object]] = [("", manifest)]
    for key, name in _keys_of(place):
        maps = [(path, value) for path, value in found if type(value) is dict or is_map(value)]
        found = [(f"{path}.{name}" if path else name, value.get(name)) for path, value in maps]
        if name != key:
            lists = [(path, value) for path, value in found if isinstance(value, list | tuple)]
            found = [(f"{path}[{i}]", item) for path, each in lists for i, item in enumerate(each)]
    return found


def follow_moves(findings: list[Finding], body: Mapping[str, Any], check: Check) -> list[Finding]:
    """Name the move in the remedy of each finding that it mends.

    Args:
        findings: All findings of the object.
        check: Checks an object like this one.
    """
    moves = [move for finding in findings if (move := _move(finding)) is not None]
    if not moves:
        return findings
    by: dict[tuple[_Move, ...], set[tuple[str, str]]]
    alone = moves if 1 < len(moves) <= _MOST else []
    by = {(move,): _left(body, [move], check) for move in alone}
    by[tuple(moves)] = _left(body, moves, check)
    return [_with_moves(finding, by) for finding in findings]


def _move(finding: Finding) -> _Move | None:
    target = move_in(finding.remedy) if finding.rule in _SCHEMAS else None
    return None if target is None else (finding.path, target)


def _left(body: Mapping[str, Any], moves: Sequence[_Move], check: Check) -> set[tuple[str, str]]:
    """Return the rules and paths of the findings that are left after some moves."""
    made = deepcopy(dict(body))
    for field, target in moves:
        holder, name = field.rpartition(".")[::2]
        old, (above, last) = _map_at(made, holder), target.rpartition(".")[::2]
        new = _map_at(made, target)
        if new is None and (parent := _map_at(made, above)) is not None and last not in parent:
            new = parent[last] = {}
        if old is None or new is None or name not in old:
            continue
        item, stated = old.pop(name), new.get(name)
        new[name] = [*stated, *item] if isinstance(stated, list) else item
    return {(finding.rule, finding.path) for finding in check(made)}


def _map_at(tree: Any, path: str) -> dict[Any, Any] | None:
    """Return the map at a path; None if there is none, or a key of the path has a dot."""
    for step in filter(None, path.replace("[", ".[").split(".")):
        index = _INDEX.fullmatch(step)
        if index is None:
            tree = tree.get(step) if isinstance(tree, dict) else None
        else:
            tree = tree[int(index[1])] if isinstance(tree, list) else None
    return tree if isinstance(tree, dict) else None


def _with_moves(finding: Finding, by: Mapping[tuple[_Move, ...], set[tuple[str, str]]]) -> Finding:
    """Name the moves of misplaced fields after which the finding would be gone."""
    if finding.level is Level.UNKNOWN or _move(finding) is not None:
        return finding
    ends = [moves for moves, left in by.items() if not _is_left(finding, moves, left)]
    if max(by, key=len) not in ends:
        return finding
    moves = min(ends, key=len)
    if len(moves) > _MOST:
        return replace(finding, remedy=f"move the {len(moves)} misplaced fields first")
    moves_text = listing(f"{field} to {target}" for field, target in moves)
    return replace(finding, remedy=f"move {moves_text}")


def _is_left(finding: Finding, moves: Iterable[_Move], left: Container[tuple[str, str]]) -> bool:
    """Return whether a finding is left after some moves, perhaps in a field that was moved."""
    path, targets = finding.path, dict(moves)
    # A moved field may be in one that is moved, too.
    while field := next((each for each in paths_above(path) if each in targets), ""):
        path = join_path(targets.pop(field), field.rpartition(".")[2]) + path.removeprefix(field)
    return any((rule, path) in left for rule in (finding.rule, *_SCHEMAS))
