"""Reads the command line of `size`. Each mistake is one sentence."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kthena_components.cli.settings import ModelConfigError, shape_of
from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import TITLES
from kthena_components.core.engines.values import Refused, convert
from kthena_components.core.facts.devices import NEURON
from kthena_components.core.findings import count_of, nearest
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.hardware.gpu_table import find_gpu
from kthena_components.core.memory import cache_type
from kthena_components.core.models import ModelShape, all_names, find_model, shape_keys
from kthena_components.core.models.known_models import copies_of, short_name
from kthena_components.core.spec.enums import EngineKind, Gpu
from kthena_components.core.values.images import read_image
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.sizing import Question
from kthena_components.sizing.question_and_shapes import CACHE_FLAGS, DEFAULT_RESOURCE, newest_image

_NODES = regex(r"(?:([0-9]{1,4}) ?[xX×] ?)?([0-9]{1,4})")
_INDEX = "model.safetensors.index.json"
"""The file beside config.json that states the size of all weights."""
_GIB = 2**30
_SOME_GPUS = "; write a name such as h100, h200, a100-80gb or mi300x"
_NAMED = 3
"""Most models that an error names."""


class UsageError(ValueError):
    """Wrong usage, in one sentence."""


def read_question(asked: argparse.Namespace) -> Question:
    """Read the question from the options.

    Raises:
        UsageError: It is wrong.
    """
    _check_texts(asked)
    gpu = find_gpu(asked.gpu)
    if isinstance(gpu, Unknown):
        near = "near names" in gpu.because
        raise UsageError(f"--gpu: {gpu.because}{'' if near else _SOME_GPUS}")
    if gpu.resources[0].startswith(NEURON):
        raise UsageError(f"--gpu {asked.gpu}: each {gpu.name} has several cores, and an engine's "
                         "sizes count cores, so the shapes are not known; write a GPU or a TPU"
                         )  # fmt: skip
    model, config = (_in_table(asked), None) if asked.hf_config is None else _of_config(asked)
    model = _weighed(asked, model)
    if model.context is not None and (asked.context or 0) > model.context:
        longest = count_of(model.context, "token")
        raise UsageError(f"--context {asked.context}: {model.name} supports {longest} at most")
    nodes, gpus = _nodes(asked.nodes)
    engine = EngineKind(asked.engine)
    resource = gpu.resources[0]
    if engine is EngineKind.TRTLLM and resource != DEFAULT_RESOURCE:
        raise UsageError(f"--engine trtllm: TensorRT-LLM runs on GPUs of NVIDIA, and not on "
                         f"{gpu.name}; write --engine vllm or sglang")  # fmt: skip
    image = asked.image or newest_image(engine, resource)
    _check_image(engine, image, asked.image is not None)
    _check_cache_type(engine, image, asked.kv_cache_dtype)
    return Question(
        model=model,
        gpu=GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib),
        resource=resource,
        gpu_word=next((word.value for word in Gpu if find_gpu(word) == gpu), ""),
        nodes=nodes,
        gpus_per_node=gpus,
        context=asked.context,
        cache_type=asked.kv_cache_dtype,
        requests=asked.requests,
        engine=engine,
        image=image,
        hf_config=None if config is None else shape_keys(config),
        price=asked.price,
    )


def _check_texts(asked: argparse.Namespace) -> None:
    """Refuse what is wrong by its text alone."""
    if asked.shape is not None and asked.write is None:
        raise UsageError("--shape is only for --write")
    if len((asked.image or "").split()) > 1:
        raise UsageError(f"--image {asked.image!r}: write registry/name:tag, without blanks")
    if "://" in str(asked.hf_config or ""):
        raise UsageError(f"--hf-config {asked.hf_config}: write the path of a file, and download "
                         "the file before")  # fmt: skip


def _check_image(engine: EngineKind, image: str, stated: bool) -> None:
    """Refuse the image of another engine's project."""
    own = read_image(image).engine
    if stated and own not in {None, engine.value}:
        raise UsageError(f"--image {image}: this is the image of {TITLES[own or '']}; "
                         f"add --engine {own}")  # fmt: skip


def _check_cache_type(engine: EngineKind, image: str, name: str | None) -> None:
    """Refuse a type of the KV cache that the engine's release does not have."""
    if name is None:
        return
    release = release_for(engine.value, read_image(image))
    option = dialect_of(release).options.get(CACHE_FLAGS[engine])
    if option is None:
        raise UsageError(f"--kv-cache-dtype: {TITLES[engine.value]} {release.text} has no option "
                         f"{CACHE_FLAGS[engine]}; write a newer --image")  # fmt: skip
    found = convert(option, name, name, in_shell=True)
    if isinstance(found, Refused):
        raise UsageError(f"{found.text} in {TITLES[engine.value]} {release.text}; {found.remedy}")
    size = cache_type(name)
    if isinstance(size, Unknown):
        raise UsageError(f"--kv-cache-dtype: {size.because}")


def _nodes(text: str) -> tuple[int, int]:
    """Read NODESxGPUS, such as 4x8; a missing number of GPUs is 1."""
    found = _NODES.fullmatch(text.strip())
    nodes, gpus = (int(number or 1) for number in found.groups()) if found else (0, 0)
    if not nodes or not gpus:
        raise UsageError(
            f"--nodes {text!r}: write the nodes and the GPUs of each, such as 4x8, with at "
            "most 4 digits each"
        )
    return nodes, gpus


def _weighed(asked: argparse.Namespace, model: ModelShape) -> ModelShape:
    """Return the model with the size of its weights."""
    if asked.weights is not None:
        return replace(model, weights_gib=asked.weights)
    if model.weights_gib is None:
        where = (
            f"the folder of --hf-config has no {_INDEX}"
            if asked.hf_config
            else "the table has none"
        )
        raise UsageError(f"the size of the weights of {model.name} is not known: {where}; "
                         "write --weights GIB")  # fmt: skip
    return model


def _in_table(asked: argparse.Namespace) -> ModelShape:
    """Find the model in the table, with the precision of --precision."""
    model = find_model(asked.model)
    if isinstance(model, Unknown):
        close = _meant(asked.model)
        meant = f"if it is {close}, write that; otherwise " if close else ""
        raise UsageError(f"{model.because}; {meant}give its config.json with --hf-config PATH")
    named = replace(model, name=asked.model) if "/" in asked.model else model
    precision = (asked.precision or "").casefold()
    return named if precision in {"", model.dtype} else _copy(named, asked.precision)


def _meant(name: str) -> str | None:
    """Return the model whose name begins like this or has its words, or else the nearest name."""
    meant = short_name(name)
    begun = [full for full in all_names() if meant and _joined(full).startswith(_joined(meant))]
    if begun:
        return min(begun, key=lambda full: len(short_name(full)))
    words = set(meant.split("-"))
    holding = [full for full in all_names() if words <= set(short_name(full).split("-"))]
    return nearest(name, all_names()) or " or ".join(holding[:_NAMED]) or None


def _joined(name: str) -> str:
    return short_name(name).replace("-", "").replace("_", "")


def _copy(model: ModelShape, precision: str) -> ModelShape:
    """Return the copy of a model with weights in another format."""
    copies, wanted = copies_of(model), precision.casefold()
    found = next((copy for copy in copies if copy.dtype == wanted), None)
    if found is not None:
        return found
    known = {str(copy.dtype): copy.name for copy in reversed(copies)}
    others = ", ".join(f"{dtype} ({name})" for dtype, name in sorted(known.items()))
    message = f"it has {model.dtype} and {others}" if others else f"it has {model.dtype} only"
    raise UsageError(f"--precision {precision}: the table of models has no such copy of "
                     f"{model.name}; {message}")  # fmt: skip


def _of_config(asked: argparse.Namespace) -> tuple[ModelShape, Mapping[str, Any]]:
    """Read the model's shape from its config.json, with the GiB of the weights beside it."""
    if asked.precision is not None:
        raise UsageError("--precision is for models of the table, and not with --hf-config")
    try:
        shape, config = shape_of("--hf-config", asked.hf_config)
    except ModelConfigError as error:
        raise UsageError(str(error)) from None
    weights = _size_beside(Path(asked.hf_config))
    return replace(shape, name=asked.model, weights_gib=weights), config


def _size_beside(place: Path) -> float | None:
    """Read the size of all weights from the index of their files."""
    folder = place if place.is_dir() else place.parent
    text = read_text(str(folder / _INDEX), named=False)
    if isinstance(text, Unreadable):
        return None
    try:
        size = json.loads(text)["metadata"]["total_size"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    usual = isinstance(size, int | float) and not isinstance(size, bool) and 0 < size < _GIB**2
    return size / _GIB if usual else None
