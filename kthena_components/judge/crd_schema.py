"""Whether a custom resource is what its CRD declares, whatever its kind."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kthena_components.core.findings import Finding, Level
from kthena_components.core.objects.object import Object
from kthena_components.core.schema.crds import judge_crd, load
from kthena_components.core.schema.metadata import judge_metadata
from kthena_components.core.schema.versions import VERSIONS, known_version, read_release
from kthena_components.systems import INDEX

RULE = "crd-schema"
NAMES = {"kthena": "kthena-schema", "volcano": "volcano-schema"}
"""Names of the rule for systems whose version may be asked for."""
_ELSEWHERE = {"kthena": "kthena-version"}
"""Names of what another release takes, where that has one of its own."""


def once_a_place(schema: Iterable[Finding], findings: list[Finding]) -> list[Finding]:
    """Put findings together, without what the schema says of places of which a rule speaks."""
    told = {finding.path for finding in findings}
    return [*(finding for finding in schema if finding.path not in told), *findings]


def crd_schema(found: Object) -> Iterator[Finding]:
    """A custom resource has the fields that its CRD declares, of the kinds and in the ranges there.

    It is held against the release of its system that was asked for, or else the newest that is
    known; a field that another release declares names that. Lists with keys hold no doubles, and
    labels and annotations have keys and values that Kubernetes takes. What holds between fields,
    the rules of the system say. Findings about objects of Kthena and of Volcano carry the names
    kthena-schema and volcano-schema.

    Pass: replicas 1; recoveryPolicy RoleRecreate.
    Fail: replicas "1"; recoveryPolicy RecreateAll; highestTierAllowed -1; a field replica.
    Level: mandatory. The API server rejects it; of a field that no schema declares, server-side
    apply (Pulumi, Argo CD, Flux) and kubectl reject the object.
    Source: the CRDs that each system's crds.json names, with the commit they are from; Kubernetes
    documentation, Server-Side Apply and Field validation.
    """
    system = INDEX.get(found.group_kind, "")
    table = load(f"kthena_components.systems.{system}") if system else None
    if table is None or found.kind not in table.kinds:
        return
    rule, stated = NAMES.get(system, RULE), found.context.versions.get(system)
    known = stated is not None and system in VERSIONS and known_version(stated, system)
    asked = read_release(stated) if known and stated is not None else None
    for finding, elsewhere in judge_crd(found.body, found.kind, table, asked):
        # What is not known yet is said where its version may be asked for; elsewhere, rules say it.
        if finding.level is not Level.UNKNOWN or system in NAMES:
            yield replace(finding, rule=_ELSEWHERE.get(system, rule) if elsewhere else rule)
    yield from judge_metadata(found.body.get("metadata"), rule)
