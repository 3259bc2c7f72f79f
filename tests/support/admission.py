"""What the rules of one kind say of an object, without those over any serving."""

from collections.abc import Mapping

from kthena_components.checker.crd_schema import crd_schema, once_a_place
from kthena_components.core.facts.context import Context
from kthena_components.core.findings import Finding, once_each, run_rule, tidy
from kthena_components.core.objects.object import GroupKind, read_object
from kthena_components.core.schema.versions import KTHENA_VERSIONS, VERSIONS
from kthena_components.core.values.read import group_kind
from kthena_components.systems import find_kind


def own_findings(
    body: object,
    path: str = "",
    *,
    of: GroupKind | None = None,
    version: str = KTHENA_VERSIONS[-1],
    volcano: str = VERSIONS["volcano"][-1],
    lws: str = VERSIONS["lws"][-1],
) -> list[Finding]:
    """Check an object by the rules of its kind; a kind without rules gives nothing.

    Args:
        body: The object, or whatever else stands in its place.
        path: Where it stands; a prefix of every path.
        of: The kind by which it is judged, where that is not what it calls itself.
        version: The Kthena that is to read it.
        volcano: The Volcano that is to read it.
        lws: The LeaderWorkerSet that is to read it.
    """
    kind = find_kind(of or group_kind(body))
    if kind is None:
        return []
    fields = body if isinstance(body, Mapping) else {}
    versions = {"kthena": version, "volcano": volcano, "lws": lws}
    view_of = read_object(fields, path, Context(versions=versions))
    view = kind.view(view_of)
    found = (finding for rule in kind.rules for finding in run_rule(rule, view))
    own = once_a_place(run_rule(crd_schema, view_of), once_each(found))
    return [tidy(finding).under(path) for finding in own]
