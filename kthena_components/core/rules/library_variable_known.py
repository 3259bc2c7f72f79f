"""The rule about the variables of NCCL and Ray, the libraries by which an engine's pods meet."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, advise
from kthena_components.core.rules.support.messages import slip_of, title
from kthena_components.core.values.images import read_image

_TABLES = ("kthena_components.core.engines", "tables/libraries.json")
_LIBRARIES: Mapping[str, tuple[str, str]] = {"NCCL_": ("nccl", "NCCL"), "RAY_": ("ray", "Ray")}
"""The rows of the table, and the titles, by the beginning of a name."""
_OF_RAY = "rayproject/"


def library_variable_known(facts: ServingFacts) -> Iterator[Finding]:
    """No variable of an engine's container misspells one that NCCL or Ray reads.

    Both ignore a variable that they do not know, so the setting has no effect: NCCL_SOCKET_IFNAMES
    chooses no interface. Reported are names that begin with NCCL_ or RAY_ in an engine's own image
    or one of rayproject, that no release reads, that nothing else in the container mentions, and
    that differ from a known one in a letter. Which release an image has is not known, so a
    name of any release is known: of NCCL since 2.18, of Ray since 2.40. Texts of Ray's programs
    count as its names.

    Pass: NCCL_SOCKET_IFNAME eth0; NCCL_MY_PLUGIN; RAY_memory_usage_threshold 0.99.
    Fail: NCCL_SOCKET_IFNAMES eth0; RAY_memory_usage_treshold 0.99.
    Level: advisory, because the engine starts.
    Source: NVIDIA/nccl v2.18.6-1 to v2.30.7-1 (NCCL_PARAM, ncclGetEnv); Ray 2.40.0 to 2.60.0, its
    Python files and programs (src/ray/common/ray_config_def.h); core/engines/tables/libraries.json.
    """
    for engine in facts.engines:
        pods = (engine.entry, *(() if engine.worker is None else (engine.worker,)))
        for name in dict.fromkeys(name for pod in pods for name in _of_libraries(pod)):
            pod = next(pod for pod in pods if name in _of_libraries(pod))
            row, library = _LIBRARIES[f"{name.partition('_')[0]}_"]
            known = _names(row)
            meant = None if name in known else slip_of(name, known)
            if meant is not None and pod.own is not None:
                seen = (
                    f"{title(engine)} has the variable {name}, which no release of {library} "
                    "reads, so it has no effect"
                )
                yield advise(pod.own.path, seen, f"write {meant}")


def _of_libraries(pod: PodFacts) -> list[str]:
    """Return the variables of the libraries in an image whose programs are known."""
    image = None if pod.own is None else pod.own.image
    if not isinstance(image, str):
        return []
    read = read_image(image)
    is_known = read.engine is not None or _OF_RAY in f"{read.repository}"
    return sorted(n for n in pod.engine_variables if n.startswith(tuple(_LIBRARIES)) and is_known)


@cache
def _names(library: str) -> frozenset[str]:
    package, file = _TABLES
    rows = json.loads(resources.files(package).joinpath(file).read_text())
    return frozenset(rows[library]["names"])
