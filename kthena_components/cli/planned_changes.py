"""What an update would do to what runs, in plain words. Fields are named, never their values."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kthena_components.cli.gpu_table import identity
from kthena_components.cli.preview import Step
from kthena_components.core.values.display import display
from kthena_components.core.values.read import as_map
from kthena_components.judge.manifest import read_manifest

_SHOWN = 3
_ROLES = (
    r"spec\.template\.roles(\[\d+\])?(\.(entryTemplate|workerTemplate|workerReplicas|name)\b|$)"
)
_TEMPLATES: Mapping[str, tuple[str, str]] = {
    "Deployment": (r"spec\.template\b", "pods restart a few at a time"),
    "DaemonSet": (r"spec\.template\b", "pods restart a few at a time"),
    "StatefulSet": (r"spec\.template\b", "pods restart one after another"),
    "ModelServing": (_ROLES, "group after group restarts"),
    "ModelInfer": (_ROLES, "group after group restarts"),
    "LeaderWorkerSet": (r"spec\.leaderWorkerTemplate\b", "group after group restarts"),
    "DisaggregatedSet": (r"spec\.roles\b.*[tT]emplate\b", "group after group restarts"),
}
"""By kind: what restarts pods when it changes, and how."""
_SCALES = re.compile(r"spec\.(template\.roles\[\d+\]\.|predictor\.|roles\[\d+\]\.)?\w*[rR]eplicas")


_FOLLOWS = re.compile(
    r"modelserving\.volcano\.sh/(revision|role-template-hash)|pulumi\.com/waitFor"
)


class Effect(StrEnum):
    """What happens to objects, the gravest first."""

    DELETED = "Deleted"
    REPLACED = "Replaced"
    RESTARTED = "Restarted"
    SCALED = "Scaled"
    CHANGED = "Changed in place"
    ADOPTED = "Adopted"
    CREATED = "Created"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """What happens to one object."""

    effect: Effect
    step: Step
    words: str = ""
    """How, in a clause; empty where the effect says it all."""
    paths: tuple[str, ...] = ()


_PLAIN = {"create": Effect.CREATED, "import": Effect.ADOPTED}


def planned_changes(steps: Iterable[Step]) -> list[PlannedChange]:
    """Say what happens to each Kubernetes object that does not stay as it is."""
    return [
        _happening(step)
        for step in steps
        if step.op != "same" and not step.type.startswith(("kthena:", "pulumi:"))
    ]


def _happening(step: Step) -> PlannedChange:
    runs = _has_pods(step)
    if step.op == "delete":
        words = "with the pods" if runs else ""
        return PlannedChange(effect=Effect.DELETED, step=step, words=words)
    if step.op == "replace":
        words = "pods end before new ones start, so what they serve is down in between"
        words = words if runs else "deleted and made anew"
        return PlannedChange(
            effect=Effect.REPLACED, step=step, words=words, paths=tuple(_changed(step))
        )
    if step.op in _PLAIN:
        return PlannedChange(effect=_PLAIN[step.op], step=step)
    return _update(step, runs=runs)


def _update(step: Step, *, runs: bool) -> PlannedChange:
    paths = tuple(_changed(step))
    pattern, how = _TEMPLATES.get(step.kind, (r"spec\b", "the controller may restart pods"))
    inside = tuple(path for path in paths if re.match(pattern, path))
    scaled = tuple(path for path in paths if _SCALES.fullmatch(path))
    if runs and step.kind not in _TEMPLATES:
        inside = tuple(path for path in inside if path not in scaled)
    if runs and inside:
        how = "role after role restarts" if _by_role(step) else how
        return PlannedChange(effect=Effect.RESTARTED, step=step, words=how, paths=inside)
    if runs and scaled:
        return PlannedChange(effect=Effect.SCALED, step=step, words=_steps_of(step), paths=scaled)
    return PlannedChange(effect=Effect.CHANGED, step=step, paths=paths)


def _by_role(step: Step) -> bool:
    strategy = as_map(as_map(step.new.get("spec")).get("rolloutStrategy"))
    return step.kind == "ModelServing" and strategy.get("type") == "RoleRollingUpdate"


def _steps_of(step: Step) -> str:
    """Say how many copies there were and will be, where that is one number."""
    counts = [as_map(body.get("spec")).get("replicas", 1) for body in (step.old, step.new)]
    if any(isinstance(n, bool) or not isinstance(n, int) for n in counts) or counts[0] == counts[1]:
        return "what stays keeps running"
    return f"from {display(counts[0])} to {display(counts[1])} copies, and what stays keeps running"


def _has_pods(step: Step) -> bool:
    body = step.new or step.old
    return step.type.startswith("kubernetes:") and (
        read_manifest({**body, **identity(step.type)}) is not None
    )


def shown_paths(paths: Iterable[str]) -> str:
    """Name a few fields as code, and count the rest."""
    every = sorted(set(paths), key=natural)
    # Hashes and awaited counts only follow what has changed; they are told where nothing else is.
    listed = [path for path in every if not _FOLLOWS.search(path)] or every
    shown = [f"`{re.sub(r'[`|]|[^ -~]', '', path)[:120]}`" for path in listed[:_SHOWN]]
    more = [f"{len(listed) - _SHOWN} more"] if len(listed) > _SHOWN else []
    return " and ".join([", ".join(shown), *more])


def natural(text: str) -> list[tuple[int, str]]:
    """Order texts so that [8] comes before [10]."""
    parts = re.findall(r"\d{1,9}|[^\d]+|\d", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _step_in(path: str, key: str) -> str:
    """Write a field of a map as Pulumi does: `a.b`, and `a["b.c"]` where a dot is in it."""
    return f"{path}.{key}".lstrip(".") if re.fullmatch(r"[\w-]+", key) else f'{path}["{key}"]'


def _changed(step: Step) -> Iterator[str]:
    """Give the fields that change: the provider's list, or what differs between the inputs."""
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
