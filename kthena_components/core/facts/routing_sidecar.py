"""Reads the routing sidecar of llm-d, which passes the requests for a pod to the pod's engine.

It listens on --port 8000 and passes requests to --vllm-port 8001, if it states no others. With
--connector sglang it tells the engine to ask for the KV cache on SGLANG_BOOTSTRAP_PORT, 8998.

Source: llm-d-inference-scheduler cmd/pd-sidecar/main.go and pkg/sidecar/proxy/options.go, before
llm-d-routing-sidecar cmd/llm-d-routing-sidecar/main.go; connector_sglang.go beside options.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.engines.argv import by_flag
from kthena_components.core.engines.kv_transfer import BOOTSTRAP_PORT
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

_IMAGE = regex(r"(?:[^@]*/)?llm-d-(?:routing|pd)-sidecar(?:[:@].*)?")
_PORT, _TARGET = "port", "vllm-port"
_USUAL = {_PORT: 8000, _TARGET: 8001}
_MORE = regex(r"(data-parallel-size|config).*|(?!(vllm-)?port$).*(port|url|address|target).*")
"""Options by which it listens on several ports, or takes ports from elsewhere: those with a name of
a port or an address that other releases may have count, too."""
_CONNECTORS = ("connector", "kv-connector")
_BOOTSTRAP = "SGLANG_BOOTSTRAP_PORT"
_NUMBER = regex(r"[0-9]{1,5}")
_MOST = 20
"""Containers of a pod that are searched for a sidecar, for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSidecar:
    """A routing sidecar in the pod of an engine."""

    path: str = field(compare=False)
    """Path of its words."""
    name: str
    """Name of its container."""
    port: int
    """The port on which it listens."""
    target: int
    """The port of the pod to which it passes requests."""
    bootstrap: int | None = None
    """The port of SGLang's prefill engines for requests of their cache. None: not known."""


def read_sidecar(
    container: Mapping[str, Any], spec: Mapping[str, Any], path: str
) -> tuple[object, RoutingSidecar | None]:
    """Read the routing sidecar beside a container of a pod.

    Returns:
        The sidecar's container and what is known of it. (None, None) without one, or if its ports
        are not known.
    """
    for at, other in _beside(container, spec):
        read = _read(other, f"{path.rpartition('.')[0]}.{at}")
        if read is not None:
            return other, read
    return None, None


def _beside(container: object, spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and the body of each other container that runs beside this one."""
    if sum(len(sequence(spec.get(name))) for name in ("initContainers", "containers")) > _MOST:
        return
    for name in ("initContainers", "containers"):
        for index, each in enumerate(sequence(spec.get(name))):
            runs = name == "containers" or mapping(each).get("restartPolicy") == "Always"
            if runs and each is not container and isinstance(each, Mapping):
                yield f"{name}[{index}]", each


def _read(container: Mapping[str, Any], path: str) -> RoutingSidecar | None:
    """Read a container as llm-d's routing sidecar; None if it is none, or not known."""
    image, words = container.get("image"), container.get("args")
    if not isinstance(image, str) or not _IMAGE.fullmatch(image) or container.get("command"):
        return None
    listed = [*sequence(words)]
    if is_unresolved(words) or not all(isinstance(word, str) for word in listed):
        return None
    if container.get("envFrom"):
        return None
    stated = {flag.lstrip("-"): values for flag, values in by_flag(listed)}
    if any(_MORE.fullmatch(flag) for flag in stated):
        return None
    ports = [_number(stated[name]) if name in stated else _USUAL[name] for name in (_PORT, _TARGET)]
    port, target = ports
    if port is None or target is None:
        return None
    name = container.get("name")
    connectors = [stated[flag] for flag in _CONNECTORS if flag in stated]
    return RoutingSidecar(
        path=f"{path}.args",
        name=name if isinstance(name, str) else "?",
        port=port,
        target=target,
        bootstrap=_bootstrap(container.get("env")) if connectors == [["sglang"]] else None,
    )


def _bootstrap(env: object) -> int | None:
    if is_unresolved(env) or any(
        is_unresolved(mapping(each).get("name")) for each in sequence(env)
    ):
        return None
    named = [each for each in map(mapping, sequence(env)) if each.get("name") == _BOOTSTRAP]
    value = named[-1].get("value") if named else str(BOOTSTRAP_PORT)
    return _number([value]) if isinstance(value, str) else None


def _number(words: list[str]) -> int | None:
    return int(words[0]) if len(words) == 1 and _NUMBER.fullmatch(words[0]) else None
