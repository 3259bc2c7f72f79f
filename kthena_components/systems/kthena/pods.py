"""The pods of a ModelServing's roles."""

from collections.abc import Iterator

from kthena_components.core.objects.object import PodSet, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.systems.kthena.view import Serving


def pods(view: Serving) -> Iterator[PodSet]:
    """Return the entry pods and the worker pods of each role."""
    groups = copies_in(view.spec.get("replicas"), 1)
    for role in view.roles:
        engines = product(groups, copies_in(role.fields.get("replicas"), 1))
        each = copies_in(role.fields.get("workerReplicas"), 0)
        workers = product(engines, each)
        for name, number in (("entryTemplate", engines), ("workerTemplate", workers)):
            template = role.fields.get(name)
            if template is not None:
                yield pod_set(
                    view.object,
                    f"{role.path}.{name}",
                    template,
                    number,
                    by_controller=True,
                    spread=each != 0,
                )
