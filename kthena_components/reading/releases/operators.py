"""Finds the releases of operators that files install: Terraform, charts, GitOps, and scripts.

Finds the releases of operators that scripts install: by helm, or by the address of a release.

Source: helm.sh/docs/helm/helm_install and helm_upgrade (--version); the addresses in the guides of
kubernetes-sigs/lws (docs/setup/install.md), ray-project/kuberay (helm-chart/kuberay-operator
README.md, kubectl -k with ref), kserve/kserve (hack/quick_install.sh) and volcano-sh/volcano
(README.md).

Finds the releases of operators that files install, in Terraform, charts and files of GitOps.

Source: the charts' names and versions: ray-project/kuberay helm-chart/kuberay-operator,
kubernetes-sigs/lws charts/lws, volcano-sh/kthena charts/kthena, volcano-sh/volcano
installer/helm/chart/volcano, kserve/kserve charts, kaito-project/kaito charts/kaito/workspace,
ai-dynamo/grove operator/charts, NVIDIA/k8s-nim-operator deployments/helm: each chart has the
version of its operator. aws-ia terraform-aws-eks-data-addons: NAME_helm_config, enable_NAME;
terraform-aws-eks-blueprints-addons: helm_releases.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.facts.context import Pin
from kthena_components.core.schema.versions import is_older
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.values_in_text import may_have
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, read_text, shown_name
from kthena_components.reading.folders import CHART, KUSTOMIZATIONS, SCRIPTS, TERRAFORM
from kthena_components.reading.hcl import Expression, HclError, blocks_in
from kthena_components.reading.releases.fleet_and_helmfile import NAMES, is_helmfile
from kthena_components.reading.settings import parse_kube_map

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
CHARTS = {
    "kuberay-operator": "ray",
    "lws": "lws",
    "kthena": "kthena",
    "volcano": "volcano",
    "kserve": "kserve",
    "kserve-crd": "kserve",
    "kserve-resources": "kserve",
    "kserve-llmisvc-crd": "kserve",
    "kserve-llmisvc-resources": "kserve",
    "grove-charts": "grove",
    "k8s-nim-operator": "nim",
    "workspace": "kaito",
    "kaito-workspace": "kaito",
}
"""The charts of operators, with their systems."""
_SAYS = {"workspace": "kaito"}
"""Charts with a name that others have, too, and a word that is in the address of the right one."""
_EXACT = regex(r"\s*v?([0-9]+\.[0-9]+\.[0-9]+)(?:[-+][\w.+-]+)?\s*")
_MINOR = regex(r"\s*(?:~>?\s*)?v?([0-9]+\.[0-9]+)(?:\.(?:[0-9]+|[xX*]))\s*")
"""A range of the patches of one release: `~> 1.1.0`, `~1.1.0`, `1.1.x`."""
_OF_MODULE, _ENABLES = "_helm_config", "enable_"
_KINDS = {
    ("argoproj.io", "Application"),
    ("argoproj.io", "ApplicationSet"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
    ("source.toolkit.fluxcd.io", "OCIRepository"),
}
_WORDS = ("targetRevision", "HelmRelease", "OCIRepository")
_SOURCES = ("kuberay", "lws", "kthena", "volcano", "kserve", "kaito", "grove")
"""The operators' own repositories: in another one, a revision is not the operator's release."""
_LEVELS = 6


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
    """Yield the releases that addresses name, such as remote bases of a kustomization."""
    if "github" not in text:
        return
    values = dict(_assigned(text))
    for found in _ADDRESS.finditer(_VARIABLE.sub(lambda m: values.get(m[1], m[0]), text)):
        chart = _REPOSITORIES.get(found[1].lower())
        if chart is not None:
            yield chart, found[1], found[2]


def _assigned(text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that a script sets once, to a string that is known."""
    found: dict[str, set[str]] = {}
    for name, stated in _ASSIGNED.findall(text):
        value = _DEFAULT.sub(lambda m: m[1], stated.strip().strip("\"'"))
        found.setdefault(name, set()).add(value)
    for name, texts in found.items():
        if len(texts) == 1 and "$" not in (only := texts.pop()):
            yield name, only


def _installed(line: str) -> Iterator[tuple[str, str, object]]:
    """Read `helm install` in a line of a script: chart, repository and version."""
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


def find_pins(
    paths: Iterable[str], read: Callable[[str], str | Unreadable]
) -> dict[str, tuple[Pin, ...]]:
    """Find which releases of operators some files install, by system. `read` reads a file."""
    found: dict[str, dict[Pin, None]] = {}
    known: dict[str, dict[str, Any]] = {}
    files = [*paths]
    for path in files:
        text = read(path)
        if isinstance(text, Unreadable):
            continue
        if not path.endswith(TERRAFORM):
            stated = _installed_charts(text, path)
        elif any(each in text.replace("_", "-") for each in CHARTS):
            folder = str(Path(path).parent)
            if folder not in known:
                known[folder] = _named_in(folder, files)
            stated = _in_terraform(text, known[folder])
        else:
            continue
        for chart, address, version in stated:
            system, release = _system(chart, address), _release(version)
            # Scripts stay behind: an old one must not end the check of all files beside it.
            is_left = path.endswith(SCRIPTS) and system and release and is_older(system, release)
            if system and release and not is_left:
                found.setdefault(system, {})[Pin(release, shown_name(path))] = None
    return {system: tuple(pins) for system, pins in found.items()}


def _installed_charts(text: str, path: str) -> Iterable[tuple[str, str, object]]:
    """Return chart, address and version of what a file installs that is none of Terraform."""
    name = os.path.basename(path)  # noqa: PTH119 - of each file
    if name.endswith(SCRIPTS):
        return in_script(text)
    if name in KUSTOMIZATIONS:
        return in_addresses(text)
    if name == CHART:
        return _in_chart(text, path)
    if is_helmfile(path) or name in NAMES:
        return _in_map(text, path)
    return _in_objects(text) if may_have(text, _may_state) else ()


def _may_state(text: str) -> bool:
    return any(each in text for each in _WORDS) and any(each in text for each in CHARTS)


def _system(chart: object, address: str) -> str:
    """Return whose operator a chart installs; empty for another chart."""
    if not isinstance(chart, str):
        return ""
    name = chart.rstrip("/").rpartition("/")[2]
    word = _SAYS.get(name, "")
    return CHARTS.get(name, "") if word in f"{address}/{chart}" else ""


def _release(version: object) -> str:
    """Return the release that a string names; empty if it may be one of several."""
    if not isinstance(version, str):
        return ""
    exact, minor = _EXACT.fullmatch(version), _MINOR.fullmatch(version)
    return exact[1] if exact else minor[1] if minor else ""


def _in_terraform(text: str, known: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    """Yield chart, address and version of releases in resources and in arguments of modules."""

    def value(stated: object) -> object:
        return known.get(stated.text) if isinstance(stated, Expression) else stated

    for block in blocks_in(text, "resource", "module"):
        if isinstance(block, HclError):
            continue
        fields = block.attributes
        if block.kind == "resource":
            if block.labels[:1] == ("helm_release",) and fields.get("count") != 0:
                chart, address = value(fields.get("chart")), value(fields.get("repository"))
                yield str(chart), str(address), value(fields.get("version"))
            continue
        for name, stated in fields.items():
            chart = name.removesuffix(_OF_MODULE)
            if chart != name and fields.get(_ENABLES + chart) is not False:
                yield chart.replace("_", "-"), "", value(mapping(stated).get("version"))
            elif chart == name:
                for each in _maps(stated, _LEVELS):
                    address = str(value(each.get("repository")))
                    version = each.get("chart_version", each.get("version"))
                    yield str(value(each.get("chart"))), address, value(version)


def _maps(stated: object, levels: int) -> Iterator[Mapping[str, Any]]:
    """Yield the maps that state a chart, within others."""
    inner: Iterable[object] = ()
    if isinstance(stated, Mapping):
        if "chart" in stated:
            yield stated
        inner = stated.values()
    elif isinstance(stated, list):
        inner = stated
    for each in inner if levels else ():
        yield from _maps(each, levels - 1)


def _named_in(folder: str, files: Iterable[str]) -> dict[str, Any]:
    """Return the literal locals of a module, and the defaults of its variables."""
    made: dict[str, Any] = {}
    for path in files:
        if not path.endswith(TERRAFORM) or str(Path(path).parent) != folder:
            continue
        text = read_text(path, named=False)
        for block in () if isinstance(text, Unreadable) else blocks_in(text, "variable", "locals"):
            if isinstance(block, HclError):
                continue
            fields = block.attributes
            if block.kind == "locals":
                made |= {f"local.{name}": each for name, each in fields.items()}
            elif block.labels and "default" in fields:
                made[f"var.{block.labels[0]}"] = fields["default"]
    return made


def _in_map(text: str, path: str) -> Iterator[tuple[str, str, object]]:
    """Yield the releases of a helmfile or a fleet.yaml."""
    for part in text.split("\n---"):
        content = parse_kube_map(part, path)
        if isinstance(content, Unreadable):
            continue
        urls = {
            str(each.get("name")): str(each.get("url"))
            for each in map(mapping, sequence(content.get("repositories")))
        }
        for each in map(mapping, sequence(content.get("releases"))):
            chart = str(each.get("chart"))
            if each.get("installed") is not False:
                yield chart, urls.get(chart.partition("/")[0], ""), each.get("version")
        helm = mapping(content.get("helm"))
        yield str(helm.get("chart")), str(helm.get("repo")), helm.get("version")


def _in_chart(text: str, path: str) -> Iterator[tuple[str, str, object]]:
    """Yield the charts on which a chart depends."""
    content = parse_kube_map(text, path)
    if isinstance(content, Unreadable):
        return
    for each in map(mapping, sequence(content.get("dependencies"))):
        yield str(each.get("name")), str(each.get("repository")), each.get("version")


def near(pins: Mapping[str, tuple[Pin, ...]], file: str) -> dict[str, tuple[Pin, ...]]:
    """Return the releases for a file: of the nearest folder that states any.

    A folder states what files in it and below it install.
    """
    return {system: _nearest(own, file) for system, own in pins.items()}


def _nearest(pins: tuple[Pin, ...], file: str) -> tuple[Pin, ...]:
    for folder in Path(file).parents:
        found = tuple(pin for pin in pins if folder in Path(pin.file).parents)
        if found:
            return found
    return pins


def _in_objects(text: str) -> Iterator[tuple[str, str, object]]:
    """Yield the releases of Applications and HelmReleases."""

    def is_wanted(version: object, kind: object, _text: str) -> bool:
        return group_kind({"apiVersion": version, "kind": kind}) in _KINDS

    for document in read_documents(text, "", is_wanted):
        if isinstance(document, Unreadable):
            continue
        body = mapping(document.body)
        spec = mapping(body.get("spec"))
        if body.get("kind") == "HelmRelease":
            chart = mapping(mapping(spec.get("chart")).get("spec"))
            named = str(mapping(chart.get("sourceRef")).get("name"))
            if "/" not in str(chart.get("chart")):  # of a path, the version is not read
                yield str(chart.get("chart")), named, chart.get("version")
        elif body.get("kind") == "OCIRepository":
            ref = mapping(spec.get("ref"))
            yield str(spec.get("url")), "", ref.get("tag", ref.get("semver"))
        else:
            spec = mapping(mapping(spec.get("template")).get("spec")) or spec
            yield from map(_source, (spec.get("source"), *sequence(spec.get("sources"))))


def _source(stated: object) -> tuple[str, str, object]:
    """Return chart, address and version of a source of an Application."""
    source = mapping(stated)
    url, chart = str(source.get("repoURL")), str(source.get("chart") or "")
    if not chart and url.removesuffix(".git").rpartition("/")[2] in _SOURCES:
        chart = str(source.get("path"))
    return chart, url, source.get("targetRevision")
