"""Decides whether a selector of labels matches pods, with the labels that a controller adds."""

import re
from collections.abc import Mapping

from kthena_components.core import naming
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.objects.object import EACH_POD, Object, PodSet
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.core.values.unknown import Unknown


def selects(wanted: Mapping[str, object], pods: PodSet) -> bool | Unknown:
    """Return whether a selector matches pods; Unknown if a label decides that is not known yet.

    Args:
        wanted: The labels that it requires. Their values are known.
        pods: The pods. Labels that their controller may add match, whatever their values.
    """
    gap = unknown_in(pods.labels.get(""))
    for key, value in wanted.items():
        held = has_label(pods, key, value)
        if held is False:
            return False
        gap = gap or unknown_in(held)
    return gap or True


def has_label(pods: PodSet, key: str, value: object) -> bool | Unknown:
    """Return whether pods have a label with a value, or may have it."""
    stated = pods.labels.get(key)
    if stated is None and pods.by_controller and pods.added is None:
        return True
    held = (pods.added or {}).get(key) if stated is None else stated
    if gap := unknown_in(held):
        return gap
    if isinstance(held, re.Pattern):
        return isinstance(value, str) and held.fullmatch(value) is not None
    return held == value or (held is None and key in EACH_POD)


def names_serving(cluster: ClusterObjects, found: Object, wanted: object) -> bool:
    """Return whether a selector names a ModelServing of the stack by Kthena's label."""
    key = (str(found.namespace), str(mapping(wanted).get(naming.NAME)))
    return key in cluster.named(MODEL_SERVING)
