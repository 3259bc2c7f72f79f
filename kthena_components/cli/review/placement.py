"""Says in a review whether the pods of a stack fit into a cluster, before and after the change."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from kthena_components.cli.review.escaping import cell_text
from kthena_components.cli.review.gpu_table import between, identity
from kthena_components.cli.review.preview import Preview
from kthena_components.core.findings import count_of

if TYPE_CHECKING:
    from kthena_components.placement.model import Cluster, Outcome

EXACT_SECONDS = 1.0
_HEADERS = ("group", "placement", "HyperNode", "why")
_MOST_ROWS = 40
_KUBERNETES = "kubernetes:"


def write_placement(preview: Preview, cluster: "Cluster") -> Iterator[str]:
    """Write the section of one stack: what changes, as a table and a picture.

    Args:
        preview: The stack's preview.
        cluster: What the cluster has, with or without what the stack deployed.
    """
    # Imported here, because most reviews have no inventory.
    from kthena_components.drawing.from_outcomes import picture_of  # noqa: PLC0415
    from kthena_components.drawing.mermaid import draw_mermaid  # noqa: PLC0415
    from kthena_components.placement.answer import answer, ask, shape  # noqa: PLC0415

    asked = [ask(cluster, _objects(preview, is_new=is_new)) for is_new in (False, True)]
    old, new = (answer(each, exact_seconds=EXACT_SECONDS) for each in asked)
    before = {outcome.group.title: outcome for outcome in old}
    changed = [
        outcome
        for outcome in new
        if (was := before.get(outcome.group.title)) is None
        or (was.verdict, shape(was.group)) != (outcome.verdict, shape(outcome.group))
    ]
    yield f"Placement on {_named(cluster)}: {_counted(new)}"
    rows = [_row(outcome, before.get(outcome.group.title)) for outcome in changed]
    if rows:
        more = [[f"{len(rows) - _MOST_ROWS} more", "", "", ""]] if len(rows) > _MOST_ROWS else []
        shown = [*rows[:_MOST_ROWS], *more]
        yield tabulate(shown, headers=_HEADERS, tablefmt="github", disable_numparse=True)
        titles = {outcome.group.title for outcome in changed}
        state = picture_of(asked[0].drawn, old, title="before")
        picture = picture_of(asked[1].drawn, new, changed=titles, before=state)
        yield from filter(None, [draw_mermaid(picture, most=20_000).strip()])
    yield from (f"Placement: {cell_text(note)}." for note in cluster.notes)


def _objects(preview: Preview, *, is_new: bool) -> list[Mapping[str, Any]]:
    """Return the objects of a stack before or after the update."""
    steps = [step for step in preview.steps.values() if step.type.startswith(_KUBERNETES)]
    found = ((step, step.new if is_new else step.old) for step in steps)
    return [{**body, **identity(step.type)} for step, body in found if body]


def _named(cluster: "Cluster") -> str:
    taken = "" if cluster.taken is None else f" (snapshot of {cluster.taken:%Y-%m-%d})"
    return f"{cell_text(cluster.source)}{taken}"


def _counted(outcomes: Sequence["Outcome"]) -> str:
    from kthena_components.cli.fit.output import summary  # noqa: PLC0415

    return summary(outcomes) if outcomes else f"{count_of(0, 'group')}."


def _row(outcome: "Outcome", was: "Outcome | None") -> list[str]:
    before = "new" if was is None else str(was.verdict)
    where = outcome.placement.domain if outcome.placement else None
    said = [outcome.note, *(obstacle.text for obstacle in outcome.obstacles)]
    said += [change.text for each in outcome.obstacles for change in each.changes[:1]][:1]
    gap = outcome.group.unknown
    why = gap.because if gap else ". ".join(filter(None, said))
    return [
        cell_text(outcome.group.title),
        between(before, str(outcome.verdict)),
        cell_text(str(where)) if where else "",
        cell_text(why),
    ]
