"""What a backend cannot express, and which other backends can: computed from the limits of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from kthena_components import systems
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.plan.facts import plan_exposed, plan_requests
from kthena_components.core.plan.limits import refused
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import Elsewhere, either, elsewhere, remove, write
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.core.spec.fields import Spec
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.values.display import listing

if TYPE_CHECKING:
    from kthena_components.systems.emitter import Emitter

OFFERED = ("native", "kthena", "lws", "kserve", "kaito", "booster")
"""The backends in the order in which a remedy names them, the one without a controller first.

Not matrixinfer: Kthena is its successor, and takes what it takes."""
_NAMED = 3
"""Maximum number of backends in a remedy."""
_NEWEST = KthenaVersion.V1_0
"""The default of `kthena_version`."""


def refuse(plan: ServingPlan, backend: "Emitter") -> list[Finding]:
    """Report what the backend cannot express, and what its objects would be refused for."""
    findings = [*limits(plan, backend), *plan_exposed(plan)]
    if not any(finding.path.startswith("network_topology") for finding in findings):
        findings += plan_requests(plan)
    if plan.monitoring:
        # Most servings are not monitored, so this is loaded only for those that are.
        from kthena_components.systems.prometheus.scrapes_and_panels import refuse_metrics  # noqa: PLC0415

        findings += refuse_metrics(plan)
    return findings


def limits(plan: ServingPlan, backend: "Emitter") -> list[Finding]:
    """Report what the backend cannot express."""
    found = (refused(plan, backend.limits), backend.refuse(plan), _refuse_version(plan, backend))
    return [*chain.from_iterable(found)]


def name_takers(plan: ServingPlan, findings: Sequence[Finding]) -> list[Finding]:
    """Add to each remedy the other backends that take the field, as computed from their limits.

    A backend that takes the whole serving comes before those that refuse something else of it.
    Their options are the defaults.
    """
    if not any(isinstance(f.remedy, Elsewhere) for f in findings):
        return [*findings]
    others = {
        name: {f.path for f in found if f.level is Level.MANDATORY}
        for name in OFFERED
        if name != plan.backend and (found := _refused_by(plan, name)) is not None
    }
    return [_with_takers(f, others) if isinstance(f.remedy, Elsewhere) else f for f in findings]


def _refused_by(plan: ServingPlan, name: str) -> list[Finding] | None:
    backend = systems.find_emitter(name)
    if backend is None:
        return None
    options, wrong = read_options(backend, name, {})
    return None if wrong else limits(replace(plan, backend=name, options=options), backend)


def _with_takers(finding: Finding, others: Mapping[str, set[str]]) -> Finding:
    takers = [name for name, refused in others.items() if not _touches(finding.path, refused)]
    whole = [name for name in takers if not others[name]]
    remedy, named = finding.remedy, (whole or takers)[:_NAMED]
    if named:
        more = "" if whole else ", and change what it refuses"
        remedy = either(remedy, f"write backend: {listing(named, 'or')}{more}")
    return replace(finding, remedy=remedy or remove())


def _touches(path: str, refused: set[str]) -> bool:
    """Return whether a backend refuses a field, a part of it, or what it is a part of."""
    own = _steps(path)
    return any(own[: len(one)] == one[: len(own)] for one in map(_steps, refused))


def _steps(path: str) -> list[str]:
    return path.replace("[", ".[").split(".")


def _refuse_version(plan: ServingPlan, backend: "Emitter") -> Iterator[Finding]:
    """Reject a release of Kthena for which the backend does not write."""
    version = plan.kthena_version
    if version is _NEWEST or version in backend.kthena_versions:
        return
    known = ", ".join(backend.kthena_versions)
    writes = f"writes for Kthena {known} only" if known else "does not write for Kthena"
    yield Finding(
        path="kthena_version",
        seen=f"is {version}, but backend '{plan.backend}' {writes}",
        remedy=elsewhere(remove()),
        rule="backend-loss",
    )


def read_options(
    backend: "Emitter", name: str, given: Mapping[str, Any]
) -> tuple[Spec | None, list[Finding]]:
    """Read `backend_options` with the model of the backend, or return findings."""
    path = "backend_options"
    if list(given) == [name] and isinstance(given[name], Mapping):
        seen = f"has its fields below '{name}', but takes those of backend '{name}' directly"
        out, rule = write(given[name], "write them into backend_options itself"), "unknown-field"
        return None, [Finding(path=path, seen=seen, remedy=out, rule=rule)]
    if backend.options is not None:
        try:
            return parse_spec(backend.options, given), []
        except SpecError as error:
            return None, [f.under(path) for f in error.findings]
    if not given:
        return None, []
    seen = f"is given, but backend '{name}' has no options"
    return None, [Finding(path=path, seen=seen, remedy=remove(), rule="backend-loss")]
