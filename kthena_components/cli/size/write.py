"""Writes a serving of one of the shapes of `size`."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kthena_components.cli.convert.output import (
    write_program,
    write_stack,
    write_typescript,
    write_yaml,
)
from kthena_components.cli.size.question import UsageError
from kthena_components.compiler.compile import compile_serving
from kthena_components.convert.conversion import Converted
from kthena_components.core.findings import suggest
from kthena_components.sizing import Answer, Question, Row, Shape
from kthena_components.systems import EMITTERS, find_emitter

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
