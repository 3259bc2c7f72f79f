"""What the compiler refuses, in its words."""

from typing import Any

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Finding, SpecError
from tests.support.contents import content_of
from tests.support.specs import Args, changed


def refusal_of(args: Args, changes: dict[str, Any]) -> str:
    """Return why a changed serving is refused, or an empty string."""
    try:
        compile_serving(changed(args, changes))
    except SpecError as refusal:
        return str(refusal)
    return ""


def assert_refused(args: Args, changes: dict[str, Any], message: str) -> None:
    """Check that the changes, and nothing else, are refused with these words."""
    assert refusal_of(args, {}) == ""
    assert message in refusal_of(args, changes)


_JUDGED: dict[bytes, tuple[bool, tuple[Finding, ...]]] = {}


def judged(args: Args) -> tuple[bool, tuple[Finding, ...]]:
    """Return whether a serving is refused, and the findings; computed once for equal arguments.

    Tests of remedies and of the table of arguments try the same servings, and a remedy leads to one
    that is tried anyway.
    """
    if (key := content_of(args)) not in _JUDGED:
        try:
            _JUDGED[key] = (False, tuple(compile_serving(args).findings))
        except SpecError as error:
            _JUDGED[key] = (True, tuple(error.findings))
    return _JUDGED[key]
