"""Checks the nodes that KAITO creates for a model: their memory, and their instance type."""

from collections.abc import Iterator

from kthena_components.core.findings import (
    Finding,
    Level,
    count_of,
    each_of,
    nearest,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.hardware import Instance, find_instance, known_instances
from kthena_components.core.memory import GIB, overhead
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu
from kthena_components.core.memory.estimate import bytes_per_token
from kthena_components.core.objects.object import requests_in
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.rules.memory_weights_fraction_offload import memory_fraction_range
from kthena_components.core.schema.versions import known_version, read_release
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import first_unknown, inside, mapping, require_known, whole
from kthena_components.core.values.unknown import NotKnownError, Unknown, known
from kthena_components.systems.kaito.estimator import (
    CONTEXT,
    Deployment,
    Sized,
    TooSmall,
    last_with_instance,
    size_of,
    where,
)
from kthena_components.systems.kaito.facts import Start, shown, start_of
from kthena_components.systems.kaito.view import TRANSFORMERS, Model, View

_EXPANSION = 1.02
"""Ratio of weights on GPUs to weights in files, from KAITO's estimator."""
_MOST_NODES = {"0.11": 3}
"""The most nodes for a replica, by release. Source: MaxAllowedNodeCount in v0.11.0 (kaito#2121),
which v0.10.0 and v0.12.0 (kaito#2279) do not have."""
_TYPO = 0.85
"""How alike the names of two instance types are if one is a typing error of the other."""
_SHORTER = ", or state a shorter max-model-len"


def kaito_capacity(view: View) -> Iterator[Finding]:
    """KAITO creates as many nodes for a preset as stated, and the model fits on them.

    With vLLM, KAITO calculates the nodes itself, from the size of the weight files, and ignores
    resource.count. A smaller count means more nodes than requested; a larger one has no effect. The
    labels nvidia.com/gpu.product and .count state the GPUs of existing nodes. If its nodes leave
    too little memory for one request of the model's length, the rule reports the numbers: the
    estimate ignores that layers cannot be split, and that every GPU has the whole cache of latent
    attention. With the transformers runtime, the model must fit on one node. The ConfigMap of
    inference.config overrides KAITO's own values, such as a longer max-model-len, for which it
    creates more nodes. KAITO 0.11 creates none if a replica needs more than 3. In place of a
    preset, a pod of inference.template requests no more GPUs than a node has.

    Pass: Llama-3.3-70B, 131.4 GiB, count 2 of Standard_NC48ads_A100_v4, 2 × 80 GiB.
    Fail: the same with count 1; 5 nodes with KAITO 0.11; a template with 2 GPUs on
    Standard_NC24ads_A100_v4, which has 1; advisory: Mistral-Large-3 on 5 nodes of 2 × 94 GiB.
    Level: mandatory; advisory for a larger count, and for insufficient memory.
    Source: kaito-project/kaito pkg/workspace/estimator/nodesestimator/estimator.go;
        api/v1beta1/workspace_validation.go; kaito#1956, kaito#2139;
        v0.11.0 pkg/workspace/controllers/workspace_controller.go guardTargetNodeCount;
        pkg/workspace/manifests/manifests.go GenerateManifestWithPodTemplate.
    """
    for model in view.models:
        yield from _tuning(model) if model.tuned else _inference(model, view)
        yield from _template(model)


@part_of_rule
def _inference(model: Model, view: View) -> Iterator[Finding]:
    sized = known(size_of(model), where(model))
    if sized is not None and known(model.runtime, model.resource_path) == TRANSFORMERS:
        yield from _one_node(sized)
    elif sized is not None:
        yield from _nodes(sized, view)


@part_of_rule
def _tuning(model: Model) -> Iterator[Finding]:
    at = f"{model.resource_path}.count"
    nodes = known(model.count, at)
    if nodes is not None and nodes > 1:
        seen = f"is {nodes}, but tuning runs on one node"
        yield Finding(path=at, seen=seen, remedy=write(1))


@part_of_rule
def _template(model: Model) -> Iterator[Finding]:
    """Check that a pod of a template fits on a node of the instance type (GPUs)."""
    name = known(model.instance, model.instance_path)
    instance = find_instance(name) if name and model.template is not None else None
    if instance is None or isinstance(instance, Unknown):
        return
    path = f"{model.template_path}.spec"
    spec = inside(model.template, "spec")
    require_known(path, model.template, spec)
    asked = known(requests_in(mapping(spec)), path)
    number = max((int(asked.get(resource, 0)) for resource in _GPUS), default=0)
    if number > instance.gpus:
        yield Finding(
            path=model.instance_path,
            seen=f"is {display(name)}, which has {count_of(instance.gpus, 'GPU')}, but each pod of "
            f"{model.template_path} requests {number}, so it fits on no node that KAITO creates",
            remedy=f"choose an instance type with {count_of(number, 'GPU')}, or request "
            f"{instance.gpus} at most",
        )


_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def _one_node(sized: Sized) -> Iterator[Finding]:
    """Check that a model fits one node (GiB), over which transformers does not spread it."""
    total = sized.instance.total_gib
    if sized.files > total:
        yield Finding(
            path=sized.model.node_path,
            seen=f"is {_node(sized)}, which have {total:g} GiB, but the files of "
            f"{sized.model.preset} are {sized.files:g} GiB, and the transformers runtime does not "
            "spread a model over nodes",
            remedy=f"choose an instance type of {sized.files:g} GiB or more, or the runtime vllm",
        )


@part_of_rule
def _nodes(sized: Sized, view: View) -> Iterator[Finding]:
    """Check the nodes of a preset: memory for weights, their number, limit and context."""
    gpus, model = sized.gpus, sized.model
    if isinstance(gpus, TooSmall):
        yield Finding(
            path=model.node_path,
            seen=f"is {_node(sized)}, of each of which vLLM may use {gpus.available:.1f} GiB, but "
            f"{gpus.needed:.1f} GiB are used before any weights of {model.preset}",
            remedy=f"{_choose(sized)} with more memory for each GPU{_shorter(sized)}",
        )
        return
    deployment = sized.deployment
    if deployment is None:
        return
    if not (refusal := [*_too_many_nodes(sized, deployment, view)]):
        yield from _count(sized, deployment)
    yield from refusal
    yield from _limit(deployment, view)
    require_known(model.config_path, sized.tokens)
    yield from _left(sized, deployment)


def _too_many_nodes(sized: Sized, deployment: Deployment, view: View) -> Iterator[Finding]:
    """Report more nodes than the release of KAITO creates for one replica."""
    release = known_version(view.object.context.versions.get("kaito") or "", "kaito")
    if release in _MOST_NODES and deployment.nodes > _MOST_NODES[release]:
        most = _MOST_NODES[release]
        yield Finding(
            path=sized.model.node_path,
            seen=f"is {_node(sized)}, and KAITO counts {count_of(deployment.nodes, 'node')} for "
            f"{sized.model.preset}{_requests(sized)}, but KAITO {release} creates none if a "
            f"replica needs more than {most}",
            remedy=f"{_choose(sized)} with more GPU memory{_shorter(sized)}, or update KAITO",
        )


@part_of_rule
def _count(sized: Sized, deployment: Deployment) -> Iterator[Finding]:
    """Compare resource.count with the nodes that KAITO counts for the model."""
    stated, nodes, at = sized.model.count, deployment.nodes, f"{sized.model.resource_path}.count"
    stated = known(stated, at)
    if stated is None or stated == nodes:
        return
    least = "at least " if isinstance(sized.tokens, Unknown) else ""
    made = "creates" if sized.model.instance else "needs"
    counts = (
        f"KAITO counts {least}{count_of(deployment.gpus, 'GPU')} for the {sized.files:g} GiB of "
        f"{sized.model.preset}{_requests(sized)}, and {made} {least}{count_of(nodes, 'node')} of "
        f"{_node(sized)}"
    )
    if stated < nodes:
        remedy = f"write {nodes}, or leave it out, or {_choose(sized)} with more GPU memory"
        yield Finding(path=at, seen=f"is {stated}, but {counts}", remedy=remedy)
    elif not least:
        yield Finding(
            path=at,
            seen=f"is {stated}, but {counts}, whatever count states",
            remedy=f"write {nodes} or leave it out; for more nodes state a longer max-model-len",
            level=Level.ADVISORY,
        )


def _limit(deployment: Deployment, view: View) -> Iterator[Finding]:
    """Compare nodeCountLimit with the nodes that all replicas need together."""
    limit, copies = (
        whole(view.object.spec.get("nodeCountLimit")),
        whole(view.object.spec.get("replicas")),
    )
    copies = 1 if copies is None else copies
    if isinstance(limit, int) and isinstance(copies, int) and 0 < limit < copies * deployment.nodes:
        yield Finding(
            path="spec.nodeCountLimit",
            seen=f"is {limit}, but {count_of(copies, 'replica')} of "
            f"{count_of(deployment.nodes, 'node')} each need {copies * deployment.nodes}",
            remedy=f"write {copies * deployment.nodes} or more",
            level=Level.ADVISORY,
        )


def _left(sized: Sized, deployment: Deployment) -> Iterator[Finding]:
    """Report if one request of maximum length would not fit, by our own estimate."""
    start = start_of(sized, deployment)
    placed = start if isinstance(start, Unknown) else _engine_on_gpu(sized, start)
    if isinstance(placed, Unknown):
        # Without a ConfigMap, the gap is in the table of models.
        if sized.model.config:
            yield not_checked(sized.model.config_path, placed)
    elif placed is not None and isinstance(start, Start):
        yield from _short(sized, start, placed)


def _engine_on_gpu(sized: Sized, start: Start) -> EngineOnGpu | Unknown | None:
    """Return the engine on its GPUs; None if there is nothing to compare.

    Ranks without GPUs, and a share that vLLM does not accept, are reported by kaito-config.
    """
    ranks, made = start.command.world, start.deployment.nodes * sized.instance.gpus
    if isinstance(ranks, int) and ranks > made:
        return None
    if any(finding.level is not Level.UNKNOWN for finding in memory_fraction_range(start.facts)):
        return None
    (_, placed), *_ = engines_on_gpu(start.facts)
    if isinstance(placed, Unknown) or placed.left is None:
        return placed if isinstance(placed, Unknown) else None
    return first_unknown(bytes_per_token(placed), start.command.max_model_len) or placed


def _short(sized: Sized, start: Start, placed: EngineOnGpu) -> Iterator[Finding]:
    """Report a KV cache that is too small for the longest request."""
    stated, each = start.command.max_model_len, bytes_per_token(placed)
    length = sized.shape.context if stated is None else stated
    if not (isinstance(length, int) and isinstance(each, int)):
        return
    weights = _EXPANSION * placed.fullest
    left = placed.budget - weights - overhead(sized.shape, weights)
    if left >= length * each / GIB:
        return
    tokens = max(int(left * GIB / each), 0) if each else 0
    holds = "nothing is left for the KV cache"
    if tokens:
        own = f"the model's {length}" if stated is None else f"the {length} that the ConfigMap "
        own += "" if stated is None else "states"
        holds = f"{left:.1f} GiB are left for the KV cache: enough for {tokens} tokens, and not "
        holds += f"for {own}"
    nodes = count_of(start.deployment.nodes, "node")
    yield Finding(
        path=sized.model.node_path,
        seen=f"makes KAITO start {shown(start.deployment)} on {nodes} of "
        f"{_node(sized)}: weights take about {weights:.1f} GiB of the fullest GPU, and {holds}",
        remedy=f"{_choose(sized)} with more memory for each GPU"
        f"{'' if stated is None else _SHORTER}",
        level=Level.ADVISORY,
    )


def _requests(sized: Sized) -> str:
    own = isinstance(sized.tokens, Unknown) or sized.tokens == CONTEXT
    return "" if own else f" and requests of {sized.tokens} tokens"


def _choose(sized: Sized) -> str:
    return "choose an instance type" if sized.model.instance else "select nodes"


def _shorter(sized: Sized) -> str:
    return _SHORTER if isinstance(sized.tokens, int) and sized.tokens > CONTEXT else ""


def _node(sized: Sized) -> str:
    instance = sized.instance
    return f"{count_of(instance.gpus, 'GPU')} of {instance.memory_gib:g} GiB"


_INSTANCE_TYPE = "kaito-instance-type"
_NAMED = 3
"""Instance types that a remedy names."""
_AZURE = ("standard_n", "standard_d")
"""Prefix of instance types that KAITO accepts on Azure without knowing them."""


def _with_release(view: View) -> Iterator[tuple[Model, str | None]]:
    """Yield each model with the release of KAITO; None if it is not known."""
    release = known_version(view.object.context.versions.get("kaito") or "", "kaito")
    yield from ((model, release) for model in view.models)


@each_of(_with_release)
def kaito_instance_type(model: Model, release: str | None) -> Iterator[Finding]:
    """KAITO knows the instance type; without a preset to size, any type of Azure is valid.

    Without an instance type, the nodes already exist, and nothing is checked. GPU partitions are
    only for such nodes. A name in angle brackets is a placeholder. Since 0.12, KAITO does not know
    GPUs of a compute capability below 8.0, such as T4 and V100.

    Pass: Standard_NC24ads_A100_v4; p5.48xlarge.
    Fail: Standard_NC24ads_A100_v5 for a preset; p5.49xlarge; g4dn.xlarge unless the release is
    0.11 or older.
    Level: mandatory; advisory for unknown types of Azure, which KAITO accepts.
    Source: kaito-project/kaito pkg/sku of v0.9.0 to v0.12.0 (kaito#2185);
    api/v1beta1/workspace_validation.go validateCreateWithInference.
    """
    name = known(model.instance, model.instance_path)
    if name and name.startswith("<"):
        gap = Unknown(f"{display(name)} is a placeholder for a name")
        raise NotKnownError(gap, model.instance_path)
    if name:
        yield from _check_by_name(model, name, release)


def _check_by_name(model: Model, name: str, release: str | None) -> Iterator[Finding]:
    """Check an instance type by its name; KAITO creates unknown ones of Azure without a count."""
    if model.resource.get("partition") is not None:
        seen = f"is {display(name)}, but a partition is for existing nodes"
        yield refuse(model.instance_path, seen, either(remove(), "the partition"), _INSTANCE_TYPE)
    if not isinstance(find_instance(name), Unknown):
        return
    azure, sized = name.casefold().startswith(_AZURE), model.preset and not model.tuned
    require_known(model.preset_path, model.preset if azure else None)
    if azure and (not sized or model.runtime == TRANSFORMERS):
        return
    level = Level.ADVISORY if azure else Level.MANDATORY
    last = last_with_instance(name)
    if last is not None:
        if not release or read_release(release) > read_release(last):
            yield _former(model, name, last, level, released=bool(release))
        return
    near = nearest(name, [instance.name for instance in known_instances()], alike=_TYPO)
    why = "so it cannot count the nodes of a preset" if azure else "and rejects"
    yield Finding(
        path=model.instance_path,
        seen=f"is {display(name)}, which KAITO does not know, {why}",
        remedy=write(near) if near else f"write an instance type that it knows, {_such_as(name)}",
        level=level,
    )


def _former(model: Model, name: str, last: str, level: Level, *, released: bool) -> Finding:
    """Report a type that KAITO has dropped; whether a release is stated decides the remedy."""
    newer = f"write an instance type with newer GPUs, {_such_as(name)}"
    stated = f"state your release with --release kaito={last}"
    return Finding(
        path=model.instance_path,
        seen=f"is {display(name)}, which KAITO knows only up to {last}",
        remedy=newer if released else either(newer, stated),
        level=level,
    )


def _such_as(name: str) -> str:
    """Name instance types as examples: the smallest with each GPU, in the cloud of a type."""
    cloud = "azure" if name.casefold().startswith(_AZURE) else "aws"
    smallest: dict[str, Instance] = {}
    for one in sorted(known_instances(), key=lambda one: (one.gpus, one.total_gib)):
        if one.cloud == cloud and one.gpu.startswith("NVIDIA "):
            smallest.setdefault(one.gpu, one)
    named = [f"{one.name} ({one.gpus} × {one.gpu})" for one in smallest.values()]
    return f"such as {listing(named[:_NAMED], 'or')}"
