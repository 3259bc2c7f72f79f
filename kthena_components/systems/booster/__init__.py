"""Kthena's ModelBooster as a backend: from it, Kthena writes the ModelServing and its routing."""

from kthena_components.systems.system import System

SYSTEM = System(name="booster", title="Kthena ModelBooster", kinds=())
