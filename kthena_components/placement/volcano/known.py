"""Says what of a scheduler's config the model does not know. Pure.

Source of the names: Volcano v1.14.1 pkg/scheduler/plugins, RegisterPluginBuilder of factory.go. A
scheduler passes over a plugin without a builder (pkg/scheduler/framework/framework.go), but may
have loaded one of its own.
"""

from collections.abc import Iterator

from kthena_components.core.findings import nearest
from kthena_components.core.schema.versions import VERSIONS, known_version
from kthena_components.core.values.display import listing
from kthena_components.placement.model import Scheduler

_PLUGINS = Scheduler().plugins | {
    "capacity", "cdp", "deviceshare", "extender", "nodegroup", "numa-aware", "pdb", "rescheduling",
    "resource-strategy-fit", "resourcequota", "sla", "task-topology", "tdm", "usage",
}  # fmt: skip


def not_known(scheduler: Scheduler) -> Iterator[str]:
    """Say which version and which plugins are not known, each as a clause."""
    if known_version(scheduler.version, "volcano") is None:
        known = listing(VERSIONS["volcano"])
        yield f"the scheduler's version {scheduler.version} is not known: the model knows {known}"
    for name in sorted(scheduler.plugins - _PLUGINS):
        close = nearest(name, sorted(_PLUGINS))
        meant = f"; write '{close}' if that is meant" if close else ""
        yield f"Volcano has no plugin '{name}', so what it does is not modelled{meant}"
