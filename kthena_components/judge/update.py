"""Rules of two states of one object: what it is now, and what an update would make of it.

Only a preview knows both, so only the review of a pull request asks these. A replaced object is
made anew, and none of them is about that.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, judge_by
from kthena_components.core.rules.change import Change, _kind
from kthena_components.systems.kthena.changes import (
    MODEL_SERVING,
    gang_topology_only_change,
    kthena_gang_fixed,
)
from kthena_components.systems.lws.changes import LEADER_WORKER_SET, lws_lower_then_raise


def judge_change(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str = ""
) -> list[Finding]:
    """Judge an update of one object in place by every rule that applies to its kind.

    Args:
        before: The object as it was applied.
        after: The object as it would be applied. Values may be Unknown or late texts.
        path: Where the object stands in the caller's input; a prefix of every path.
    """
    kind = _kind(after)
    change = Change(before, after)
    rules = CHANGE_RULES.get(kind, ()) if kind == _kind(before) else ()
    return judge_by(rules, change, path)


CHANGE_RULES: Mapping[tuple[str, str], tuple[Callable[[Change], Iterator[Finding]], ...]] = {
    MODEL_SERVING: (gang_topology_only_change, kthena_gang_fixed),
    LEADER_WORKER_SET: (lws_lower_then_raise,),
}
"""The rules by API group and kind."""
