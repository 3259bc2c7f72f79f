"""Findings that a misplaced field causes: the remedy is to move the field, not to write another.

`volumes` beside a template's `spec` is no field there. A rule then finds mounts without a volume,
and would say "add the volume", though it only needs to be moved.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from kthena_components.checker.crd_schema import SCHEMA_RULE, SCHEMA_RULES
from kthena_components.checker.pod_schema import RULE as POD_SCHEMA
from kthena_components.core.findings import Finding, Level, join_path, paths_above
from kthena_components.core.schema.moves import move_in
from kthena_components.core.values.display import listing
from kthena_components.core.values.regex import regex

_SCHEMAS = (POD_SCHEMA, SCHEMA_RULE, *SCHEMA_RULES.values())
_INDEX = regex(r"\[(\d+)\]")
_Move = tuple[str, str]
"""The path of a misplaced field, and the path of the map into which it belongs."""
_MOST = 8
"""Maximum number of misplaced fields of which each is moved by itself: each is another check."""
Check = Callable[[Mapping[str, Any]], Iterable[Finding]]


def follow_moves(findings: list[Finding], body: Mapping[str, Any], check: Check) -> list[Finding]:
    """Name the move in the remedy of each finding that it mends.

    Args:
        findings: All findings of the object.
        body: The object.
        check: Checks an object like this one.
    """
    moves = [move for finding in findings if (move := _move(finding)) is not None]
    if not moves:
        return findings
    by: dict[tuple[_Move, ...], set[tuple[str, str]]]
    alone = moves if 1 < len(moves) <= _MOST else []
    by = {(move,): _found(body, [move], check) for move in alone}
    by[tuple(moves)] = _found(body, moves, check)
    return [_named(finding, by) for finding in findings]


def _move(finding: Finding) -> _Move | None:
    target = move_in(finding.remedy) if finding.rule in _SCHEMAS else None
    return None if target is None else (finding.path, target)


def _found(body: Mapping[str, Any], moves: Sequence[_Move], check: Check) -> set[tuple[str, str]]:
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


def _named(finding: Finding, by: Mapping[tuple[_Move, ...], set[tuple[str, str]]]) -> Finding:
    if finding.level is Level.UNKNOWN or _move(finding) is not None:
        return finding
    ends = [moves for moves, left in by.items() if not _is_left(finding, moves, left)]
    if max(by, key=len) not in ends:
        return finding
    moves = min(ends, key=len)
    if len(moves) > _MOST:
        return replace(finding, remedy=f"move the {len(moves)} misplaced fields first")
    told = listing(f"{field} to {target}" for field, target in moves)
    return replace(finding, remedy=f"move {told}")


def _is_left(finding: Finding, moves: Iterable[_Move], left: Container[tuple[str, str]]) -> bool:
    """Return whether a finding is left after some moves, perhaps in a field that was moved."""
    path, targets = finding.path, dict(moves)
    # A moved field may be in one that is moved, too.
    while field := next((each for each in paths_above(path) if each in targets), ""):
        path = join_path(targets.pop(field), field.rpartition(".")[2]) + path.removeprefix(field)
    return any((rule, path) in left for rule in (finding.rule, *_SCHEMAS))
