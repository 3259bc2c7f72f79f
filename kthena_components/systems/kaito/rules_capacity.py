"""Whether the nodes that KAITO makes for a model hold it, and split it."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of, not_checked
from kthena_components.core.hardware import gpu_of
from kthena_components.core.memory import (
    GIB,
    Split,
    cache_per_token_on_gpu,
    fullest_weights,
    overhead,
)
from kthena_components.core.memory.sharding import divisors
from kthena_components.core.rules.models import (
    pp_within_layers,
    tp_divides_heads,
    tp_divides_kv_heads,
)
from kthena_components.core.values.read import whole
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.estimator import Deployment, TooSmall
from kthena_components.systems.kaito.view import TRANSFORMERS, Model, Sized, View, size_of

CAPACITY, PARALLELISM = "kaito-capacity", "kaito-parallelism"
_SHARE, _SHARE_OF = 0.84, {"NVIDIA A10": 0.82}
"""gpu-memory-utilization of KAITO's command, and what it is on some GPUs."""
_EXPANSION = 1.02
"""Weights on GPUs against those in files, as KAITO's estimator has it."""
_MOST = 16
"""GPUs of the largest instance type."""


def kaito_capacity(view: View) -> Iterator[Finding]:
    """The nodes that KAITO makes for a preset are those that were written, and they hold it.

    With vLLM KAITO counts the nodes itself, from the size of the weight files, and resource.count
    counts for nothing. A count below its own means more nodes than were asked for; one above it is
    ignored. Where its nodes leave too little memory for one request of the model's length, the
    numbers are told: the estimate takes no account of layers that cannot be cut, nor of latent
    attention, whose cache every GPU holds whole. With the transformers runtime one node must hold
    the model. What a ConfigMap states of max-model-len is not read.

    Pass: Llama-3.3-70B, 131.4 GiB, count 2 of Standard_NC48ads_A100_v4, 2 × 80 GiB.
    Fail: the same with count 1; advisory: Mistral-Large-3 on 5 nodes of 2 × 94 GiB.
    Level: mandatory; advisory for a count above, and for memory that is short.
    Source: kaito-project/kaito pkg/workspace/estimator/nodesestimator/estimator.go;
        api/v1beta1/workspace_validation.go; kaito#1956, kaito#2139.
    """
    for model in view.models:
        if model.tuned:
            yield from _tuning(model)
            continue
        sized, runtime = size_of(model), model.runtime
        if isinstance(sized, Unknown):
            yield not_checked(_where(model), sized, CAPACITY)
        elif sized is not None and isinstance(runtime, Unknown):
            yield not_checked(model.resource_path, runtime, CAPACITY)
        elif sized is not None and runtime == TRANSFORMERS:
            yield from _one_node(sized)
        elif sized is not None:
            yield from _nodes(sized, view)


def _where(model: Model) -> str:
    """Say where what is not known stands, or would stand."""
    known = isinstance(model.instance, str) and model.instance
    return model.preset_path if known else model.instance_path


def _tuning(model: Model) -> Iterator[Finding]:
    nodes, at = model.count, f"{model.resource_path}.count"
    if isinstance(nodes, Unknown):
        yield not_checked(at, nodes, CAPACITY)
    elif nodes is not None and nodes > 1:
        seen = f"is {nodes}, but tuning runs on one node"
        yield Finding(path=at, seen=seen, remedy="write 1", rule=CAPACITY)


def _one_node(sized: Sized) -> Iterator[Finding]:
    total = sized.instance.total_gib
    if sized.files > total:
        yield Finding(
            path=sized.model.instance_path,
            seen=f"is {_node(sized)}, which hold {total:g} GiB, but the files of "
            f"{sized.model.preset} are {sized.files:g} GiB, and the transformers runtime does not "
            "spread a model over nodes",
            remedy=f"choose an instance type of {sized.files:g} GiB or more, or the runtime vllm",
            rule=CAPACITY,
        )


def _nodes(sized: Sized, view: View) -> Iterator[Finding]:
    gpus, model = sized.gpus, sized.model
    if isinstance(gpus, TooSmall):
        yield Finding(
            path=model.instance_path,
            seen=f"is {_node(sized)}, of each of which vLLM may take {gpus.available:.1f} GiB, but "
            f"{gpus.needed:.1f} GiB are taken before the first weight of {model.preset}",
            remedy="choose an instance type with more memory for each GPU",
            rule=CAPACITY,
        )
        return
    deployment = sized.deployment
    if deployment is None:
        return
    yield from _count(sized, deployment)
    yield from _limit(deployment, view)
    if isinstance(sized.tokens, Unknown):
        yield not_checked(model.config_path, sized.tokens, CAPACITY)
    else:
        yield from _left(sized, deployment)


def _count(sized: Sized, deployment: Deployment) -> Iterator[Finding]:
    stated, nodes, at = sized.model.count, deployment.nodes, f"{sized.model.resource_path}.count"
    if isinstance(stated, Unknown):
        yield not_checked(at, stated, CAPACITY)
        return
    if stated is None or stated == nodes:
        return
    least = "at least " if isinstance(sized.tokens, Unknown) else ""
    counts = (
        f"KAITO counts {least}{count_of(deployment.gpus, 'GPU')} for the {sized.files:g} GiB of "
        f"{sized.model.preset}, and makes {least}{count_of(nodes, 'node')} of {_node(sized)}"
    )
    if stated < nodes:
        remedy = f"write {nodes}, or leave it out, or choose an instance type with more GPU memory"
        yield Finding(path=at, seen=f"is {stated}, but {counts}", remedy=remedy, rule=CAPACITY)
    elif not least:
        yield Finding(
            path=at,
            seen=f"is {stated}, but {counts}, whatever count says",
            remedy=f"write {nodes} or leave it out; for more nodes state a longer max-model-len",
            rule=CAPACITY,
            level=Level.ADVISORY,
        )


def _limit(deployment: Deployment, view: View) -> Iterator[Finding]:
    limit, copies = whole(view.spec.get("nodeCountLimit")), whole(view.spec.get("replicas"))
    copies = 1 if copies is None else copies
    if isinstance(limit, int) and isinstance(copies, int) and 0 < limit < copies * deployment.nodes:
        yield Finding(
            path="spec.nodeCountLimit",
            seen=f"is {limit}, but {count_of(copies, 'replica')} of "
            f"{count_of(deployment.nodes, 'node')} each take {copies * deployment.nodes}",
            remedy=f"write {copies * deployment.nodes} or more",
            rule=CAPACITY,
            level=Level.ADVISORY,
        )


def _left(sized: Sized, deployment: Deployment) -> Iterator[Finding]:
    """Tell where one request of the model's own length would not fit, by our own estimate."""
    shape, tensor = sized.shape, deployment.tensor
    split = Split(tensor=tensor, pipeline=deployment.pipeline, experts=tensor * deployment.data)
    each, gib = cache_per_token_on_gpu(shape, split), shape.weights_gib
    if each is None or gib is None or shape.context is None:
        return
    weights = _EXPANSION * fullest_weights(shape, split, gib)
    left = _budget(sized) - weights - overhead(shape, weights)
    needed = shape.context * each / GIB if shape.full_cache else 0.0
    if left >= needed:
        return
    tokens = max(int(left * GIB / each), 0)
    holds = "nothing is left to the KV cache"
    if tokens:
        holds = f"{left:.1f} GiB are left to the KV cache: requests of {tokens} tokens, and not "
        holds += f"of the model's {shape.context}"
    yield Finding(
        path=sized.model.instance_path,
        seen=f"makes KAITO start {_shape(deployment)} on {count_of(deployment.nodes, 'node')} of "
        f"{_node(sized)}: of the fullest GPU about {weights:.1f} GiB are weights, and {holds}",
        remedy="choose an instance type with more memory for each GPU",
        rule=CAPACITY,
        level=Level.ADVISORY,
    )


def _budget(sized: Sized) -> float:
    """Give the GiB that vLLM takes of a GPU: a share of what the driver reports.

    KAITO passes a share, and only its estimator reckons with the nominal size. Sources: KAITO's
    pkg/model/interface.go defaultGPUMemoryUtilization; vllm/v1/worker/utils.py request_memory.
    """
    instance, gpu = sized.instance, gpu_of(sized.instance)
    memory = instance.memory_gib if gpu is None else gpu.memory_gib
    return _SHARE_OF.get(instance.gpu, _SHARE) * memory


def kaito_parallelism(view: View) -> Iterator[Finding]:
    """The parallelism that KAITO derives from the instance type divides the model.

    A model that half a GPU holds runs once on each GPU of a node; any other one with tensor
    parallelism over the GPUs of a node, and pipeline parallelism over the nodes. KAITO does not
    look whether that divides the heads.

    Pass: Llama-3.3-70B with 64 heads on nodes of 2 GPUs: tensor 2 × pipeline 2.
    Fail: falcon-7b with 71 heads on a node of 2 GPUs of 24 GiB: tensor 2.
    Level: mandatory.
    Source: kaito-project/kaito pkg/model/interface.go configureParallelism; kaito#755.
    """
    for model in view.models:
        sized, runtime = size_of(model), model.runtime
        if isinstance(sized, Unknown):
            if isinstance(model.instance, Unknown) or isinstance(model.preset, Unknown):
                yield not_checked(_where(model), sized, PARALLELISM)
        elif sized is not None and isinstance(runtime, Unknown):
            yield not_checked(model.resource_path, runtime, PARALLELISM)
        elif sized is not None and runtime != TRANSFORMERS:
            yield from _divides(sized)


def _divides(sized: Sized) -> Iterator[Finding]:
    deployment = sized.deployment
    if deployment is None:
        return
    facts, at = _as_facts(sized, deployment), sized.model.instance_path
    heads = (*tp_divides_heads(facts), *tp_divides_kv_heads(facts))
    stages = pp_within_layers(facts)
    fewer = "choose an instance type with more GPU memory, for fewer nodes"
    # Where the heads do not fit, neither do the KV heads, and the remedy is one.
    told = [(f, f"choose an instance type with {_counts(sized)}") for f in heads[:1]]
    for found, remedy in (*told, *((f, fewer) for f in stages)):
        if found.level is Level.MANDATORY:
            seen = f"makes KAITO start {_shape(deployment)}, where {found.seen}"
            yield replace(found, path=at, seen=seen, remedy=remedy, rule=PARALLELISM)


def _as_facts(sized: Sized, deployment: Deployment) -> ServingFacts:
    """Give the engine that KAITO starts in the form that the rules about shapes read."""
    at = sized.model.instance_path
    command = CommandFacts(
        engine="vllm",
        tensor=deployment.tensor,
        pipeline=deployment.pipeline,
        data=deployment.data,
        model=sized.shape.name,
    )
    pod = PodFacts(devices=(), command=command, gpus_path=at, command_path=at)
    engine = EngineFacts(
        path=at,
        name=str(sized.model.preset),
        pods=deployment.nodes,
        replicas=1,
        entry=pod,
        worker=None,
    )
    return ServingFacts(path="", name="", engines=(engine,))


def _counts(sized: Sized) -> str:
    fit = [n for n in divisors(sized.shape.heads) if n <= _MOST and n != sized.instance.gpus]
    return f"{' or '.join(map(str, fit))} {'GPU' if fit == [1] else 'GPUs'}" if fit else "1 GPU"


def _shape(deployment: Deployment) -> str:
    if deployment.data > 1:
        return f"data {deployment.data}"
    return f"tensor {deployment.tensor} × pipeline {deployment.pipeline}"


def _node(sized: Sized) -> str:
    instance = sized.instance
    return f"{count_of(instance.gpus, 'GPU')} of {instance.memory_gib:g} GiB"
