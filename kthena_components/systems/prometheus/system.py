"""The objects of the Prometheus Operator that are written, and checked against their CRDs."""

from kthena_components.core.plan.manifest import CONFIG_MAPS, Resource
from kthena_components.systems.prometheus.emit import API_VERSION, GROUP, KINDS
from kthena_components.systems.system import Kind, System, as_it_is

SYSTEM = System(
    name="prometheus",
    title="Prometheus Operator",
    kinds=tuple(
        Kind(group=GROUP, name=name, view=as_it_is, only_fields=True, kept=None) for name in KINDS
    ),
    extras={
        "monitoring": (
            *(
                Resource(api_version=API_VERSION, kind=kind, plural=f"{kind.lower()}s")
                for kind in KINDS
            ),
            CONFIG_MAPS,
        )
    },
)
