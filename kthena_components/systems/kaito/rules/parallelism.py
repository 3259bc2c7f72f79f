"""Checks that the parallelism that KAITO chooses divides the model."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.findings import Finding, Level, each_of
from kthena_components.core.memory.sharding import divisors
from kthena_components.core.rules.pp_within_layers import pp_within_layers
from kthena_components.core.rules.tp_divides_heads import tp_divides_heads
from kthena_components.core.rules.tp_divides_kv_heads import tp_divides_kv_heads
from kthena_components.core.values.unknown import is_known, known
from kthena_components.systems.kaito.estimator import Sized, size_of, where
from kthena_components.systems.kaito.preset_command import shown, start_of
from kthena_components.systems.kaito.view import TRANSFORMERS, Model, each_model

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
    deployment, model = sized.deployment, sized.model
    start = None if deployment is None else known(start_of(sized, deployment), model.config_path)
    if start is None:
        return
    heads = (*tp_divides_heads(start.facts), *tp_divides_kv_heads(start.facts))
    stages = pp_within_layers(start.facts)
    fewer = "choose an instance type with more GPU memory, for fewer nodes"
    # If the heads do not fit, neither do the KV heads, and the remedy is the same.
    told = [(f, f"choose an instance type with {_counts(sized)}") for f in heads[:1]]
    for found, remedy in (*told, *((f, fewer) for f in stages)):
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
