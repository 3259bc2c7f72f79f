"""Answers a question: compiles a serving of each shape, and reads its memory from the facts."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, SpecError, checked_by, count_of
from kthena_components.core.memory import GIB, cache_per_token_on_gpu
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu
from kthena_components.core.memory.estimate import (
    Estimate,
    Verdict,
    bytes_per_token,
    estimate_of,
    longest_request,
)
from kthena_components.core.memory.sharding import Sharding, fits
from kthena_components.core.plan.build import build_plan
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.rules.memory_weights_fraction_offload import (
    memory_one_sequence,
    memory_weights_fit,
)
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.rules.roles_pods_gang_expose import check_spec
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import Unknown
from kthena_components.sizing.question_and_shapes import (
    Question,
    Shape,
    copies_of_a_token,
    pod_counts,
    shapes_on,
)

_SENSIBLE = 8
"""An engine has at most this many times the GPUs of the smallest one: more engines serve more."""
MOST_NODES = 64
"""Where the search for the smallest engine ends if the stated nodes hold none."""
_ROUND = 1024
"""Lengths of requests that are offered are multiples of this many tokens."""
_FOR_IMAGE = "image-gpu-vendor"
"""The rule about the image, which the question may still lack."""
_RULES = (memory_weights_fit, memory_one_sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A shape that passes all rules. Sizes in GiB per GPU."""

    shape: Shape
    weights: float
    """Weights in the fullest stage."""
    cache: float
    """Memory for the KV cache."""
    tokens: int | None
    """Tokens that the cache of one engine holds. None: not known."""
    at_least: bool
    """Whether it holds more, since some layers do not store every token."""
    at_once: int | None
    """Requests of the asked length that one engine holds at once."""
    engines: int
    """Engines for all requests."""
    nodes: int
    """Nodes for all engines."""
    copies: int
    """GPUs of a tensor group that store the same part of a token."""
    doubt: Finding | None
    """Why it may be too small after all."""
    longest: int = 0
    """Tokens of the longest request that surely fits, if the row is in doubt. 0: none."""

    @property
    def gpus(self) -> int:
        """GPUs of all engines."""
        return self.engines * self.shape.gpus

    @property
    def requests(self) -> int | None:
        """Requests of the asked length that all engines hold at once."""
        return None if self.at_once is None else self.at_once * self.engines

    @property
    def sort_key(self) -> tuple[bool | int, ...]:
        """The order of rows: few GPUs, no doubt, short ways, and then many requests."""
        shape = self.shape
        ways = (shape.spans_pods, shape.decode_context > 1, shape.pipeline, shape.pods)
        return (self.gpus, self.doubt is not None, *ways, -(self.requests or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """A shape that a rule refuses, or that the nodes do not hold."""

    shape: Shape
    seen: str
    rule: str | None
    """The rule that refuses it. None: it needs more nodes, or something is not known."""
    longest: int = 0
    """Tokens of the longest request that it would hold for certain. 0: none, or not known."""
    wider: Row | None = None
    """What more nodes would hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All shapes, the best first."""

    rows: tuple[Row, ...]
    impossible: tuple[Impossible, ...]
    smallest: Row | None = None
    """The smallest engine on more nodes, if there is no row."""
    not_checked: str = ""
    """Why memory cannot be estimated. Empty: it can."""

    @property
    def recommended(self) -> Row | None:
        """The first row whose memory is not in doubt, or else the first one."""
        sure = (row for row in self.rows if row.doubt is None)
        return next(sure, self.rows[0] if self.rows else None)


def find_shapes(question: Question) -> Answer:
    """Answer a question.

    Raises:
        SpecError: No engine can be written for it, whatever its shape: the image, the options or
            the model are wrong.
    """
    base = _with_gpu_and_model(question, facts_from_plan(_plan_on_one_gpu(question)))
    placed = _engine_on_gpu(base)
    if isinstance(placed, Unknown):
        return Answer(rows=(), impossible=(), not_checked=placed.because)
    found = _search(question, base, question.nodes)
    rows = sorted((one for one in found if isinstance(one, Row)), key=lambda row: row.sort_key)
    impossible = tuple(one for one in found if isinstance(one, Impossible))
    smallest = None if rows else _smallest(question, base, impossible)
    return Answer(rows=tuple(rows), impossible=impossible, smallest=smallest)


def _smallest(
    question: Question, base: ServingFacts, impossible: tuple[Impossible, ...]
) -> Row | None:
    """Return the smallest engine that would do on more nodes of the same kind, or the engines."""
    copies = [one.wider for one in impossible if one.wider is not None]
    if copies:
        return min(copies, key=lambda row: row.sort_key)
    wide = replace(question, nodes=MOST_NODES)
    for pods in pod_counts(MOST_NODES):
        all_gpus = pods * question.gpus_per_node * question.gpu.memory_gib
        if pods <= question.nodes or all_gpus < question.loaded_gib:
            continue  # They were tried before, or they do not even hold the weights.
        found = [one for one in _on_pods(wide, base, pods) if isinstance(one, Row)]
        if found:
            return min(found, key=lambda row: row.sort_key)
    return None


def _search(question: Question, base: ServingFacts, nodes: int) -> list[Row | Impossible]:
    found: list[Row | Impossible] = []
    for pods in pod_counts(nodes):
        least = min((one.shape.gpus for one in found if isinstance(one, Row)), default=None)
        if least is not None and pods * question.gpus_per_node > least * _SENSIBLE:
            break
        found += _on_pods(question, base, pods)
    return found


def _on_pods(question: Question, base: ServingFacts, pods: int) -> Iterator[Row | Impossible]:
    """Look at the shapes on a number of pods.

    Whole experts need the same memory as slices of them, so they are a row of their own only where
    slices are refused, and where they serve copies of the other layers.
    """
    taken: set[tuple[int, int, int]] = set()
    shapes = shapes_on(
        pods,
        question.gpus_per_node,
        question.model,
        partial(_divides, base),
        has_data=question.engine == "vllm",
        has_decode=question.decode_flag is not None,
    )
    for shape in shapes:
        sizes = (shape.gpus_per_pod, shape.tensor, shape.pipeline)
        if shape.expert and shape.data == shape.decode_context == 1 and sizes in taken:
            continue
        one = _look(question, base, shape)
        if isinstance(one, Row):
            taken.add(sizes)
        yield one


def _divides(base: ServingFacts, tensor: int) -> bool:
    engine = base.engines[0]
    command, shape = engine.entry.command, engine.entry.shape
    if command is None or shape is None or isinstance(shape, Unknown):
        return True
    return fits(Sharding(engine, command, shape).at(tensor))


def _look(question: Question, base: ServingFacts, shape: Shape) -> Row | Impossible:
    """Check the memory first, without a compilation: most shapes that are refused need more."""
    facts = _resized(base, shape)
    found, placed = _too_small(facts), _engine_on_gpu(facts)
    too_little = isinstance(placed, EngineOnGpu) and _takes_shorter_ones(placed)
    sure = next((each for each in found if too_little or each.most is Level.MANDATORY), None)
    if isinstance(placed, Unknown):
        return Impossible(shape=shape, seen=placed.because, rule=None)
    if sure is None and _cache(placed) <= 0 and found:
        sure = found[0]
    if sure is not None:
        return replace(_impossible(shape, sure), longest=_longest(placed))
    if (wrong := _refused(question, shape)) is not None:
        return _impossible(shape, wrong)
    return _within(question, _measured(question, shape, placed, next(iter(found), None)))


def _refused(question: Question, shape: Shape) -> Finding | None:
    """Return why a serving of this shape is refused, except for an image that is not yet named."""
    try:
        compile_serving(question.args(shape))
    except SpecError as error:
        named = not question.lacks_image
        return next((each for each in error.findings if named or each.rule != _FOR_IMAGE), None)
    return None


def _cache(placed: EngineOnGpu) -> float:
    """Return GiB of cache on a GPU; if none is left, the cache without the terms in doubt."""
    left, estimate = placed.left or 0.0, estimate_of(placed)
    return left if left > 0 or isinstance(estimate, Unknown) else left + estimate.doubt


def _longest(placed: EngineOnGpu) -> int:
    """Return the tokens of the longest request that an engine holds for certain."""
    estimate = estimate_of(placed)
    if isinstance(estimate, Unknown) or placed.weights > placed.budget:
        return 0
    return estimate.longest // _ROUND * _ROUND


def _takes_shorter_ones(placed: EngineOnGpu) -> bool:
    """Return whether an engine starts, but its cache does not hold the requests that are asked."""
    estimate = estimate_of(placed)
    return isinstance(estimate, Estimate) and estimate.verdict is Verdict.SHORTER


def _plan_on_one_gpu(question: Question) -> ServingPlan:
    """Plan an engine on one GPU, however large the model is."""
    spec = parse_spec(ModelServingSpec, question.args(Shape()))
    wrong = [finding for finding in check_spec(spec) if finding.level is Level.MANDATORY]
    if wrong:
        raise SpecError(wrong)
    return build_plan(spec)


def _with_gpu_and_model(question: Question, facts: ServingFacts) -> ServingFacts:
    """Return facts with the GPU and the model of the question."""
    (engine,) = facts.engines
    entry = replace(engine.entry, gpu=question.gpu, shape=question.model)
    return replace(facts, engines=(replace(engine, entry=entry),))


def _resized(base: ServingFacts, shape: Shape) -> ServingFacts:
    """Return the facts of an engine with other sizes, as far as its memory depends on them.

    A test compares them with the facts of a compilation.
    """
    (engine,) = base.engines
    if engine.entry.command is None:
        return base
    command = replace(
        engine.entry.command,
        tensor=shape.tensor,
        pipeline=shape.pipeline,
        data=shape.data,
        decode_context=shape.decode_context,
        expert=shape.expert,
    )
    entry = replace(engine.entry, command=command)
    return replace(base, engines=(replace(engine, entry=entry),))


def _engine_on_gpu(facts: ServingFacts) -> EngineOnGpu | Unknown:
    found = [placed for _, placed in engines_on_gpu(facts)]
    return found[0] if found else Unknown("its command line names no model")


def _too_small(facts: ServingFacts) -> list[Finding]:
    return [each for each in checked_by(_RULES, facts) if each.level is not Level.UNKNOWN]


def _impossible(shape: Shape, finding: Finding) -> Impossible:
    return Impossible(shape=shape, seen=finding.seen, rule=finding.rule)


def _measured(question: Question, shape: Shape, placed: EngineOnGpu, doubt: Finding | None) -> Row:
    """Measure a shape: GiB of weights and cache, tokens, and requests at once."""
    cache, each, length = (
        max(_cache(placed), 0.0),
        _bytes_of_a_token(placed),
        longest_request(placed),
    )
    tokens = int(cache * GIB / each) if each else None
    at_once = None
    if tokens is not None and isinstance(length, int) and length:
        at_once = max(tokens // length, 1) * shape.data
    engines = 1 if at_once is None else -(-(question.requests or 1) // at_once)
    return Row(
        shape=shape,
        weights=placed.loaded,
        cache=cache,
        tokens=None if tokens is None else tokens * shape.data,
        at_least=not placed.shape.full_cache,
        at_once=at_once,
        engines=engines,
        nodes=_nodes(shape, engines, question.gpus_per_node),
        copies=copies_of_a_token(question.model, shape.tensor) // shape.decode_context,
        doubt=doubt,
        longest=0 if doubt is None else _longest(placed),
    )


def _bytes_of_a_token(placed: EngineOnGpu) -> int | None:
    """Return the bytes of a token on a GPU, as if every layer stored it."""
    if not placed.shape.full_cache:
        return cache_per_token_on_gpu(placed.shape, placed.split)
    each = bytes_per_token(placed)
    return None if isinstance(each, Unknown) else each


def _nodes(shape: Shape, engines: int, gpus_per_node: int) -> int:
    """Count the nodes for some engines; several that have one pod each may share a node."""
    if shape.pods > 1:
        return engines * shape.pods
    return -(-engines // (gpus_per_node // shape.gpus_per_pod))


def _within(question: Question, row: Row) -> Row | Impossible:
    """Return the row if the nodes hold all its engines."""
    if row.nodes <= question.nodes:
        return row
    seen = (
        f"{question.requests} requests at once need {count_of(row.engines, 'engine')} "
        f"of {row.at_once} each, "
    )
    seen += (
        f"{count_of(row.gpus, 'GPU')} on {count_of(row.nodes, 'node')}, and there are "
        f"{question.nodes}"
    )
    return Impossible(shape=row.shape, seen=seen, rule=None, wider=row)
