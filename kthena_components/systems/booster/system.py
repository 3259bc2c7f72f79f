"""What this package writes for Kthena's converter. Kthena's own package reads ModelBoosters."""

from kthena_components.systems.contract import System

SYSTEM = System(name="booster", title="Kthena ModelBooster", kinds=())
