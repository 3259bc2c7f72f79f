"""Checks a custom resource of any kind against its CRD."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kthena_components.core.facts.context import Context
from kthena_components.core.findings import Finding, Level
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.schema.crds import CrdTable, accepted_by, check_crd, load
from kthena_components.core.schema.fast_check import check_quickly
from kthena_components.core.schema.language import Fields, Free, Table
from kthena_components.core.schema.metadata import METADATA, check_metadata
from kthena_components.core.schema.versions import VERSIONS, known_version, read_release
from kthena_components.systems import INDEX, find_emitter

SCHEMA_RULE = "crd-schema"
SCHEMA_RULES = {"kthena": "kthena-schema", "volcano": "volcano-schema"}
"""Other names of the rule, for systems whose version is an option such as `--kthena-version`."""
_ELSEWHERE = {"kthena": "kthena-version"}
"""Name of the finding about a field that only another release accepts. Default: the same."""
_ANY = Fields(
    fields={"metadata": Fields(fields=METADATA.fields, partial=True), "spec": Table(Free())},
    partial=True,
)
"""The shape of an object of a kind whose fields are not known."""
_KUBERNETES = "kubernetes"
_BY_TEMPLATE = frozenset({("", "Pod"), ("", "PodTemplate")})
"""Kinds that pod-schema checks as a whole."""
WEIGHT = {Level.UNKNOWN: 0, Level.ADVISORY: 1, Level.MANDATORY: 2}
"""The levels, the least severe first."""


def served_versions(group_kind: GroupKind) -> list[str]:
    """Return the API versions in which a known release serves a kind; none if it has no table.

    Kinds that a backend writes, and whose project publishes no releases, have its version.
    """
    system, (group, kind) = INDEX.get(group_kind, ""), group_kind
    table = load(f"kthena_components.systems.{system}") if system else None
    emitter = find_emitter(system)
    written = () if emitter is None else emitter.resources
    found = [
        *(() if table is None else table.kinds.get(kind, ())),
        *(resource.api_version for resource in written if resource.kind == kind),
    ]
    return [each for each in dict.fromkeys(found) if each.rpartition("/")[0] == group]


def once_a_place(schema: Iterable[Finding], findings: list[Finding]) -> list[Finding]:
    """Add the findings of a schema, except at places where a rule reports something as severe."""
    heaviest: dict[str, int] = {}
    for finding in findings:
        heaviest[finding.path] = max(heaviest.get(finding.path, 0), WEIGHT[finding.level])
    new = (finding for finding in schema if WEIGHT[finding.level] > heaviest.get(finding.path, -1))
    return [*new, *findings]


def crd_schema(found: Object) -> Iterator[Finding]:
    """Each field of a custom resource is in its CRD, with the type, the values and the range there.

    The CRD comes from the given release of the system, else from the files that are checked if they
    have it, else from the newest known release. If another release has a missing field, the finding
    names it. A required field that an older release fills in is advice, unless the release is
    given. Lists with keys contain no duplicates, and labels and annotations have valid keys and
    values. For conditions between fields, the systems have rules of their own. For Kthena and
    Volcano this rule is called kthena-schema and volcano-schema.

    Kubernetes' own kinds are checked by its OpenAPI documents from 1.29 on, pods by pod-schema. Of
    kinds without a CRD here, the types of metadata and spec are checked.

    Pass: replicas 1; recoveryPolicy RoleRecreate.
    Fail: replicas "1"; recoveryPolicy RecreateAll; highestTierAllowed -1; a field replica; a
    Service's port "8000", or publishNotReadyAddresses "true"; podManagementPolicy parallel.
    Level: mandatory. The API server rejects the object; if a field is not in the CRD, server-side
    apply (Pulumi, Argo CD, Flux) and kubectl reject it.
    Source: the CRDs in each system's crds.json, which names their commits; kubernetes 1.29 to 1.37
    api/openapi-spec/swagger.json, and for words staging/src/k8s.io/api/*/types.go; Kubernetes
    documentation, Server-Side Apply and Field validation.
    """
    if found.group_kind in _BY_TEMPLATE:
        return
    system = INDEX.get(found.group_kind, "")
    table = load(f"kthena_components.systems.{system}") if system else None
    if table is None or found.kind not in table.kinds:
        yield from _by_outline(found)
        return
    rule = SCHEMA_RULES.get(system, SCHEMA_RULE)
    for finding, elsewhere in _crd_findings(found, system, table):
        # For other systems, their rules report values that are not known yet.
        if finding.level is not Level.UNKNOWN or system in SCHEMA_RULES:
            yield replace(finding, rule=_ELSEWHERE.get(system, rule) if elsewhere else rule)
    own = system == _KUBERNETES
    yield from check_metadata(found.body.get("metadata"), rule, of_kubernetes=own)


def _by_outline(found: Object) -> Iterator[Finding]:
    """Report wrong types in an object without a CRD, as Go cannot read the object then."""
    for finding in check_quickly(found.body, _ANY):
        if finding.level is not Level.UNKNOWN:
            yield replace(finding, rule=SCHEMA_RULE)


def _crd_findings(found: Object, system: str, table: CrdTable) -> Iterable[tuple[Finding, bool]]:
    """Check an object with the CRD that applies, and say whether another release accepts it."""
    own = found.context.definitions.find(found.group_kind, table)
    if own:
        # Of several, such as one for each release of a chart, one must accept the object.
        each = [[made for made, _ in check_crd(found.body, found.kind, one, None)] for one in own]
        fewest = min(each, key=lambda made: sum(map(_is_mandatory, made)))
        return [(_compared(finding, found, table), False) for finding in fewest]
    stated = found.context.versions.get(system)
    known = stated is not None and system in VERSIONS and known_version(stated, system)
    asked = read_release(stated) if known and stated is not None else None
    return check_crd(found.body, found.kind, table, asked)


def _compared(finding: Finding, found: Object, table: CrdTable) -> Finding:
    """Turn what a release accepts into advice: the object may be for its clusters."""
    release = None
    if _is_mandatory(finding):
        release = accepted_by(finding, found.body, found.kind, table)
    if release is None:
        return finding
    return replace(finding, seen=f"{finding.seen}; {release} accepts it", level=Level.ADVISORY)


def like_release(of: GroupKind, context: Context) -> Context:
    """Set the version of a kind's system to the release that the CRD among the files is like.

    Rules between fields differ by release, and a CRD states no release.
    """
    own = own_crds(of, context)
    if not own or not own[0].like:
        return context
    return replace(context, versions={**context.versions, INDEX[of]: own[0].like})


def own_crds(of: GroupKind, context: Context) -> tuple[CrdTable, ...]:
    """Return the CRDs of a kind among the files, if its system has releases."""
    system = INDEX.get(of, "")
    table = load(f"kthena_components.systems.{system}") if system in VERSIONS else None
    return context.definitions.find(of, table) if table is not None else ()


def _is_mandatory(finding: Finding) -> bool:
    return finding.level is Level.MANDATORY
