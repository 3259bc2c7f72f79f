"""Checks the names of HyperNodes and nodes, and the patterns that find nodes by their names."""

import re
import warnings
from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level
from kthena_components.core.naming import NAME_LIMIT, dns_name, is_dns_name
from kthena_components.core.remedies import write
from kthena_components.core.values.go_regex import anchored, trouble_in_go
from kthena_components.core.values.unknown import is_unresolved

DISCOVERY_LABEL = "volcano.sh/network-topology-source"
MEMBER_KINDS = ("nodes", "node_regex", "node_labels", "children")
DNS_1123 = (
    f"a DNS-1123 subdomain (at most {NAME_LIMIT} of a-z, 0-9, '-' and '.', "
    "each part starting and ending with a letter or digit)"
)

# Go's regexp has neither, and Volcano's webhook rejects a pattern that does not compile.
_NOT_IN_GO = re.compile(r"\(\?<?[=!]|\\[1-9]")


def not_judged(path: str) -> Finding:
    """Report that a value is known too late to be checked."""
    return Finding(
        path=path, seen="not checked, because the value is known only after the deployment",
        rule="hypernode-late-value", level=Level.UNKNOWN,
    )  # fmt: skip


def must_be_known(path: str, use: str) -> Finding:
    """Reject a name that is known too late for the tree."""
    return Finding(
        path=path, seen=f"the value is known only after the deployment, but {use}",
        remedy="write it as plain text", rule="known-when-planned",
    )  # fmt: skip


def check_name(name: str, path: str) -> Iterator[Finding]:
    """Report an invalid name of a HyperNode."""
    if is_unresolved(name):
        yield must_be_known(path, "parents list their children by name")
    elif not is_dns_name(name):
        yield Finding(
            path=path, seen=f"'{name}' is not {DNS_1123}, as the name of a HyperNode is",
            remedy=write(dns_name(name[:NAME_LIMIT]) or "rack-1"), rule="hypernode-name",
        )  # fmt: skip


def check_node_name(name: str, path: str) -> Iterator[Finding]:
    """Report a name that no Kubernetes node can have."""
    if is_unresolved(name):
        yield not_judged(path)
    elif not is_dns_name(name):
        yield Finding(
            path=path, seen=f"'{name}' is not {DNS_1123}, so no node has this name",
            remedy="write the name that 'kubectl get nodes' shows", rule="hypernode-node-name",
        )  # fmt: skip


def check_regex(pattern: str, path: str) -> Iterator[Finding]:
    """Report a node pattern that Volcano reads differently than it looks, or rejects."""
    level = Level.MANDATORY
    if is_unresolved(pattern):
        yield not_judged(path)
        return
    trouble = trouble_in_go(pattern)
    if trouble and (alien := _NOT_IN_GO.search(pattern)):
        seen = f"'{pattern}' contains '{alien[0]}': Go has no look-around and no back-references"
        remedy = "write the pattern without it, or list the nodes"
    elif trouble:
        seen = f"Go cannot read '{pattern}' ({trouble}), and Volcano's webhook rejects it"
        remedy = "rewrite the pattern, or list the nodes"
    elif whole := anchored(pattern):
        seen = f"'{pattern}' does not reach from ^ to $ in every alternative, but Volcano finds "
        seen += "a pattern anywhere in a node's name"
        remedy = write(whole, f"write '{whole}', with .* where any text may be")
    elif trouble := _trouble_in_python(pattern):
        level = Level.ADVISORY
        seen = f"Go reads '{pattern}' and Python does not ({trouble}), so its nodes are not checked"
        remedy = "write it so that both can read it, or list the nodes"
    else:
        return
    yield Finding(path=path, seen=seen, remedy=remedy, rule="hypernode-node-regex", level=level)


def _trouble_in_python(pattern: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about [[:alpha:]], which is valid in Go
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return ""
