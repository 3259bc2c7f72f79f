"""The default backend: StatefulSets under Volcano."""

from kthena_components.systems.system import System

SYSTEM = System(name="native", title="StatefulSets in a gang", kinds=())
