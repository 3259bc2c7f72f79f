"""Counts the objects in a cluster that belong to Pulumi stacks."""

from collections import Counter

from kthena_components.cluster.client import Cluster
from kthena_components.cluster.fetch_servings import listed_if_served
from kthena_components.cluster.objects import Body
from kthena_components.core import naming
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import EMITTERS, find_emitter
from kthena_components.systems.volcano.emit import HYPER_NODES, QUEUES

_SECRET = ("v1", "Secret")


def stacks_in(cluster: Cluster) -> Counter[str]:
    """Return the stacks that have objects in a cluster, each with their number.

    Kinds that cannot be read count as empty.

    Raises:
        ClusterError: The cluster does not answer.
    """
    emitters = [emitter for name in EMITTERS if (emitter := find_emitter(name))]
    resources = [*(one for emitter in emitters for one in emitter.resources), QUEUES, HYPER_NODES]
    kinds = dict.fromkeys([*((one.api_version, one.kind) for one in resources), _SECRET])
    found: Counter[str] = Counter()
    for kind in kinds:
        objects = listed_if_served(cluster, kind)
        if not isinstance(objects, Unknown):
            found.update(owner for body in objects if (owner := owner_of(body)))
    return found


def owner_of(body: Body) -> str:
    """Return the stack that an object belongs to; empty if it states none."""
    annotations = mapping(mapping(body.get("metadata")).get("annotations"))
    # A controller copies the annotations of an object to those that it creates.
    owned = not mapping(body.get("metadata")).get("ownerReferences")
    return str(annotations.get(naming.STACK) or "") if owned else ""
