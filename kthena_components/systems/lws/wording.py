"""Shared findings of lws-shape: what the webhook rejects, in the same words."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, not_checked
from kthena_components.core.remedies import or_more, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import unknown_in, whole

SHAPE = "lws-shape"


def refusal(path: str, seen: str, remedy: str) -> Finding:
    """Report what the webhook rejects."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=SHAPE)


def at_least(path: str, value: object, lowest: int, why: str = "") -> Iterator[Finding]:
    """Check the minimum of a count that may be left out."""
    number = whole(value)
    if value is None:
        return
    if gap := unknown_in(value):
        yield not_checked(path, gap, SHAPE)
    elif not isinstance(number, int):
        yield refusal(
            path,
            f"is {display(value)}, but must be a whole number",
            write(lowest, f"write {lowest}"),
        )
    elif number < lowest:
        seen = f"is {display(number)}, but must be at least {lowest}{why}"
        yield refusal(path, seen, or_more(lowest))
