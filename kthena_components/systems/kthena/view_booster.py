"""Reads a ModelBooster: its backends, and the workers of each.

Source: volcano-sh/kthena pkg/apis/workload/v1alpha1/model_booster_types.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import MODEL_SERVING, Object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence

MODEL_BOOSTER = (MODEL_SERVING[0], "ModelBooster")
SKIPS_INSTALL = "KTHENA_SKIP_ENGINE_DEPENDENCY_INSTALL"
"""Without this variable, pods of a pair run `pip install` at each start, in a line for bash that
breaks the JSON of --kv-transfer-config."""
TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""Values that switch it on (strconv.ParseBool)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker of a backend."""

    path: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One backend of a ModelBooster."""

    path: str
    fields: Mapping[str, Any]
    kind: object
    workers: tuple[Worker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Booster:
    """A ModelBooster."""

    object: Object
    backends: tuple[Backend, ...]


def read_booster(found: Object) -> Booster:
    """Read a ModelBooster, whatever its fields contain."""
    return Booster(object=found, backends=tuple(_backends(found.spec)))


def _backends(spec: Mapping[str, Any]) -> Iterator[Backend]:
    """Read the backends; the first versions had a list of them."""
    if spec.get("backend") is not None:
        yield _backend("spec.backend", mapping(spec.get("backend")))
    for index, item in enumerate(sequence(spec.get("backends"))):
        yield _backend(f"spec.backends[{index}]", mapping(item))


def _backend(path: str, fields: Mapping[str, Any]) -> Backend:
    workers = enumerate(sequence(fields.get("workers")))
    return Backend(
        path=path,
        fields=fields,
        kind=fields.get("type"),
        workers=tuple(
            Worker(path=f"{path}.workers[{index}]", fields=mapping(item)) for index, item in workers
        ),
    )
