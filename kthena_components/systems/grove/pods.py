"""The pods of a PodCliqueSet's cliques, and the part of it that is kept to read them again.

A clique's labels and annotations are those of its pods. Source: ai-dynamo/grove
operator/internal/controller/podclique/components/pod/pod.go.
"""

from collections.abc import Iterator
from functools import partial

from kthena_components.core.facts.engine_grouping import engines_of
from kthena_components.core.facts.workload import is_serving
from kthena_components.core.findings import join_path
from kthena_components.core.objects.object import (
    PodSet,
    copies_in,
    pod_set,
    read_object,
)
from kthena_components.core.objects.retained_fields import kept_pods, kept_spec
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import mapping, sequence, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.contract import Body
from kthena_components.systems.grove.facts import parts_of
from kthena_components.systems.grove.view import TEMPLATE, Clique, CliqueSet, read_clique_set

_CLIQUES = Unknown("the cliques are not known yet")
_CONTAINERS = Unknown("the containers are not known yet")


def pods_of_cliques(view: CliqueSet) -> Iterator[PodSet]:
    """Return the pods of each clique."""
    found, sets = view.object, copies_in(view.object.spec.get("replicas"), 1)
    groups, spread = _groups(view), _spread(view)
    if unknown_in(view.template.get("cliques")):
        number, at = product(sets, _CLIQUES), f"{TEMPLATE}.cliques"
        yield pod_set(found, at, _CLIQUES, number, by_controller=True)
    for clique in view.cliques:
        spec = _CONTAINERS if unknown_in(clique.pod) else clique.pod
        yield pod_set(
            found,
            f"{clique.at}.podSpec",
            {"metadata": clique.fields, "spec": spec},
            product(sets, groups[clique.name], copies_in(clique.replicas, 1)),
            by_controller=True,
            spread=found.at(clique.path) in spread,
            written=partial(_written, clique),
        )


def _written(clique: Clique, path: str) -> str:
    """Map a path of a pod: labels are in the clique, the rest in its podSpec."""
    if path.startswith("metadata."):
        return join_path(clique.path, path.removeprefix("metadata."))
    return f"{clique.at}.podSpec.{path.removeprefix('spec.')}"


def _groups(view: CliqueSet) -> dict[object, MaybeInt]:
    """Count, by clique name, how often a clique occurs in one copy of the set."""
    gap = view.gap
    found: dict[object, MaybeInt] = {clique.name: _CLIQUES if gap else 1 for clique in view.cliques}
    for group in () if gap else reversed(view.groups):
        names = (name for name in group.cliques if isinstance(name, str))
        found.update(dict.fromkeys(names, copies_in(group.fields.get("replicas"), 1)))
    return found


def _spread(view: CliqueSet) -> set[str]:
    """Return the paths of the cliques whose pods form engines of several pods."""
    found: set[str] = set()
    for _, parts in parts_of(view):
        engines = engines_of(parts)
        wide = {e.path for e in engines if isinstance(e.pods, int) and e.pods > 1}
        joined = (part.path for part in parts if is_serving(part.pod))
        found.update(wide, joined if wide and len(engines) == 1 else ())
    return found


def kept_cliques(body: Body) -> Body:
    """Keep what the rules over a stack compare; everything if a claim is mounted.

    Whether the pods that share a claim are one engine depends on their command lines.
    """
    cliques = read_clique_set(read_object(body)).cliques
    return kept_spec(body) if any(map(_mounts_claim, cliques)) else kept_pods(body)


def _mounts_claim(clique: Clique) -> bool:
    volumes = sequence(mapping(clique.pod).get("volumes"))
    return any("persistentVolumeClaim" in mapping(volume) for volume in volumes)
