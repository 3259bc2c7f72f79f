"""Describes what an update would do to each object. It shows names and tags, no values."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from kthena_components.checker.manifest import read_manifest
from kthena_components.cli.review.preview import Step
from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import read_image
from kthena_components.core.values.read import group_kind, mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems import find_kind
from kthena_components.systems.system import Restart

_SHOWN = 3
_USUAL = Restart(paths=r"spec\b", how="the controller may restart pods")
"""For a kind that does not define what restarts its pods."""
_SCALES = regex(r"spec\.(.*\.)?\w*[rR]eplicas")


_FOLLOWS = regex(r"modelserving\.volcano\.sh/(revision|role-template-hash)|pulumi\.com/waitFor")


class Effect(StrEnum):
    """Operations on an object, the most disruptive first."""

    DELETED = "Deleted"
    REPLACED = "Replaced"
    RESTARTED = "Restarted"
    SCALED = "Scaled"
    CHANGED = "Changed in place"
    ADOPTED = "Adopted"
    CREATED = "Created"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """The planned change of one object."""

    effect: Effect
    step: Step
    words: str = ""
    """Details as a clause. Empty if the effect needs none."""
    paths: tuple[str, ...] = ()


_PLAIN = {"create": Effect.CREATED, "import": Effect.ADOPTED}


def planned_changes(steps: Iterable[Step]) -> list[PlannedChange]:
    """Return the planned change of each Kubernetes object that changes."""
    every = [*steps]
    groups: dict[object, set[object]] = {}
    for serving, group in map(_group, every):
        if group is not None:  # a Service belongs to the whole serving
            groups.setdefault(serving, set()).add(group)
    return [
        _happening(step, others=len(groups.get(_group(step)[0], ())) > 1)
        for step in every
        if step.op != "same" and not step.type.startswith(("kthena:", "pulumi:"))
    ]


def _group(step: Step) -> tuple[object, object]:
    """Return the serving and the group that an object belongs to, by the package's labels."""
    metadata = mapping(_body(step).get("metadata"))
    labels = mapping(metadata.get("labels"))
    group = labels.get(naming.GROUP_NAME)
    serving = (str(metadata.get("namespace")), str(labels.get(naming.NAME)))
    return serving, group if isinstance(group, str) else None


def _happening(step: Step, *, others: bool) -> PlannedChange:
    """Describe the change of one object.

    Args:
        others: Whether its serving has other groups, which are replaced one after the other.
    """
    runs = _has_pods(step)
    if step.op == "delete":
        words = "with the pods" if runs else ""
        return PlannedChange(effect=Effect.DELETED, step=step, words=words)
    if step.op == "replace":
        words = _order(step, others=others) if runs else "deleted and created again"
        return PlannedChange(
            effect=Effect.REPLACED, step=step, words=words, paths=tuple(_changed(step))
        )
    if step.op in _PLAIN:
        return PlannedChange(effect=_PLAIN[step.op], step=step)
    return _update(step, runs=runs)


def _order(step: Step, *, others: bool) -> str:
    if step.is_made_first:
        return "new pods start before old ones stop"
    how = "group after group" if others else "so there is downtime"
    return f"old pods stop before new ones start, {how}"


def _update(step: Step, *, runs: bool) -> PlannedChange:
    """Say whether an update restarts pods, scales them, or neither."""
    paths = tuple(_changed(step))
    kind = find_kind(group_kind(_body(step)))
    restarts = kind.restarts if kind and kind.restarts else _USUAL
    inside = tuple(path for path in paths if re.match(restarts.paths, path))
    scaled = tuple(path for path in paths if _SCALES.fullmatch(path))
    if runs and restarts is _USUAL:
        inside = tuple(path for path in inside if path not in scaled)
    if runs and inside:
        how = (restarts.otherwise and restarts.otherwise(step.new)) or restarts.how
        return PlannedChange(effect=Effect.RESTARTED, step=step, words=how, paths=inside)
    if runs and scaled:
        return PlannedChange(effect=Effect.SCALED, step=step, words=_steps_of(step), paths=scaled)
    return PlannedChange(effect=Effect.CHANGED, step=step, paths=paths)


def _steps_of(step: Step) -> str:
    """Describe the change of replicas, if both numbers are known."""
    counts = [mapping(body.get("spec")).get("replicas", 1) for body in (step.old, step.new)]
    if any(isinstance(n, bool) or not isinstance(n, int) for n in counts) or counts[0] == counts[1]:
        return "remaining pods keep running"
    return (
        f"from {display(counts[0])} to {count_of(display(counts[1]), 'replica')}; "
        "remaining pods keep running"
    )


def _has_pods(step: Step) -> bool:
    return step.type.startswith("kubernetes:") and read_manifest(_body(step)) is not None


def _body(step: Step) -> Mapping[str, Any]:
    return {**(step.new or step.old), **pulumi_identity(step.type)}


def shown_paths(paths: Iterable[str]) -> str:
    """List the first fields as code, and count the rest."""
    every = sorted(set(paths), key=natural)
    # Hashes and awaited counts only follow other changes, so they are listed only if alone.
    listed = [path for path in every if not _FOLLOWS.search(path)] or every
    shown = [f"`{re.sub(r'[`|]|[^ -~]', '', path)[:120]}`" for path in listed[:_SHOWN]]
    more = [f"{len(listed) - _SHOWN} more"] if len(listed) > _SHOWN else []
    return " and ".join([", ".join(shown), *more])


def natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key that puts [8] before [10]."""
    parts = re.findall(r"\d{1,9}|[^\d]+|\d", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _step_in(path: str, key: str) -> str:
    """Write the path of a field as Pulumi does: `a.b`, or `a["b.c"]` for a key with a dot."""
    return f"{path}.{key}".lstrip(".") if re.fullmatch(r"[\w-]+", key) else f'{path}["{key}"]'


def _changed(step: Step) -> Iterator[str]:
    """Yield the fields that change: from the provider, or else by comparing the inputs."""
    if step.paths:
        yield from step.paths
        return
    parts: deque[tuple[str, object, object]] = deque([("", step.old, step.new)])
    while parts:
        path, old, new = parts.popleft()
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            keys = [key for key in {**old, **new} if isinstance(key, str)]
            parts += [(_step_in(path, k), old.get(k), new.get(k)) for k in keys]
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            pairs = zip(old, new, strict=True)
            parts += [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(pairs)]
        elif old != new:
            yield path


_TAG = regex(r"v?[0-9][A-Za-z0-9._-]{0,63}|latest|nightly|main", re.ASCII)
"""Tags of releases, and usual others."""
_MOST = 10_000
"""Most parts of an object that are read."""

Change = tuple[str, str]


def changed_tags(step: Step) -> list[Change]:
    """Return the tags that containers have before and after, each pair once.

    A container counts whose image keeps its repository, and that has a tag at both times. An image
    that Pulumi treats as a secret is not a string here, so it does not count.
    """
    before, after = (dict(_images(body)) for body in (step.old, step.new))
    pairs = ((before[path], after[path]) for path in after if path in before)
    return list(dict.fromkeys(filter(None, (_change(*pair) for pair in pairs))))


def _change(before: str, after: str) -> Change | None:
    old, new = read_image(before), read_image(after)
    if old.repository != new.repository or old.tag == new.tag:
        return None
    tags = old.tag or "", new.tag or ""
    return tags if all(map(_TAG.fullmatch, tags)) else None


def _images(body: Mapping[str, Any]) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield the images of an object by their paths."""
    waiting: list[tuple[tuple[object, ...], object]] = [((), body)]
    for path, value in waiting:
        if len(waiting) > _MOST:
            return
        if isinstance(value, Mapping):
            image = value.get("image")
            if isinstance(image, str) and "name" in value and not is_unresolved(image):
                yield path, image
            waiting += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, index), item) for index, item in enumerate(value)]
