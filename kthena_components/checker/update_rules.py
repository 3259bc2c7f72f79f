"""Rules over two states of one object: before and after an update.

Only a preview knows both, so only the review of a pull request runs them. Those of a kind do not
apply to an object that is replaced.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.checker.gpu_named_larger import gpu_named_larger
from kthena_components.core.findings import Finding, check_by
from kthena_components.core.rules.support.admission import Change
from kthena_components.core.values.read import group_kind
from kthena_components.systems import find_kind

ANY_CHANGE = (gpu_named_larger,)
"""Rules about objects of all kinds, whether they are updated in place or replaced."""


def check_change(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str = "", *, replaced: bool = False
) -> list[Finding]:
    """Check an update of one object by every rule of its kind, and by those of all kinds.

    Args:
        before: The object as it was applied.
        after: The object as it would be applied. Values may be Unknown or late texts.
        path: Its path in the caller's input; a prefix of every path.
        replaced: Whether it is deleted and created again.
    """
    kind = group_kind(after)
    change = Change(before, after)
    known = find_kind(kind) if kind == group_kind(before) else None
    own = known.change_rules if known and not replaced else ()
    return check_by((*own, *(ANY_CHANGE if known else ())), change, path)
