"""The order of the site's pages. A page that has no place here is an error."""

import json
from collections.abc import Iterator, Mapping, Sequence

Tree = Mapping[str, Sequence[str]]
SECTIONS: Mapping[str, Tree] = {
    "Start here": {
        "": ["index.md", "start.md"],
        "Tutorials": [
            "tutorials/first-serving.md", "tutorials/two-nodes.md", "tutorials/prefill-decode.md",
            "tutorials/racks-and-queues.md", "tutorials/pull-requests.md", "from-lws.md",
        ],
        "Examples": ["examples.md"],
    },
    "How-to": {
        "Tasks": ["how-to/"],
        "Write it": ["own-program.md", "languages.md", "stacks.md", "pods.md"],
        "Choose": ["size.md", "backends.md", "resource-claims.md"],
        "Check it": ["check.md", "review.md", "levels.md"],
        "Run it": [
            "production.md", "monitoring.md", "rights.md", "upgrading.md", "troubleshooting.md",
            "faults.md",
        ],
        "Move to it": ["convert.md"],
        "Try it": ["sandbox.md"],
        "See whether it fits": ["fit.md", "inventory.md", "pictures.md"],
    },
    "Reference": {
        "Components": ["components/"],
        "Commands": ["commands/"],
        "Backends": ["backends/"],
        "What is read": ["kinds.md", "engines.md", "versions.md"],
        "": ["glossary.md", "changelog.md", "assistants.md"],
    },
    "Rules": {"": ["rules/"]},
    "Explanation": {
        "What is checked": ["limits.md", "memory.md", "memory-start-ups.md"],
        "How it works": ["architecture.md", "security.md", "report-a-vulnerability.md"],
        "What the tests prove": ["conformance.md", "performance.md"],
        "Work on it": ["contributing.md"],
        "Decisions": ["decisions/"],
    },
}  # fmt: skip
"""Sections, their headings, and pages or whole folders (with a slash)."""


def navigation(pages: Sequence[str]) -> str:
    """Write the navigation as TOML.

    Args:
        pages: The paths of all pages in the site.

    Raises:
        ValueError: A page has no place, or a place has no page.
    """
    used: list[str] = []
    tree = []
    for title, headings in SECTIONS.items():
        section: list[object] = []
        for heading, entries in headings.items():
            found = [page for entry in entries for page in _found(entry, pages)]
            used += found
            section += [{heading: found}] if heading else found
        tree.append({title: section})
    lost = [page for page in pages if page not in used]
    wrong = [page for page in used if page not in pages]
    if lost or wrong:
        message = f"pages without a place in {__name__}: {lost}; places without a page: {wrong}"
        raise ValueError(message)
    return _toml(tree)


def _found(entry: str, pages: Sequence[str]) -> Iterator[str]:
    if entry.endswith("/"):
        yield from (page for page in pages if page.startswith(entry))
    else:
        yield entry


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
