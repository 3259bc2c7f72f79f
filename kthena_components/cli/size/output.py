"""Writes the answer of `size` as a table or as JSON, and a serving of one of its shapes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from math import ceil
from typing import Any

from tabulate import tabulate

from kthena_components.cli.convert.output import (
    write_program,
    write_stack,
    write_typescript,
    write_yaml,
)
from kthena_components.cli.size.question import UsageError
from kthena_components.compiler.compile import compile_serving
from kthena_components.convert.conversion import Converted
from kthena_components.core.engines.option_table import release_for
from kthena_components.core.engines.options import Release
from kthena_components.core.findings import count_of, suggest
from kthena_components.core.values.display import visible_lines
from kthena_components.core.values.images import read_image
from kthena_components.sizing import Answer, Impossible, Question, Row, Shape
from kthena_components.sizing.answer import MOST_NODES
from kthena_components.sizing.question_and_shapes import newest_image
from kthena_components.systems import EMITTERS, find_emitter

_HOURS = 24
_EVEN = 1.005
"""Weights on all GPUs, over the weights of the model, up to which none counts as a copy."""
_NAMED = 6
"""Shapes that do not fit in the text at most; JSON has all."""
_Column = tuple[str, Callable[[Row], object]]


def as_text(question: Question, answer: Answer) -> str:
    """Write the table, the recommendation, and what does not fit."""
    parts = (_title(question), _table(question, answer), _advice(question, answer))
    text = "\n\n".join(filter(None, (*parts, _refused(answer.impossible))))
    return f"{visible_lines(text)}\n"


def _title(question: Question) -> str:
    """Write the heading: the model's weights in GiB, the GPUs, and the release that is assumed."""
    model, gpu = question.model, question.gpu
    dtype = f", {model.dtype}" if model.dtype else ""
    length = question.context or model.context
    requests = f", requests of {length:,} tokens" if length else ""
    release = release_for(question.engine, read_image(question.image))
    named = question.image != newest_image(question.engine, question.resource)
    unsure = f"\n{_unsure(question, release)}" if release.because and named else ""
    unsure += f"\n{question.lacks_image}." if question.lacks_image else ""
    return (
        f"{model.name}: {question.loaded_gib:.1f} GiB of weights{dtype}{_for_drafts(question)}\n"
        f"{release.title} on "
        f"{question.nodes} × {question.gpus_per_node} {gpu.name} of {gpu.memory_gib:.1f} GiB"
        f"{requests}{unsure}"
    )


def _for_drafts(question: Question) -> str:
    """Name the weights that the checkpoint has beyond those that are loaded."""
    draft = (question.model.weights_gib or 0.0) - question.loaded_gib
    return f"; {draft:.1f} GiB more for drafts (MTP) are not loaded" if draft else ""


def _unsure(question: Question, release: Release) -> str:
    """Say why another release may be in the image, and what a tag with a known one looks like."""
    known = newest_image(question.engine, question.resource)
    return (
        f"Computed for {release.title}, because {release.because}. A tag with a known release: "
        f"{known}"
    )


def _table(question: Question, answer: Answer) -> str:
    """Write the table of shapes; a star marks the recommended one."""
    if not answer.rows:
        return ""
    columns = list(_columns(question, answer))
    rows = [
        ["*" if row is answer.recommended else "", *(read(row) for _, read in columns)]
        for row in answer.rows
    ]
    headers = ["", *(name for name, _ in columns)]
    return tabulate(rows, headers, "simple", disable_numparse=True)


def _columns(question: Question, answer: Answer) -> list[_Column]:
    """Return the columns of the table; those that would say nothing are left out."""
    shapes = [row.shape for row in answer.rows]
    columns: list[_Column] = [("TP × PP × DP", lambda row: row.shape.sizes)]
    if any(shape.expert for shape in shapes):
        columns.append(("EP", lambda row: row.shape.expert_ranks or "-"))
    if any(shape.decode_context > 1 for shape in shapes):
        columns.append(("DCP", lambda row: row.shape.decode_context))
    columns.append(("pods × GPUs", lambda row: f"{row.shape.pods} × {row.shape.gpus_per_pod}"))
    columns += [
        ("weights", lambda row: f"{row.weights:.1f}"),
        ("cache", lambda row: f"{row.cache:.1f}"),
        ("tokens", _tokens),
        ("at once", lambda row: "?" if row.at_once is None else row.at_once),
        ("limited by", _limit),
    ]
    if question.requests is not None:
        columns.append(("engines", lambda row: row.engines))
    columns += [("GPUs", lambda row: row.gpus), ("GPU-h/day", lambda row: row.gpus * _HOURS)]
    if (price := question.price) is not None:
        columns.append(("cost/day", lambda row: f"{row.gpus * _HOURS * price:,.2f}"))
    return columns


def _tokens(row: Row) -> str:
    if row.tokens is None:
        return "?"
    return f"{'≥ ' if row.at_least else ''}{row.tokens:,}"


def _limit(row: Row) -> str:
    """Say in few words what limits the requests of an engine."""
    if row.doubt is not None:
        return "memory: tight"
    if row.copies > 1:
        return f"{count_of(row.copies, 'copy')} of each token"
    return "weights" if row.weights > row.cache else "cache"


def _advice(question: Question, answer: Answer) -> str:
    row = answer.recommended
    if row is not None:
        note = f"{_of_one_gpu(question, answer)}. Throughput and latency are not estimated."
        note += _shorter(answer, row)
        if row.doubt is not None:
            doubt = "Its memory is tight: it may not start."
            return f"* try this first: {_reason(answer, row)}. {doubt}\n{note}"
        return f"* recommended: {_reason(answer, row)}.\n{note}"
    if answer.not_checked:
        return f"The memory is not estimated, because {answer.not_checked}."
    return " ".join(("No shape fits.", *(_ways(question, answer) or _needs(question))))


def _shorter(answer: Answer, row: Row) -> str:
    """Name the smallest engine that surely holds shorter requests, if it is worth a look.

    It has fewer GPUs than the first row, or as many if the first row is in doubt.
    """
    most = row.gpus - (row.doubt is None)
    every: list[Row | Impossible] = [*answer.impossible, *answer.rows]
    shorter = [one for one in every if one.shape.gpus <= most and one.longest]
    one = min(shorter, key=lambda one: (one.shape.gpus, -one.longest), default=None)
    if one is None:
        return ""
    return (
        f"\nFor shorter requests, {one.shape.title} is enough: --context {one.longest} surely fits."
    )


def _of_one_gpu(question: Question, answer: Answer) -> str:
    """Explain the columns weights and cache: several GPUs may have the same weights."""
    loaded = question.loaded_gib
    if all(row.weights * row.shape.gpus <= _EVEN * loaded for row in answer.rows):
        return "Weights and cache are GiB on one GPU"
    return "Weights and cache are GiB on the fullest GPU; some weights are copied to several GPUs"


def _needs(question: Question) -> list[str]:
    """Say how many GPUs the weights fill, if no shape fits on any number of nodes that is tried."""
    gpus = ceil(question.loaded_gib / question.gpu.memory_gib)
    nodes = f"{MOST_NODES} nodes of {count_of(question.gpus_per_node, 'GPU')}"
    filled = f"The weights alone fill {gpus} × {question.gpu.name}."
    return [f"None fits on up to {nodes} either, the most that are tried. {filled}"]


def _ways(question: Question, answer: Answer) -> list[str]:
    """Say what would fit: more nodes, or shorter requests on these."""
    ways = []
    if (least := answer.smallest) is not None:
        engines = f"{count_of(least.engines, 'engine')} of " if least.engines > 1 else ""
        ways.append(
            f"The smallest that would: {engines}TP × PP × DP {least.shape.title}, "
            f"{count_of(least.gpus, 'GPU')}, with {least.weights:.1f} GiB of weights and "
            f"{least.cache:.1f} GiB of cache on each: --nodes "
            f"{least.nodes}x{question.gpus_per_node}."
        )
    longest = max(answer.impossible, key=lambda one: one.longest, default=None)
    if longest is not None and longest.longest:
        ways.append(f"Shorter requests fit on {longest.shape.title}: --context {longest.longest}.")
    return ways


def _reason(answer: Answer, row: Row) -> str:
    """Say why the first row is recommended."""
    shape, alike = row.shape, [one for one in answer.rows if one.gpus == row.gpus]
    passed = answer.rows[0].doubt is not None and row.doubt is None
    reasons = [f"the fewest GPUs{' whose memory is not tight' if passed else ''}"]
    if shape.tensor > 1:
        place = "spans nodes" if shape.spans_pods else "stays inside one node"
        reasons.append(f"tensor {shape.tensor} {place}")
    if len(alike) > 1 and row.requests == max(one.requests or 0 for one in alike):
        reasons.append("the most requests at once")
    return ", ".join(reasons)


def _refused(impossible: tuple[Impossible, ...]) -> str:
    """List what does not fit: of shapes with as many GPUs, the first that a rule refuses."""
    first: dict[tuple[int, str | None], Impossible] = {}
    for one in impossible:
        first.setdefault((one.shape.gpus, one.rule), one)
    shown = list(first.values())[:_NAMED]
    if not shown:
        return ""
    lines = [
        f"  {one.shape.title}: {one.seen}{f' [{one.rule}]' if one.rule else ''}" for one in shown
    ]
    left = len(impossible) - len(shown)
    more = [f"  and {count_of(left, 'other')}: -o json lists all"] if left else []
    return "\n".join(["These do not fit:", *lines, *more])


def as_json(question: Question, answer: Answer) -> dict[str, Any]:
    """Return everything that was found."""
    release = release_for(question.engine, read_image(question.image))
    return {
        "model": question.model.name,
        "weights_gib": question.model.weights_gib,
        "loaded_gib": round(question.loaded_gib, 2),
        "gpu": question.gpu.name,
        "gpu_gib": question.gpu.memory_gib,
        "nodes": question.nodes,
        "gpus_per_node": question.gpus_per_node,
        "engine": question.engine.value,
        "image": question.image,
        "release": release.text,
        "release_not_known": release.because or None,
        "context": question.context or question.model.context,
        "shapes": [_row_json(question, answer, row) for row in answer.rows],
        "smallest": answer.smallest and _row_json(question, answer, answer.smallest),
        "impossible": [
            {
                **asdict(one.shape),
                "seen": one.seen,
                "rule": one.rule,
                "longest": one.longest or None,
            }
            for one in answer.impossible
        ],
    }


def _row_json(question: Question, answer: Answer, row: Row) -> dict[str, Any]:
    """Write a shape as JSON; cost is in the currency of --price, for a day."""
    cost = {} if question.price is None else {"cost_per_day": row.gpus * _HOURS * question.price}
    return {
        **asdict(row.shape),
        "weights_gib": round(row.weights, 2),
        "cache_gib": round(row.cache, 2),
        "longest": row.longest or None,
        "tokens": row.tokens,
        "more_tokens": row.at_least,
        "requests_at_once": row.at_once,
        "limited_by": _limit(row),
        "engines": row.engines,
        "gpus": row.gpus,
        "gpu_hours_per_day": row.gpus * _HOURS,
        **cost,
        "recommended": row is answer.recommended,
        "doubt": None if row.doubt is None else row.doubt.seen,
    }


_PROGRAMS: Mapping[str, Callable[..., str]] = {
    "python": write_program,
    "typescript": write_typescript,
    "stack": write_stack,
}
_TARGETS = (*EMITTERS, *_PROGRAMS)
_GPU = "roles[].resources.gpu"


def write_serving(
    question: Question, answer: Answer, target: str, sizes: str | None, origin: str
) -> str:
    """Write the objects of a backend, a program or a stack file.

    Args:
        question: What was asked.
        answer: Its answer, with at least one row.
        target: A backend, or the kind of program.
        sizes: Tensor x pipeline x data of a row. None: the recommended one.
        origin: What made it, for a comment.

    Raises:
        UsageError: There is no such target or shape.
        SpecError: The backend does not take the shape.
    """
    if target not in _TARGETS:
        raise UsageError(f"--write {target}: there is no such target; {suggest(target, _TARGETS)}")
    if question.lacks_image:
        raise UsageError(f"--write {target}: {question.lacks_image}")
    row = chosen(answer, sizes)
    backend = target if target in EMITTERS else "native"
    emitter = find_emitter(backend)
    if emitter and any(limit.field == _GPU for limit in emitter.limits):
        question = replace(question, gpu_word="")
    args = question.args(row.shape, engines=row.engines, backend=backend)
    compiled = compile_serving(args, f"--write {target}")
    serving = Converted(
        source={}, backend=backend, args=args, compiled=compiled, losses=(), notes=()
    )
    return _PROGRAMS[target]([serving], origin) if target in _PROGRAMS else write_yaml([serving])


def chosen(answer: Answer, stated: str | None) -> Row:
    """Return the row with the stated name, or the only one with the stated sizes.

    Raises:
        UsageError: There is no such row, or there are several.
    """
    wanted = (stated or "").replace("×", "x").replace(" ", "").casefold()
    known = {_name(row.shape): row for row in reversed(answer.rows)}
    row = known.get(wanted) if stated else answer.recommended
    if row is not None:
        return row
    alike = [name for name in reversed(known) if name.partition(",")[0] == wanted]
    if len(alike) == 1:
        return known[alike[0]]
    if alike:
        raise UsageError(f"--shape {stated}: several shapes have these sizes; "
                         f"write {' or '.join(alike)}")  # fmt: skip
    listed = " ".join(reversed(known))
    raise UsageError(f"--shape {stated}: no shape of these sizes fits; known: {listed}")


def _name(shape: Shape) -> str:
    """Name a shape: `16x1x1,ep,dcp=4` has whole experts on GPUs and a split cache."""
    more = [*(["ep"] if shape.expert else []),
            *([f"dcp={shape.decode_context}"] if shape.decode_context > 1 else [])]  # fmt: skip
    return ",".join([shape.sizes.replace(" × ", "x"), *more])
