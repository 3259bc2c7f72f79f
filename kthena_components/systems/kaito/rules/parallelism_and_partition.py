"""KAITO's rules about the parallelism that it chooses, and about partitions of GPUs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.findings import Finding, Level, each_of, nearest, part_of_rule, refuse
from kthena_components.core.memory.sharding import divisors
from kthena_components.core.remedies import either, or_more, remove
from kthena_components.core.rules.tp_heads_ffn_pp_layers_moe import (
    pp_within_layers,
    tp_divides_heads,
    tp_divides_kv_heads,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, require_known, text, unknown_inside
from kthena_components.core.values.unknown import Unknown, is_known, known
from kthena_components.systems.kaito.estimator import Sized, find_preset, size_of, where
from kthena_components.systems.kaito.facts import shown, start_of
from kthena_components.systems.kaito.view import TRANSFORMERS, Model, each_model

_RULE = "kaito-partition"
_PROFILES = frozenset(
    [
        "1g.5gb",
        "1g.6gb",
        "1g.10gb",
        "1g.12gb",
        "1g.18gb",
        "1g.20gb",
        "1g.23gb",
        "1g.24gb",
        "1g.35gb",
        "1g.45gb",
        "2g.10gb",
        "2g.12gb",
        "2g.20gb",
        "2g.24gb",
        "2g.35gb",
        "2g.45gb",
        "3g.20gb",
        "3g.40gb",
        "3g.47gb",
        "3g.48gb",
        "3g.71gb",
        "3g.90gb",
        "4g.20gb",
        "4g.24gb",
        "4g.40gb",
        "4g.47gb",
        "4g.48gb",
        "4g.71gb",
        "4g.90gb",
        "7g.40gb",
        "7g.80gb",
        "7g.94gb",
        "7g.96gb",
        "7g.141gb",
        "7g.180gb",
    ]
)
"""The MIG profiles that KAITO knows: shares of a GPU, and GiB."""


@each_of(each_model)
def kaito_partition(model: Model) -> Iterator[Finding]:
    """A partition is a MIG profile that holds the weights, or a number of whole GPUs.

    Whether KAITO accepts partitions at all depends on its feature gates, which `check` does not
    know.

    Pass: mode mig, profile 3g.40gb for phi-4; mode accelerator, count 2.
    Fail: mode mig, profile 1g.10gb for llama-3.3-70b-instruct; mode accelerator without count.
    Level: mandatory. KAITO's webhook rejects it.
    Source: kaito-project/kaito v0.12.0 api/v1beta1/workspace_validation.go validatePartition,
    validateMIGModelFit; pkg/utils/mig/mig.go.
    """
    stated, path = model.resource.get("partition"), f"{model.resource_path}.partition"
    require_known(path, unknown_inside(stated))
    fields = mapping(stated)
    if stated is not None and model.tuned:
        yield refuse(path, "is given, but tuning takes whole GPUs", remove(), _RULE)
    elif fields.get("mode") == "mig":
        yield from _slice(model, fields, path)
    elif fields.get("mode") == "accelerator":
        if fields.get("profile"):
            seen = "is given, but mode accelerator takes whole GPUs"
            yield refuse(f"{path}.profile", seen, either(remove(), "write mode: mig"), _RULE)
        if fields.get("count") is None:
            seen = "is missing, and mode accelerator needs it"
            yield refuse(f"{path}.count", seen, or_more(1), _RULE)


@part_of_rule
def _slice(model: Model, fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Check a MIG slice: its profile, and that it holds the files of the model (GiB)."""
    profile = known(text(fields.get("profile")), f"{path}.profile")
    if fields.get("count") is not None:
        seen = "is given, but mode mig takes one slice"
        yield refuse(f"{path}.count", seen, either(remove(), "write mode: accelerator"), _RULE)
    if profile is None or profile not in _PROFILES:
        seen = f"is {display(profile)}, which KAITO does not know" if profile else "is missing"
        near = nearest(str(profile), sorted(_PROFILES)) or "3g.40gb"
        yield refuse(f"{path}.profile", seen, f"write, for example, '{near}'", _RULE)
        return
    require_known(f"{path}.profile", model.preset)
    shape = find_preset(str(model.preset)) if model.preset else None
    if shape is None or isinstance(shape, Unknown):
        return
    files = shape.files_gib or shape.weights_gib or 0
    held = int(profile.rpartition(".")[2].removesuffix("gb"))
    if files > held:
        seen = f"is {profile}, which holds {held} GiB, but the files of {model.preset} are "
        seen += f"{files:g} GiB"
        yield refuse(f"{path}.profile", seen, "choose a larger slice, or whole GPUs", _RULE)


PARALLELISM = "kaito-parallelism"
_MOST = 16
"""GPUs of the largest instance type."""


@each_of(each_model)
def kaito_parallelism(model: Model) -> Iterator[Finding]:
    """The parallelism that KAITO derives from the instance type divides the model.

    A model that fits into half a GPU runs once on each GPU of a node; any other model runs with
    tensor parallelism over the GPUs of a node, and pipeline parallelism over the nodes. KAITO does
    not check whether that divides the heads.

    Pass: Llama-3.3-70B with 64 heads on nodes of 2 GPUs: tensor 2 × pipeline 2.
    Fail: falcon-7b with 71 heads on a node of 2 GPUs of 24 GiB: tensor 2.
    Level: mandatory.
    Source: kaito-project/kaito pkg/model/interface.go configureParallelism; kaito#755.
    """
    sized = size_of(model)
    if is_known(model.instance) and is_known(model.preset) and not is_known(sized):
        return  # kaito-capacity reports it
    sized = known(sized, where(model))
    if sized is not None and known(model.runtime, model.resource_path) != TRANSFORMERS:
        yield from _divides(sized)


def _divides(sized: Sized) -> Iterator[Finding]:
    """Check that the sizes which KAITO chooses divide the heads and layers of the model."""
    deployment, model = sized.deployment, sized.model
    start = None if deployment is None else known(start_of(sized, deployment), model.config_path)
    if start is None:
        return
    heads = (*tp_divides_heads(start.facts), *tp_divides_kv_heads(start.facts))
    stages = pp_within_layers(start.facts)
    fewer = "choose an instance type with more GPU memory, for fewer nodes"
    # If the heads do not fit, neither do the KV heads, and the remedy is the same.
    numbers = [(f, f"choose an instance type with {_counts(sized)}") for f in heads[:1]]
    for found, remedy in (*numbers, *((f, fewer) for f in stages)):
        if found.level is Level.MANDATORY:
            yield replace(
                found,
                path=model.config_path if start.configured else model.node_path,
                seen=f"makes KAITO start {shown(start.deployment)}, where {found.seen}",
                remedy=found.remedy if start.configured else remedy,
                rule=PARALLELISM,
            )


def _counts(sized: Sized) -> str:
    fit = [n for n in divisors(sized.shape.heads) if n <= _MOST and n != sized.instance.gpus]
    return f"{' or '.join(map(str, fit))} {'GPU' if fit == [1] else 'GPUs'}" if fit else "1 GPU"
