"""Finds engines and requests for several accelerators in objects of any kind.

The fields of the objects are unknown here. Each map and list is visited once, however often aliases
repeat it.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import image_entrypoint
from kthena_components.core.findings import join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import key_text
from kthena_components.core.values.quantity import is_accelerator, parse_quantity
from kthena_components.core.values.read import is_map, mapping, pairs, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.core.values.values_in_text import may_have, read_yaml_text

_PROGRAMS = r"""
    vllm[ ]+serve | vllm\.entrypoints\.[a-z_.]+ | multi-node-serving\.sh
    | sglang[ ]+serve | sglang\.launch_server | trtllm-serve | tensorrt_llm\.commands\.serve
    | dynamo\.(?:vllm|sglang|trtllm) | huggingfaceserver | text-generation-launcher
    | lmdeploy[ ]+serve | lmdeploy\.serve[a-z_.]* | tritonserver
"""
_START = regex(rf"(?:\A|[\s;&|(/\"'])({_PROGRAMS})(?=\Z|[\s;&|)\"'])", re.VERBOSE)
"""An engine's program as a word of a command line, behind any wrapper."""
_SIZES = r"(?:tensor|pipeline|data)[-_]parallel[-_]size|[tpd]p[-_]size|num[-_]shard"
_FLAG = regex(rf"(?:\A|[\s\"'])(--(?:{_SIZES}|tp)|-tp)(?=[ =][\"']?[0-9$]|[0-9])")
_FIELDS = frozenset(
    {
        *("tensorParallelSize", "pipelineParallelSize", "dataParallelSize"),
        *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
        *("TENSOR_PARALLEL_SIZE", "PIPELINE_PARALLEL_SIZE", "DATA_PARALLEL_SIZE"),
        *("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"),
        *("tensorParallelism", "pipelineParallelism", "tpSize", "tp_size", "tp-size", "TP_SIZE"),
        *("numShard", "num_shard", "num-shard", "NUM_SHARD"),
    }
)
"""Sizes of an engine, as fields of an object or variables of a container."""
_PARTS = frozenset({"tensor", "pipeline", "data"})
"""Sizes of an engine below `parallelism`."""
_HINTS: tuple[str, ...] = (
    *("vllm", "sglang", "trtllm", "tensorrt_llm", "huggingfaceserver", "text-generation"),
    *("lmdeploy", "tritonserver", "multi-node-serving", "tgi-gaudi", "parallel"),
    *("-tp", "-dp", "-pp", "num-shard", "num_shard"),
)
_RESOURCES: tuple[str, ...] = (
    *("/gpu", "/npu", "/xpu", "/tpu", "/mig-", "gpu.intel.com/", "habana.ai/", "huawei.com/"),
    *("amazon.com/neuron", "rebellions.ai/", "furiosa.ai/"),
)
_WORDS = (*_HINTS, *_RESOURCES, *(field.lower() for field in _FIELDS))
_SEVERAL = 2
_MOST_INSIDE = 2
_PLAIN = frozenset({bool, int, float, type(None)})
_DOCUMENTS = regex(r"^---(?:[ \t].*)?$", re.MULTILINE)
_NOTES = frozenset({"metadata", "annotations", "labels", "status"})


@dataclass(frozen=True, slots=True)
class Sign:
    """A place in an object that starts an engine, or requests several accelerators."""

    path: str
    """Path in the object: of the container, its command, or the field."""
    what: str
    """What was found, as a clause: `asks for 8 nvidia.com/gpu`."""
    by_field: bool = False
    """Whether it is a field or a variable, not a command or a resource."""


def may_hold_signs(text: str) -> bool:
    """Return quickly whether an object with this text may have a sign."""
    return may_have(text, _has_word)


def _has_word(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in _WORDS)


def signs_in(
    body: Mapping[str, object], skipped: Container[str] = (), levels: int = _MOST_INSIDE
) -> Iterator[Sign]:
    """Yield the signs of an object in the order of its fields.

    Metadata, also of templates, and the status only describe what runs. A part with
    `enabled: false` does not run.

    Args:
        skipped: Paths of parts in which no sign matters.
        levels: How many documents inside of each other are read.
    """
    seen: set[int] = set()
    todo: list[tuple[str, object]] = _below("", body)[::-1]
    while todo:
        path, value = todo.pop()
        if path in skipped:
            continue
        if isinstance(value, str):
            yield from _in_text(path, value) if _may_be_command(value.strip()) else ()
            for document in documents_in(value) if levels else ():
                found = signs_in(document, levels=levels - 1)
                signs = (*sizes_in(document), *found)
                yield from (replace(sign, path=path) for sign in signs)
        elif id(value) not in seen:
            seen.add(id(value))
            if is_map(value):
                if value.get("enabled") is False:
                    continue
                yield from _in_map(path, value)
                inner = _below(path, value)
            elif isinstance(value, (list, tuple)):
                yield from _in_text(path, " ".join(item for item in value if type(item) is str))
                listed = enumerate(value)
                inner = [(f"{path}[{i}]", item) for i, item in listed if type(item) is not str]
            else:
                continue
            todo += reversed(inner)


def sizes_in(document: Mapping[str, object]) -> Iterator[Sign]:
    """Yield the sizes of an engine that a document in a string states at its top."""
    for key in _sizes(document):
        yield from _stated(key_text(key), key_text(key), document[key])


def documents_in(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the maps that a string in a field holds as YAML or JSON, if they may have a sign."""
    if ("\n" in text or text.lstrip()[:1] == "{") and ":" in text and may_hold_signs(text):
        for part in _DOCUMENTS.split(text):
            document = read_yaml_text(part, "")
            if is_map(document):
                yield document


def _below(path: str, fields: Mapping[Any, object]) -> list[tuple[str, object]]:
    """Return the values of a map that may hold a sign: no numbers, and no single words."""
    return [
        (join_path(path, key_text(key)), item)
        for key, item in fields.items()
        if key not in _NOTES
        and (_may_be_command(item) if type(item) is str else type(item) not in _PLAIN)
    ]


def _may_be_command(text: str) -> bool:
    """Return whether a string may be a command or a flag.

    Any other single word is a name, such as an image's.
    """
    return " " in text or "\n" in text or text[:1] in {"-", "{"}


def _in_map(path: str, fields: Mapping[object, object]) -> Iterator[Sign]:
    """List signs of an engine in a map: GPUs, a known image's arguments, and parallel sizes."""
    if "resources" in fields:
        yield from _in_resources(path, mapping(fields["resources"]))
    image = fields.get("image")
    if isinstance(image, str) and "args" in fields and "command" not in fields:
        words = image_entrypoint(image)
        if words and sequence(fields["args"]):
            yield Sign(join_path(path, "args"), f"starts {' '.join(words)}")
    for key in _sizes(fields):
        yield from _stated(join_path(path, key_text(key)), key_text(key), fields[key])
    if "value" in fields:
        # The last part of a path of Helm, a flag, or a variable.
        name = fields.get("name", fields.get("key"))
        last = name.rpartition(".")[2] if isinstance(name, str) else ""
        if _is_size(last):
            yield from _stated(join_path(path, "value"), key_text(last), fields["value"])
    for key, size in pairs(fields.get("parallelism")):
        if key in _PARTS:
            yield from _stated(join_path(path, f"parallelism.{key}"), f"parallelism.{key}", size)


def _sizes(fields: Mapping[Any, object]) -> list[Any]:
    """Return the keys of a map that are sizes of an engine: most maps have none."""
    for key in fields:
        if type(key) is not str or key in _FIELDS or key[:1] == "-":
            return list(filter(_is_size, fields))
    return []


def _is_size(name: object) -> bool:
    return isinstance(name, str) and name.lstrip("-") in _FIELDS


def _stated(path: str, name: str, value: object) -> Iterator[Sign]:
    size = parse_quantity(value)
    if size is not None and size >= _SEVERAL:
        yield Sign(path, f"states {name} {size}", by_field=True)


def _in_resources(path: str, resources: Mapping[str, object]) -> Iterator[Sign]:
    """Report a request for several accelerators, or for a number that is not known yet."""
    for key in ("limits", "requests"):
        for resource, amount in pairs(resources.get(key)):
            if not (isinstance(resource, str) and is_accelerator(resource)):
                continue
            number = parse_quantity(amount)
            if is_unresolved(amount) or (number is not None and number >= _SEVERAL):
                known = "an unknown number of" if number is None else f"{number:f}"
                yield Sign(path, f"asks for {known} {resource}")
                return


def _in_text(path: str, text: str) -> Iterator[Sign]:
    """Report a string that starts an engine, or that states one of its flags."""
    if not text or not any(hint in text for hint in _HINTS):
        return
    start = _START.search(text)
    if start is not None:
        yield Sign(path, f"starts {' '.join(start[1].split())}")
        return
    flag = _FLAG.search(text)
    if flag is not None:
        yield Sign(path, f"states {flag[1]}")
