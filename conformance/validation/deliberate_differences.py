"""Deliberate differences between our rules and the cluster.

An entry has a rule and a part of the finding's text. All other mandatory findings must be rejected
by the cluster, and everything that the cluster rejects must have such a finding.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kthena_components.core.findings import Finding


@dataclass(frozen=True, slots=True)
class Stricter:
    """A finding that we report and the cluster accepts."""

    rule: str
    says: str
    """A part of the finding's text. Empty for all findings of the rule."""
    reason: str
    either: bool = False
    """Whether the cluster rejects some of these objects."""

    def covers(self, finding: Finding) -> bool:
        """Return whether a finding matches this entry."""
        return finding.rule == self.rule and self.says in finding.seen


DELIBERATE: tuple[Stricter, ...] = (
    Stricter("booster-config", "", "vLLM does not start"),
    Stricter("booster-workers", "has no worker of type", "half of the pair is missing"),
    Stricter("subgroup-match-label-keys", "", "the gang waits for pods that are never counted"),
    Stricter("subgroup-names-unique", "", "the scheduler keeps one minimum for both"),
    Stricter(
        "task-minimum",
        "",
        "the scheduler ignores every minimum, or waits for no task; or no number of 32 bits",
        either=True,
    ),
    Stricter(
        "min-resources-within-minimum",
        "",
        "the scheduler places none of the gang; or no number of 64 bits",
        either=True,
    ),
    Stricter("topology-cap-stated", "", "the scheduler drops the topology"),
    Stricter("topology-cap-reachable", "", "the scheduler never places the gang"),
    Stricter("hypernode-shape", "has no selector", "the scheduler ignores the member"),
    Stricter("hypernode-shape", "is found by exactMatch", "the scheduler ignores the member"),
    Stricter("hypernode-shape", "the labelMatch is empty", "the member selects no node"),
    Stricter("hypernode-node-regex", "does not reach", "the pattern finds nodes unasked"),
    Stricter("crd-schema", "is null, but must be a", "LWS's webhook fills it in", either=True),
    Stricter("crd-schema", "is 9223372036854775808", "LWS's webhook writes text", either=True),
    Stricter("crd-schema", " bits, but must be", "LWS's webhook writes text", either=True),
    Stricter("lws-shape", "so the pods have no containers", "no pod can be created", either=True),
    Stricter("crd-schema", "is ''", "the webhook of LWS replaces some empty words", either=True),
    Stricter(
        "queue-quantities",
        "more than Volcano can count",
        "thousandths beyond 64 bits are compared wrongly",
        either=True,
    ),
)
SILENT: dict[str, str] = {
    "subgroup-minimum": "advisory",
    "gang-minimum-stated": "advisory",
    "hypernode-discovery-label": "advisory",
    "lws-gang-startup": "advisory",
    "kthena-version": "no field of an older version is drawn, and the rule for crashes is advisory",
}
"""Admission rules that reject nothing in the versions of this cluster."""
ELSEWHERE: tuple[str, ...] = (
    "unable to find queue",
    "failed to get parent queue",
    "exceeds parent queue",
    "parent queue everything validation failed",
    '.projected.sources: Invalid value: "null"',
)
"""Rejections because of another object of the cluster, which one manifest does not show; and one
because a webhook writes null for missing sources of a projected volume, which are optional."""


STRICT: tuple[str, ...] = (".volumeClaimTemplate.metadata.",)
"""Parts of paths of maps without declared fields. Server-side apply accepts any field there, and
drops it; only the strict decoding of kubectl rejects it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The deliberate differences between the rules of some kinds and the cluster."""

    stricter: tuple[Stricter, ...]
    silent: Mapping[str, str]
    elsewhere: tuple[str, ...]
    lines: bool = False
    """Whether each line of a rejection is one of its own."""

    def elsewhere_alone(self, refusal: str) -> bool:
        """Return whether the cluster rejects an object only because of other objects."""
        said = refusal.splitlines() if self.lines else [refusal]
        return all(any(words in line for words in self.elsewhere) for line in said)


SANDBOX = Differences(stricter=DELIBERATE, silent=SILENT, elsewhere=ELSEWHERE)
KAITO = Differences(
    stricter=(
        Stricter("kaito-capacity", "but KAITO counts", "the controller creates other nodes"),
        Stricter("kaito-capacity", "it fits on no node", "its pods stay pending"),
        Stricter("kaito-parallelism", "", "vLLM does not start"),
        Stricter("kaito-adapters", "has no name", "the pod's container has none", either=True),
        Stricter("kaito-adapters", "the text of a number", "every update fails", either=True),
    ),
    silent={
        "kaito-config": "one object does not show its ConfigMap: kaito_configs compares them",
        "kaito-access-secret": "advisory",
        "kaito-roles": "only a MultiRoleInference has roles",
        "kaito-partition": "KAITO 0.11 has no partitions",
    },
    elsewhere=(
        "instanceType must be empty when node auto-provisioning is disabled",
        "instanceType is required when node auto-provisioning is enabled",
        "No nodes found matching the specified label selector",
        "Failed to get GPU config from nvidia labels",
        "Non-uniform GPU",
        "Insufficient total GPU memory",
        "Unsupported instance type .",  # none at all
        "Unsupported instance type p5.48xlarge",
        "Multi-node distributed inference is not supported",
        "failed to get model preset",
        "specified in 'config' not found in namespace",
        "json: unknown field",
        ".name of type string",
        "spec.template.resource.instanceType: Required value",
    ),
    lines=True,
)
"""Differences of KAITO 0.11. Its webhook depends on the nodes of the cluster and on their
provider, and describes models outside its catalogue as Hugging Face does, which nothing reaches.
It rejects unknown fields of pod templates, which we ignore, and reads `Name` as `name`. The CRD of
0.12, by which we check, requires no instance type."""


def admission(findings: Iterable[Finding], differences: Differences = SANDBOX) -> list[Finding]:
    """Return the findings for which the cluster must reject the object, too."""
    return [f for f in findings if not any(entry.covers(f) for entry in differences.stricter)]


def may_differ(findings: Iterable[Finding], differences: Differences = SANDBOX) -> bool:
    """Return whether the cluster may accept or reject the object."""
    either = [entry for entry in differences.stricter if entry.either]
    return any(entry.covers(finding) for finding in findings for entry in either)
