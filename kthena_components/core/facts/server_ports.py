"""Reads where servers beside engines listen: of NVIDIA Dynamo, and `trtllm-serve disaggregated`.

Source: ai-dynamo/dynamo components/src/dynamo/frontend/frontend_args.py (--http-port, 8000; 8080 in
the first releases); lib/runtime/src/config.rs (system_port) and system_status_server.rs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.files import read_file, read_yaml
from kthena_components.core.facts.container import read_volumes
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.files import PodVolumes, read_files
from kthena_components.core.facts.listening import TRANSFERS, Listening
from kthena_components.core.facts.ports import ProbeFacts, read_ports, resolved
from kthena_components.core.findings import join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import parse_version, read_image
from kthena_components.core.values.read import (
    digits,
    first_unknown,
    is_map,
    mapping,
    sequence,
    unknown_in,
    unknown_inside,
    unknown_within,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown

SYSTEM_VARIABLE = "DYN_SYSTEM_PORT"
HTTP, HTTP_PORT = "http", 8000
_HTTP_VARIABLE = "DYN_HTTP_PORT"
_FIRST_PORT, _SINCE = 8080, (0, 6)
"""The port of the first releases, and one that surely has the other."""
_OF_DYNAMO = "ai-dynamo/"
_FRONTEND = regex(r"(?:^| )-m dynamo\.frontend(?= |$)")
_HTTP_OPTION = regex(r"(?:^| )--http-port(?:=| +)(\S*)")
_BESIDE_FRONTEND = regex(
    r"[&|;\n]|dynamo\.(?:vllm|sglang|trtllm)|nginx|--interactive|-i\b|--kserve"
)
_WORKER = regex(r"dynamo\.(?:vllm|sglang|trtllm)(?![-\w.])")
_BESIDE_WORKER = regex(r"[&|;\n]|dynamo\.frontend|nginx")
"""What may start another server."""
_NUMBER = regex(r"(?<![\w.])[0-9]{1,5}(?![\w.])")
_BY_VARIABLE = Unknown("a variable states the port of the frontend")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """A server beside the engines, which states where it listens."""

    path: str
    """Path of its container."""
    listening: Listening
    probes: tuple[ProbeFacts, ...]
    faults: tuple[tuple[str, str], ...] = ()
    """What ends its start in its file, each as a clause and a remedy."""


def servers_in(template: object, path: str, context: Context = NO_CONTEXT) -> Iterator[ServerFacts]:
    """Return the server beside the engines in a pod template that nothing completes."""
    spec = mapping(mapping(template).get("spec"))
    listed = sequence(spec.get("containers"))
    if len(listed) != 1 or has_neighbours(spec):
        return
    container, at = mapping(listed[0]), join_path(path, "spec.containers[0]")
    found = _of_frontend(container) or _of_worker(container)
    faults: tuple[tuple[str, str], ...] = ()
    if found is None and (read := _disaggregated(container, spec, context)):
        found, faults = read
    if found is not None:
        probes = read_ports(container, spec, at).probes
        yield ServerFacts(path=at, listening=found, probes=probes, faults=faults)


# The file of `trtllm-serve disaggregated`, which sends requests to context and generation servers.
#
# Source: NVIDIA/TensorRT-LLM tensorrt_llm/llmapi/disagg_utils.py extract_disagg_cfg and
# extract_ctx_gen_cfgs, and tensorrt_llm/commands/serve.py disaggregated.

_DISAGGREGATED = regex(r"(?:^|[\s/])trtllm-serve\s+disaggregated(?=\s|$)([^\n;&|]*)")
_FILE = regex(r"(?:^|\s)(?:-c|--config_file)[\s=]+([^\s'\"]+)")
_SERVERS = ("context_servers", "generation_servers")
_ADDRESS = regex(r"([^:/\s]+):([0-9]{1,5})")


def _disaggregated(
    container: Mapping[str, Any], spec: Mapping[str, Any], context: Context
) -> tuple[Listening, tuple[tuple[str, str], ...]] | None:
    """Read the file of a container that starts nothing else; None if it is not known."""
    words = _words(container)
    line = " ".join(word for word in words if isinstance(word, str)).replace("\\\n", " ")
    starts = _DISAGGREGATED.findall(line)
    named = _FILE.search(starts[0]) if len(starts) == 1 else None
    if named is None or unknown_inside(words) or line.count("trtllm-serve") > 1:
        return None
    mounts, _ = read_files(container, PodVolumes(read_volumes(spec), context), "")
    text = read_file(mounts, named[1])
    config = read_yaml(text) if isinstance(text, str) else None
    if not is_map(config) or unknown_within(config) is not None:
        return None
    port = config.get("port", 8000)
    own = numbers(container.get("ports"))
    found = _listening(container, _ROUTER, port if type(port) is int else None, own)
    if found is None or config.get("disagg_cluster"):
        return None if found is None else (found, ())
    urls = {key: _urls(mapping(config.get(key))) for key in _SERVERS}
    sends = tuple((f"{key}.urls", url) for key, listed in urls.items() for url in listed)
    faults = [fault for key in _SERVERS for fault in _faults(key, mapping(config.get(key)))]
    return replace(found, sends=sends), tuple(faults)


_ROUTER = "trtllm-serve disaggregated"


def _urls(servers: Mapping[str, Any]) -> list[str]:
    return [url for url in sequence(servers.get("urls")) if isinstance(url, str)]


def _faults(key: str, servers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find what its parser raises an error for."""
    listed, number = _urls(servers), servers.get("num_instances", 1)
    for url in listed:
        if not _ADDRESS.fullmatch(url):
            parts = url.rpartition("://")[2].rstrip("/")
            meant = parts if _ADDRESS.fullmatch(parts) else f"{parts.partition(':')[0]}:8000"
            seen = f"has {display(url)} in {key}.urls of its file, and TensorRT-LLM reads HOST:PORT"
            yield seen, f"write {meant} there" if parts == meant else f"write {meant}, or its port"
    if listed and type(number) is int and number != len(listed):
        stated = f"num_instances {number}" if "num_instances" in servers else "no num_instances"
        seen = f"has {stated} in {key} of its file, and {len(listed)} urls"
        yield seen, f"write num_instances: {len(listed)}"


def _of_frontend(container: Mapping[str, Any]) -> Listening | None:
    """Find the HTTP port of Dynamo's frontend; older releases may not read the variable."""
    port = http_port(container) if _words(container) and is_frontend(container) else None
    if port is None:
        return None
    image, stated = container.get("image"), str(port) in text_of(container)
    read = read_image(image) if isinstance(image, str) else None
    release = parse_version(read.tag or "") if read and _OF_DYNAMO in read.repository else None
    is_sure = stated or (release is not None and release >= _SINCE)
    named = numbers(container.get("ports"))
    return frontend(container, port, named, frozenset() if is_sure else frozenset({_FIRST_PORT}))


def _of_worker(container: Mapping[str, Any]) -> Listening | None:
    """Find the port of a Dynamo worker's system server, which DYN_SYSTEM_PORT states."""
    env = container.get("env")
    stated = [each for each in map(mapping, sequence(env)) if each.get("name") == SYSTEM_VARIABLE]
    if not stated or not starts_worker(container) or first_unknown(env, *sequence(env)):
        return None
    value = stated[-1].get("value")
    port = unknown_in(value) or digits(value)
    named = numbers(container.get("ports"))
    return _listening(container, "a worker of Dynamo", port, named, TRANSFERS)


def frontend(
    container: Mapping[str, Any],
    port: MaybeInt | None,
    named: Mapping[str, int],
    others: frozenset[int] = frozenset(),
) -> Listening | None:
    """Return where a frontend listens; None if that is not a number.

    Args:
        named: The ports of the container, by name.
        others: Ports on which it may listen, too.
    """
    return _listening(container, "the frontend of Dynamo", port, named, others)


def _listening(
    container: Mapping[str, Any],
    program: str,
    port: MaybeInt | None,
    named: Mapping[str, int],
    others: frozenset[int] = frozenset(),
) -> Listening | None:
    """Describe a program of Dynamo that listens; all numbers in its text may be ports as well."""
    if port is None or port == 0:
        return None
    ports = container.get("ports")
    hidden = unknown_inside(ports, *sequence(ports))
    return Listening(
        engine=None,
        program=program,
        answers=hidden or port,
        others=others.union(map(int, _NUMBER.findall(text_of(container)))),
        ray=False,
        named=tuple(sorted(named.items())),
    )


def _words(container: Mapping[str, Any]) -> list[object]:
    return [*sequence(container.get("command")), *sequence(container.get("args"))]


def has_neighbours(spec: Mapping[str, Any]) -> bool:
    """Return whether something else may listen in a pod than its one container."""
    inits = map(mapping, sequence(spec.get("initContainers")))
    sidecars = any(each.get("restartPolicy") for each in inits)
    return len(sequence(spec.get("containers"))) > 1 or sidecars or bool(spec.get("hostNetwork"))


def is_frontend(container: Mapping[str, Any]) -> bool:
    """Return whether a container starts a frontend and nothing else; without words it does."""
    words = _words(container)
    line = " ".join(word for word in words if isinstance(word, str))
    is_one = not words or len(_FRONTEND.findall(line)) == 1
    return (
        is_one
        and all(isinstance(word, str) for word in words)
        and not _BESIDE_FRONTEND.search(line)
    )


def starts_worker(container: Mapping[str, Any]) -> bool:
    """Return whether a command starts one engine of Dynamo, and nothing else."""
    words = _words(container)
    if not all(isinstance(word, str) for word in words):
        return False
    line = " ".join(map(str, words))
    return len(_WORKER.findall(line)) == 1 and not _BESIDE_WORKER.search(line)


def http_port(container: Mapping[str, Any]) -> MaybeInt | None:
    """Return the port of a frontend; None if what states it is not a number."""
    words, env = _words(container), container.get("env")
    found = _HTTP_OPTION.findall(" ".join(map(str, words)))
    fields = (container.get("command"), container.get("args"))
    hidden = first_unknown(*fields, *words, env, *sequence(env))
    if hidden is not None:
        return hidden
    stated = found[-1] if found else HTTP_PORT
    if not found:
        named = [each for each in map(mapping, sequence(env)) if each.get("name") == _HTTP_VARIABLE]
        stated = named[-1].get("value") if named else HTTP_PORT
        if container.get("envFrom") or (named and stated is None):
            return _BY_VARIABLE
    if isinstance(stated, str) and not unknown_in(stated):
        number = digits(stated)
        return _BY_VARIABLE if number is None else number
    return resolved(stated, {})


def numbers(ports: object) -> dict[str, int]:
    """Return the ports of a container by name."""
    listed = map(mapping, sequence(ports))
    read = {str(each.get("name")): each.get("containerPort") for each in listed}
    return {name: port for name, port in read.items() if isinstance(port, int)}


def text_of(container: Mapping[str, Any]) -> str:
    """Return where a container may name another port on which it listens."""
    return " ".join(str(container.get(field)) for field in ("command", "args", "env"))
