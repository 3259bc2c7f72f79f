"""What the compiler refuses, in its words."""

from typing import Any

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
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
