"""Annotates manifests with the waivers of their component. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from kthena_components.checker.catalogue import cluster_rule_names, rule_names
from kthena_components.checker.check_cluster_objects import check_objects_together, owner_of
from kthena_components.checker.manifest import check_manifest, has_rules
from kthena_components.checker.waivers import Stated, annotations
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.rules.production import PRODUCTION_NAMES


def annotate(
    manifests: tuple[Manifest, ...], stated: Sequence[Stated]
) -> tuple[tuple[Manifest, ...], frozenset[str]]:
    """Annotate each manifest with the waivers of its findings.

    A check of the manifests alone then reports the same as the component. Rules that need all
    objects of a cluster are waived in each manifest.

    Returns:
        The manifests, and the rules that report something in them or may do so elsewhere; all rules
        if there are no manifests.
    """
    if not manifests:
        return manifests, rule_names()
    bodies = {str(number): manifest.body for number, manifest in enumerate(manifests)}
    asked = PRODUCTION_NAMES
    rules = {
        name: {f.rule for f in check_manifest(body, asked=asked)} for name, body in bodies.items()
    }
    for finding in check_objects_together(bodies):
        rules.get(owner_of(finding, bodies), set()).add(finding.rule)
    shared = cluster_rule_names()
    made = []
    for name, manifest in zip(bodies, manifests, strict=True):
        wide = shared if has_rules(manifest.body) else frozenset[str]()
        # Those of its updates are known only to the engine and the cluster.
        rules[name] |= {*wide, *manifest.update_rules}
        own = annotations(entry for entry in stated if entry.rule in rules[name])
        made.append(_annotated(manifest, own) if own else manifest)
    return tuple(made), shared.union(*rules.values())


def _annotated(manifest: Manifest, own: dict[str, str]) -> Manifest:
    metadata = manifest.body["metadata"]
    merged = {**metadata, "annotations": {**metadata.get("annotations", {}), **own}}
    return replace(manifest, body={**manifest.body, "metadata": merged})
