"""What this package writes for a cluster with Volcano and no other controller."""

from kthena_components.systems.contract import System

SYSTEM = System(name="native", title="StatefulSets in a gang", kinds=())
