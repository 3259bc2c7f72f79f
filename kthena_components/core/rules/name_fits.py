"""Checks that generated names fit the limits of Kubernetes."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.naming import NAME_LIMIT, least_length
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import is_unresolved


def name_fits(facts: ServingFacts) -> Iterator[Finding]:
    """A generated name is not too long: 63 characters for a DNS label, 52 for a StatefulSet's name.

    The pods of a StatefulSet have its name and a revision of 11 characters in one label value.
    In the mode Standard, KServe stops if the first part of a component's host is not a DNS label:
    it is chat-predictor-models for chat in the namespace models.

    Pass: a StatefulSet's name of 52 characters.
    Fail: a StatefulSet's name of 53 characters.
    Level: mandatory; advisory for that host, which domainTemplate of the cluster may change.
    Source: RFC 1035; kubernetes pkg/controller/history/controller_history.go ControllerRevisionName
    and pkg/controller/statefulset/stateful_set_utils.go setPodRevision; kserve
    pkg/controller/v1beta1/inferenceservice/reconcilers/raw/raw_kube_reconciler.go createRawURL, and
    issue 4807.
    """
    longest: dict[str, tuple[int, Finding]] = {}
    for item in facts.names:
        if is_unresolved(item.name):
            yield Finding(
                path=item.path,
                seen=f"the {item.what} name was not checked, because its value is a Pulumi Output, "
                "which is known only after the deployment",
                level=Level.UNKNOWN,
            )
            continue
        over = least_length(item.name) - item.limit
        if over <= 0:
            continue
        part = item.part or ("the serving's or the role's name" if item.made else "it")
        finding = Finding(
            path=item.path,
            seen=f"gives the {item.what} name {display(item.name, NAME_LIMIT)}, "
            f"{len(item.name)} characters; "
            f"at most {item.limit} are allowed",
            remedy=f"shorten {part} by {over}",
            level=Level.ADVISORY if item.by_default else Level.MANDATORY,
        )
        known = longest.get(item.path)
        if known is None or over > known[0]:
            longest[item.path] = (over, finding)
    yield from (finding for _, finding in longest.values())
