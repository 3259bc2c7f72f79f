"""Finds the releases of operators that scripts install: by helm, or by the address of a release.

Source: helm.sh/docs/helm/helm_install and helm_upgrade (--version); the addresses in the guides of
kubernetes-sigs/lws (docs/setup/install.md), ray-project/kuberay (helm-chart/kuberay-operator
README.md, kubectl -k with ref), kserve/kserve (hack/quick_install.sh) and volcano-sh/volcano
(README.md).
"""

import shlex
from collections.abc import Iterator

from kthena_components.core.values.regex import regex

_REPOSITORIES = {
    "ray-project/kuberay": "kuberay-operator",
    "kubernetes-sigs/lws": "lws",
    "volcano-sh/kthena": "kthena",
    "volcano-sh/volcano": "volcano",
    "kserve/kserve": "kserve",
    "ai-dynamo/grove": "grove-charts",
    "nvidia/grove": "grove-charts",
}
"""The repositories of operators, and a chart of each."""
_ADDRESS = regex(
    r"(?:github\.com|raw\.githubusercontent\.com)/([\w.-]+/[\w.-]+?)(?:\.git)?/"
    r"(?:releases/download/|raw/)?(?:[\w./-]*\?(?:[\w=&-]*&)?ref=)?(v?[0-9]+\.[0-9]+\.[0-9]+[\w.-]*)"
)
_ASSIGNED = regex(r"(?m)^\s*(?:export\s+|readonly\s+|local\s+)?(\w+)\s*[:?]?=\s*([^\n#;]*)")
_DEFAULT = regex(r"\$\{\w+:?-([^}$]*)\}")
_VARIABLE = regex(r"\$[{(]?(\w+)[})]?")
_ENDS = regex(r"\n|;|&&|\|\|?|&(?![0-9>])")
_CONTINUED = regex(r"\\\n\s*")
_HELM = regex(r"(?:^|[\s/(@])helm\s")
_INSTALLS = ("install", "upgrade")
_FLAGS = frozenset(
    {"--install", "-i", "--wait", "--create-namespace", "--atomic", "--debug", "--devel", "-g"}
)
"""Options of helm without a value."""


def in_script(text: str) -> Iterator[tuple[str, str, object]]:
    """Yield chart, address and version of what a script installs."""
    yield from in_addresses(text)
    if _HELM.search(text) is None:
        return
    values = dict(_assigned(text))
    for line in _ENDS.split(_CONTINUED.sub(" ", text)):
        if _HELM.search(line) is not None and "--version" in line:
            yield from _installed(_VARIABLE.sub(lambda m: values.get(m[1], m[0]), line))


def in_addresses(text: str) -> Iterator[tuple[str, str, object]]:
    """Yield what the addresses of releases name, such as those of a kustomization."""
    if "github" not in text:
        return
    values = dict(_assigned(text))
    for found in _ADDRESS.finditer(_VARIABLE.sub(lambda m: values.get(m[1], m[0]), text)):
        chart = _REPOSITORIES.get(found[1].lower())
        if chart is not None:
            yield chart, found[1], found[2]


def _assigned(text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that a script sets once, to a text that is known."""
    found: dict[str, set[str]] = {}
    for name, stated in _ASSIGNED.findall(text):
        value = _DEFAULT.sub(lambda m: m[1], stated.strip().strip("\"'"))
        found.setdefault(name, set()).add(value)
    for name, texts in found.items():
        if len(texts) == 1 and "$" not in (only := texts.pop()):
            yield name, only


def _installed(line: str) -> Iterator[tuple[str, str, object]]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return
    place = next((i for i, w in enumerate(words) if w.rpartition("/")[2].strip("@(") == "helm"), -1)
    operands, options = list[str](), dict[str, str]()
    rest = iter(words[place + 1 :] if place >= 0 else [])
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            operands.append(word)
        elif equals or name in _FLAGS:
            options[name] = value
        else:
            options[name] = next(rest, "")
    if operands[:1] and operands[0] in _INSTALLS and len(operands) > 1:
        yield operands[-1], options.get("--repo", ""), options.get("--version")
