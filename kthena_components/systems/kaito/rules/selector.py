"""KAITO's rule about the labels of nodes. A rule's docstring documents it."""

from collections.abc import Iterator
from typing import Any

from kthena_components.core.findings import Finding, count_of, not_checked
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, require_known, unknown_inside
from kthena_components.systems.kaito.view import (
    OWN_LABELS,
    SEVERAL_ROLES,
    WORKSPACE,
    View,
    refused,
)

_RULE = "kaito-selector"


def kaito_selector(view: View) -> Iterator[Finding]:
    """KAITO's objects select their nodes by a label of yours, and by terms that are labels.

    Labels that KAITO sets on its own nodes do not count. The only operator is In, with one value.
    The selector of a MultiRoleInference must not be empty.

    Pass: matchLabels apps llama.
    Fail: matchLabels kaito.sh/workspace llama alone; the operator Exists; an empty labelSelector
    of a MultiRoleInference.
    Level: mandatory. KAITO's webhook, or its CRD, rejects it; for an InferenceSet, it rejects each
    Workspace of it.
    Source: kaito-project/kaito v0.11.0 and v0.12.0 api/v1beta1/labels.go SanitizedMatchLabels,
    workspace_validation.go validateCreateWithInference;
    api/v1alpha1/multiroleinference_validation.go validateCreate.
    """
    several, own = view.kind == SEVERAL_ROLES, view.kind == WORKSPACE
    holder = mapping(view.object.body.get("resource")) if own else view.object.spec
    at = "resource.labelSelector" if own else "spec.labelSelector"
    if own and view.object.body.get("resource") is None:
        seen = "is missing, and KAITO's webhook fails without it"
        yield refused("resource", seen, "write resource.labelSelector", _RULE)
    selector = holder.get("labelSelector")
    labels, terms = (mapping(selector).get(key) for key in ("matchLabels", "matchExpressions"))
    require_known(at, selector, labels, terms)
    if several and selector is not None and not labels and not terms:
        yield refused(at, "selects nothing", "write for example matchLabels: {apps: llama}", _RULE)
    elif not several:
        if mapping(labels) and OWN_LABELS.issuperset(mapping(labels)):
            seen = f"has only {display(min(map(str, mapping(labels))))}, which KAITO ignores"
            yield refused(f"{at}.matchLabels", seen, "add a label of your own", _RULE)
        yield from _terms(terms, f"{at}.matchExpressions")


def _terms(terms: Any, at: str) -> Iterator[Finding]:
    for index, term in enumerate(terms if isinstance(terms, list | tuple) else ()):
        operator, values = (mapping(term).get(key) for key in ("operator", "values"))
        count = len(values) if isinstance(values, list | tuple) else 0
        if gap := unknown_inside(term):
            yield not_checked(f"{at}[{index}]", gap)
        elif operator != "In" or count != 1:
            given = f" with {count_of(count, 'value')}" if operator == "In" else ""
            seen = f"has operator {display(operator)}{given}, but KAITO accepts only In with one "
            yield refused(
                f"{at}[{index}]", f"{seen}value", "write the label into matchLabels", _RULE
            )
