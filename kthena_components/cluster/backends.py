"""The kinds of backends with a controller of their own, and whether the cluster serves them.

systems.py says more about Kthena: its schema shows its version.
"""

from collections.abc import Iterator

from kthena_components.cluster.requirements import Kind, Requirements
from kthena_components.cluster.snapshot import Diagnostic, Snapshot, Status, serves
from kthena_components.systems import EMITTERS, INDEX, find_emitter
from kthena_components.systems.prometheus.emit import API_VERSION, INSTALL, KINDS

_JUDGED_APART = "kthena"
MONITORING = tuple((API_VERSION, kind) for kind in KINDS)
"""What a serving with `monitoring` needs."""


def own_kinds(backend: str) -> Iterator[Kind]:
    """Yield the kinds of a backend's system that the backend writes."""
    emitter = find_emitter(backend)
    for made in emitter.resources if emitter else ():
        if INDEX.get((made.api_version.partition("/")[0], made.kind)) == backend:
            yield made.api_version, made.kind


def judge_backends(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the cluster serves what the servings of a stack need.

    Without a stack, a system that the cluster does not have is optional.
    """
    needed = {kind for _, kind in need.kinds}
    for backend in EMITTERS:
        if backend not in need.backends or backend == _JUDGED_APART:
            continue
        kinds = [kind for kind in own_kinds(backend) if not need.stack or kind in needed]
        served = [f"{name} {version}" for version, name in kinds if serves(seen, (version, name))]
        missing = [f"{name} {version}" for version, name in kinds]
        missing = [kind for kind in missing if kind not in served]
        emitter = find_emitter(backend)
        if missing and need.stack and emitter:
            text = f"the cluster has no {' and no '.join(missing)}. {emitter.install}, or use "
            yield Diagnostic(Status.FAIL, backend, f"{text}backend: native")
        elif served:
            yield Diagnostic(Status.OK, backend, " and ".join(served))
            yield from _rivals(seen, backend) if need.stack else ()


def judge_monitoring(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the cluster has the Prometheus Operator, if a serving is monitored."""
    if not any(plan.monitoring for plan in need.plans):
        return
    named = {kind: f"{kind[1]} {kind[0]}" for kind in MONITORING}
    missing = [name for kind, name in named.items() if not serves(seen, kind)]
    if missing:
        text = f"the cluster has no {' and no '.join(missing)}. {INSTALL}"
        yield Diagnostic(Status.FAIL, "monitoring", text)
    else:
        yield Diagnostic(Status.OK, "monitoring", " and ".join(named.values()))


def _rivals(seen: Snapshot, backend: str) -> Iterator[Diagnostic]:
    """Warn about controllers of other systems that take over what the backend writes."""
    emitter = find_emitter(backend)
    for (group, kind), how in (emitter.rivals if emitter else {}).items():
        if any(kind in kinds for at, kinds in seen.served.items() if at.startswith(f"{group}/")):
            yield Diagnostic(Status.WARN, backend, how)
