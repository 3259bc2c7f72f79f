"""Shapes of models, which parallel sizes must fit: a table of known ones, and config.json.

The rules that compare shapes with parallel sizes are in `core/rules`.
"""

from kthena_components.core.models.config import ModelShape, shape_from_config, shape_keys
from kthena_components.core.models.known_models import (
    all_names,
    find_by_folder,
    find_by_spelling,
    find_model,
    known_models,
)

__all__ = [
    "ModelShape",
    "all_names",
    "find_by_folder",
    "find_by_spelling",
    "find_model",
    "known_models",
    "shape_from_config",
    "shape_keys",
]
