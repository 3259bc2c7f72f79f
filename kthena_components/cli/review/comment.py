"""Writes the comment on a pull request, as Markdown.

Of a resource it shows only the name, the counts, the names of changed fields, the tags of its
images and the findings.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tabulate import tabulate

from kthena_components.cli.check.reports import cell_text
from kthena_components.cli.review.planned_changes import (
    Effect,
    PlannedChange,
    changed_tags,
    natural,
    planned_changes,
    shown_paths,
)
from kthena_components.cli.review.post_comment import MARK, fitting
from kthena_components.cli.review.preview import PreviewFinding, Weight, title_of
from kthena_components.cli.review.stack import (
    ARROW,
    Gpus,
    Pair,
    Reviewed,
    Row,
    between,
    deployed,
    gpus_of,
)
from kthena_components.core.findings import count_of
from kthena_components.core.values.regex import regex

__all__ = ["MARK", "MOST_CHARACTERS", "write_check", "write_comment"]
MOST_CHARACTERS = 60_000
"""GitHub accepts 65,536 characters in a comment, GitLab more."""
_MOST_LINES = 20
_MOST_NAMES = 6
_MOST_TAGS = 3
_MOST_REASONS = 5
_HEADERS = (
    "serving", "role", "groups", "engines", "pods", "GPUs/pod", "TP × PP × DP", "world", "GPUs",
    "backend",
)  # fmt: skip
_TITLES = {
    Weight.MANDATORY: "Mandatory",
    Weight.ADVISORY: "Advisory",
    Weight.WAIVED: "Waived",
    Weight.UNKNOWN: "Not checked",
}
Log = Callable[[str], object]
_RULE = regex(r"[a-z][a-z0-9-]*")
_LOG = "see the log of this job"


def write_comment(
    stacks: Sequence[Reviewed],
    notes: Sequence[str] = (),
    *,
    first: Sequence[tuple[str, str]] = (),
    said: Sequence[PreviewFinding] = (),
    log: Log = lambda _: None,
) -> str:
    """Write the whole comment, and shorten it if it is too long for the host.

    Args:
        stacks: The stacks that were checked.
        notes: Extra lines below the summary.
        first: Lines above the heading: a string in bold, and the text after it.
        said: Findings that do not belong to one stack.
        log: Gets the findings that are not shown, and the whole text if it is shortened.
    """
    head = [f"**{words}** {cell_text(why)}" for words, why in first] + [
        "## Servings in this change",
        _summary(stacks, first, said),
        *map(cell_text, notes),
    ]
    head += _of_the_branch(said, log)
    text = "\n\n".join([*head, *(_section(stack, log) for stack in stacks)])
    if len(text) > MOST_CHARACTERS:
        log(f"{text}\n")
    return f"{fitting(text, MOST_CHARACTERS, 'the log of this job')}\n\n{MARK}\n"


def write_check(
    first: Sequence[tuple[str, str]], said: Sequence[PreviewFinding], log: Log = lambda _: None
) -> str:
    """Write the result for a branch that was not previewed. The log gets what is shortened."""
    parts = [f"**{words}** {cell_text(why)}" for words, why in first] + _of_the_branch(said, log)
    nothing = "The branch does not change its own checks or any code."
    return "\n\n".join([*(parts or [nothing]), MARK]) + "\n"


def _of_the_branch(said: Sequence[PreviewFinding], log: Log) -> list[str]:
    refused = sum(item.weight is Weight.MANDATORY for item in said)
    message = f"**fails**, {count_of(refused, 'mandatory finding')}" if refused else "**approved**"
    return [f"### Weaker checks: {message}", *_by_weight(said, {}, log)] if said else []


def _summary(
    stacks: Sequence[Reviewed], first: Sequence[object], said: Sequence[PreviewFinding]
) -> str:
    """Write the first line of the comment: stacks, findings, and GPUs before and after."""
    weaker = sum(item.weight is Weight.MANDATORY for item in said)
    if not stacks:
        return "No stack was previewed." if first else "This change affects no stack."
    total = Gpus(before=0, after=0, not_known=0)
    for stack in stacks:
        total += stack.gpus
    counted = {
        "failed": sum(stack.mandatory > 0 for stack in stacks),
        "not checked": sum(stack.is_broken and not stack.mandatory for stack in stacks),
        "weaker checks": weaker,
    }
    bad = [f"{number} {word}" for word, number in counted.items() if number]
    message = f"**{', '.join(bad)}**" if bad else "**no mandatory findings**"
    known = "" if any(stack.is_stopped for stack in stacks) else f" GPUs: {total}."
    return f"{count_of(len(stacks), 'stack')} affected: {message}.{known}"


def _section(stack: Reviewed, log: Log) -> str:
    parts = [f"### Stack {cell_text(stack.preview.stack)}: {stack.verdict}"]
    parts += list(_trouble(stack))
    parts += [*_shapes(stack), *stack.placement]
    if not stack.is_stopped or stack.pairs:
        parts += list(_effects(planned_changes(stack.preview.steps.values())))
    parts += list(_findings(stack, log))
    return "\n\n".join(parts)


def _trouble(stack: Reviewed) -> Iterator[str]:
    """Say why a preview failed or did not finish."""
    if stack.preview.errors:
        yield f"The preview failed with {count_of(stack.preview.errors, 'error')}: {_LOG}."
        reasons = [*dict.fromkeys(filter(None, stack.preview.reasons))][:_MOST_REASONS]
        if reasons:
            yield _listed([f"- {cell_text(reason)}." for reason in reasons])
    elif not stack.preview.ended:
        yield f"The preview did not finish: {_LOG}."
    elif stack.is_broken:
        yield f"The preview failed without a finding: {_LOG}."


def _shapes(stack: Reviewed) -> Iterator[str]:
    """Write the table of sizes that change; a table without changes is folded."""
    if stack.is_stopped and not stack.pairs:
        yield from _before(stack)
        return
    if stack.is_stopped:
        yield _stopped(stack)
    if not stack.pairs:
        yield "This stack has no servings."
        return
    changed = [pair for pair in stack.pairs if pair.is_changed or not pair.is_registered]
    same = len(stack.pairs) - len(changed)
    if changed:
        yield _table(changed, stack.gpus, same)
        yield f"GPUs: **{stack.gpus}**"
    else:
        yield f"No sizes change: {count_of(same, 'role')}, {count_of(stack.gpus, 'GPU')}."
        table = _table(stack.pairs, stack.gpus)
        yield f"<details><summary>Sizes</summary>\n\n{table}\n\n</details>"


def _stopped(stack: Reviewed) -> str:
    """Write a note about what the list and the total leave out."""
    message = "The program stopped early, so the list of changes is incomplete."
    if stack.preview.deployed:
        missing = any(not pair.is_registered for pair in stack.pairs)
        return (
            f"{message} Servings that it did not register count as deployed."
            if missing
            else message
        )
    return f"{message} The GPUs are those of the servings that it registered."


def _before(stack: Reviewed) -> Iterator[str]:
    pairs = deployed(stack.preview)
    message = "The program stopped before it registered a serving, so the new sizes are unknown."
    if all(pair.before is None for pair in pairs):
        yield f"{message} The deployed sizes are unknown, too."
        return
    yield f"{message} Currently deployed:"
    yield _table(pairs, gpus_of(pairs))


def _table(pairs: Sequence[Pair], gpus: Gpus, same: int = 0) -> str:
    """Write the rows of roles before and after, with a row for unchanged ones and the total."""
    cells = [
        [
            _subject(pair), cell_text(pair.cell("role")), pair.cell("groups"),
            pair.cell("engines"), pair.cell("pods"), pair.cell("gpus_per_pod"), pair.sizes,
            pair.cell("world_size"), _gpus_of_role(pair), cell_text(pair.cell("backend")),
        ]
        for pair in pairs
    ]  # fmt: skip
    if same:
        cells.append([f"{count_of(same, 'role')} unchanged", *[""] * 9])
    total = between(str(gpus.before), str(gpus.after))
    cells.append(["total", *[""] * 7, total, ""])
    return tabulate(cells, headers=_HEADERS, tablefmt="github", disable_numparse=True)


def _subject(pair: Pair) -> str:
    """Name a serving, and say whether it is new, removed, refused or as deployed."""
    row: Row = pair.after or pair.before or {}
    is_new = pair.before is None
    where = row.get("namespace") if not (pair.is_refused and is_new) else None
    name = cell_text(f"{where}/{row.get('serving')}" if where else str(row.get("serving")))
    if pair.is_refused:
        return f"{name} (refused, {'new' if is_new else 'as deployed'})"
    if not pair.is_registered:
        return f"{name} (as deployed)"
    if is_new:
        return f"{name} (new)"
    return f"{name} (removed)" if pair.after is None else name


def _gpus_of_role(pair: Pair) -> str:
    """Write the GPUs of a role. A new role starts from 0, a removed one ends at 0."""
    if pair.before is None:
        return between("0", pair.cell("gpus"))
    return between(pair.cell("gpus"), "0") if pair.after is None else pair.cell("gpus")


def _effects(found: Sequence[PlannedChange]) -> Iterator[str]:
    """Write the planned changes by their effect; equal ones are counted together."""
    if not found:
        yield "No resources change."
        return
    lines: list[str] = []
    for effect in Effect:
        items = sorted(
            (item for item in found if item.effect is effect),
            key=lambda item: (item.step.kind, natural(item.step.name)),
        )
        grouped: dict[tuple[str, str], list[PlannedChange]] = {}
        for item in items:
            grouped.setdefault((item.step.kind, item.words), []).append(item)
        if effect in {Effect.CREATED, Effect.ADOPTED} and items:
            counts = (count_of(len(alike), cell_text(kind)) for (kind, _), alike in grouped.items())
            lines.append(f"- **{effect}** {', '.join(counts)}")
        else:
            lines += [_line(effect, kind, alike) for (kind, _), alike in grouped.items()]
    yield "Planned changes:"
    yield _listed(lines)


def _line(effect: Effect, kind: str, alike: Sequence[PlannedChange]) -> str:
    """Write a line about objects that change alike: their names, and the fields that change."""
    names = [cell_text(item.step.name) for item in alike[:_MOST_NAMES]]
    more = len(alike) - len(names)
    listed = ", ".join(names) + (f" and {more} more" if more else "")
    what = cell_text(kind) if len(alike) == 1 else f"{cell_text(kind)}s"
    words = f": {alike[0].words}" if alike[0].words else ""
    fields = shown_paths(path for item in alike for path in item.paths)
    shown = f" ({fields})" if fields else ""
    return f"- **{effect}** {what} {listed}{words}{shown}{_tags(alike)}"


def _tags(alike: Sequence[PlannedChange]) -> str:
    """Write the tags of images before and after, if there are few."""
    found = dict.fromkeys(tags for item in alike for tags in changed_tags(item.step))
    if not 0 < len(found) <= _MOST_TAGS:
        return ""
    return f": image {', '.join(ARROW.join(map(cell_text, tags)) for tags in found)}"


def _findings(stack: Reviewed, log: Log) -> Iterator[str]:
    yield from _by_weight(stack.said, {Weight.UNKNOWN: list(_unseen(stack))}, log)


def _by_weight(
    said: Sequence[PreviewFinding], extra: Mapping[Weight, list[str]], log: Log
) -> Iterator[str]:
    """Write the findings by weight; those beyond the limit go to the log only."""
    for weight, title in _TITLES.items():
        items = [item for item in said if item.weight is weight]
        lines = [_finding(item) for item in items] + extra.get(weight, [])
        if lines:
            yield f"{title}:"
            yield _listed(lines)
            for line in lines[_MOST_LINES:]:
                log(f"{line}\n")


def _unseen(stack: Reviewed) -> Iterator[str]:
    """List what was not checked apart from findings."""
    if not stack.preview.packs and not stack.is_stopped:
        yield "- Policies: the preview ran without a policy pack, or does not report one"
    refused = sum(pair.is_refused and pair.before is None for pair in stack.pairs)
    missing = stack.gpus.not_known - refused
    if missing:
        yield f"- GPUs of {count_of(missing, 'role')}: known only after the update, or secret"


def _finding(item: PreviewFinding) -> str:
    """Write a finding in one line; a rule's name is only marked as one if it looks like one."""
    subject = title_of(item.urn) if item.urn else item.of
    of = f"{cell_text(subject)}: " if subject else ""
    text, _, rule = item.text.rpartition(" ")
    # A preview that is forged names any rule.
    plain = _RULE.fullmatch(item.rule) and cell_text(item.rule) == item.rule
    shown = f"[{item.rule}]" if plain else cell_text(f"[{item.rule}]")
    message = f"{cell_text(text if rule == f'[{item.rule}]' else item.text)} {shown}"
    more = f" (and {item.more} more)" if item.more else ""
    return f"- {of}{message}{more}"


def _listed(lines: Sequence[str]) -> str:
    shown = list(lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        shown.append(f"- {len(lines) - _MOST_LINES} more: {_LOG}")
    return "\n".join(shown)
