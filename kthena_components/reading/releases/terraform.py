"""Reads releases of Helm in files of Terraform, as far as their values are literal.

Later values override earlier ones: `values`, `set`, `set_list`, `set_sensitive`. A value that only
Terraform evaluates is a placeholder where the chart only writes it, and no rule checks it. Where a
template decides by it, the release is not rendered.
Source: hashicorp/terraform-provider-helm helm/resource_helm_release.go (getValues, getValue,
getListValue, buildChartNameWithRepository); developer.hashicorp.com/terraform/language/syntax/json.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.folders import CHART
from kthena_components.reading.hcl import Block, Call, Expression, HclError, blocks_in, value_of
from kthena_components.reading.releases.release import (
    ChartRelease,
    OutsideError,
    Place,
    Repository,
    Statement,
    read_or_outside,
)
from kthena_components.reading.settings import parse_kube_map

SUFFIXES = (".tf", ".tofu", ".tf.json", ".tofu.json")
_JSON = ".json"
_PATH = regex(r"[\w.@/-]+")
_HERE = regex(r"(?:\$\{path\.module\}/)?(?!/)([^${}]+)")
_WHY = "only Terraform evaluates its values"
_SETS = ("set", "set_list", "set_sensitive")
_UNREAD = ("set_wo", "postrender", "post_render", "dynamic")
_LABELS = 2
_LATE = "__TERRAFORM__"
"""The folder of a chart that is not in the repository."""
_WRAPPED = regex(r'"?\$\{(.*)\}"?', re.DOTALL)
_FIELD = regex(r"\$\{([^{}]*)\}")
_ACTION = regex(r"\{\{.*?\}\}", re.DOTALL)
_TEMPLATES = (".yaml", ".yml", ".tpl", ".txt", ".json")


def terraform(text: str, place: Place, repository: Repository) -> list[Statement]:
    """Read the releases of Helm in a file."""
    found: list[Statement] = []
    for name, body in _in_json(text) if place.file.endswith(_JSON) else _in_text(text):
        if body.get("count") == 0:
            continue
        own = replace(place, what=f"helm_release {name}")
        release, version = _Release(str(name), body, own, repository), body.get("version")
        known = version if isinstance(version, str | None) else _LATE
        found += read_or_outside(release.read, own, release.stated, body.get("chart"), known)
    return found


def _in_text(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List the helm_release resources of HCL text with their attributes and blocks."""
    for block in blocks_in(text, "resource") if "helm_release" in text else ():
        if isinstance(block, HclError):
            continue
        if len(block.labels) != _LABELS or block.labels[0] != "helm_release":
            continue
        body = dict(block.attributes)
        for inner in block.blocks:
            body.setdefault(inner.kind, [])
            if isinstance(body[inner.kind], list):
                body[inner.kind] = [*body[inner.kind], inner.attributes]
        yield block.labels[-1], body


def _in_json(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List the helm_release resources of Terraform's JSON."""
    try:
        content = mapping(json.loads(text))
    except (ValueError, RecursionError):
        return  # it is reported as a file that is not JSON
    stated = content.get("resource")
    for resource in map(mapping, (stated, *sequence(stated))):
        releases = resource.get("helm_release")
        for each in map(mapping, (releases, *sequence(releases))):
            for name, body in each.items():
                for one in map(mapping, (body, *sequence(body))):
                    if one:
                        yield str(name), {key: _from_json(value) for key, value in one.items()}


def _from_json(value: object) -> Any:
    """Return a value of JSON, in which each string is a template."""
    if isinstance(value, Mapping):
        return {str(key): _from_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_from_json(each) for each in value]
    return Expression(value) if isinstance(value, str) and "${" in value else value


class _Release:
    """The reading of a release."""

    def __init__(
        self, label: str, body: Mapping[str, Any], place: Place, repository: Repository
    ) -> None:
        self._label, self._body, self._place, self._repository = label, body, place, repository
        self._start = place.folder

    def read(self) -> Iterator[ChartRelease]:
        """Read a release whose chart is a folder of the repository."""
        stated = self._body.get("chart")
        folder = self._folder(stated.text if isinstance(stated, Expression) else str(stated))
        with OutsideError.of(folder):
            self._require_local(stated)
            yield self.stated(folder)

    def stated(self, folder: str) -> ChartRelease:
        """Read what it states, for a chart in a folder of the repository or elsewhere.

        A value that only Terraform evaluates is a placeholder where the chart is elsewhere.
        """
        if unread := next((key for key in _UNREAD if self._body.get(key)), ""):
            raise OutsideError(f"its {unread} is known only to Terraform")
        return ChartRelease(
            place=self._place,
            folder=folder,
            name=self._text("name") or self._label,
            namespace=self._text("namespace"),
            values=tuple(self._values(folder)),
            options=tuple(self._sets(folder)),
        )

    def _require_local(self, chart: object) -> None:
        """Refuse a chart in a registry, or at a path that only Terraform knows."""
        where = self._body.get("repository")
        if isinstance(where, str) and where:
            raise OutsideError(f"its chart {self._text('chart')} is in the registry {where}")
        found = _HERE.fullmatch(chart.text if isinstance(chart, Expression) else str(chart))
        if found is None or where is not None:
            raise OutsideError(_WHY)
        if not self._repository.has(f"{found[1]}/{CHART}", self._start):
            raise OutsideError(f"its chart {found[1]} is not in the repository")

    def _text(self, key: str) -> str:
        value = self._body.get(key)
        return value if isinstance(value, str) else ""

    def _values(self, folder: str) -> Iterator[str]:
        """Yield the values of a helm_release as YAML strings, as far as they are known."""
        listed = self._body.get("values")
        if not isinstance(listed, list | None):
            raise OutsideError(_WHY)
        for each in listed or ():
            value = each
            if isinstance(each, Expression) and (inner := _WRAPPED.fullmatch(each.text)):
                value = value_of(inner[1])
            match value:
                case str():
                    yield value
                case Call("file", (path,)):
                    yield self._file(path)
                case Call("templatefile", (path, Mapping() as variables)):
                    yield _filled(self._file(path), variables, folder)
                case Call("yamlencode" | "jsonencode", (stated,)):
                    yield json.dumps(_placeholders(stated, folder, ""))
                case Expression(text):
                    yield _filled(text, {}, folder)
                case _:
                    raise OutsideError(_WHY)

    def _file(self, path: object) -> str:
        found = _HERE.fullmatch(path.text if isinstance(path, Expression) else str(path))
        if found is None:
            raise OutsideError(_WHY)
        return self._repository.read(found[1], self._start)

    def _sets(self, folder: str) -> Iterator[str]:
        """Write `set` blocks as options of helm; their order must not matter."""
        seen = set[str]()
        for key in _SETS:
            listed = self._body.get(key)
            if not isinstance(listed, list | Mapping | None):
                raise OutsideError(_WHY)
            for each in [listed] if isinstance(listed, Mapping) else listed or ():
                stated = each if isinstance(each, Mapping) else {}
                name, value, kind = (stated.get(part) for part in ("name", "value", "type"))
                if not isinstance(name, str) or kind not in (None, "", "auto", "string"):
                    raise OutsideError(_WHY)
                if name in seen:
                    raise OutsideError(f"it sets {name} twice, in an order that is not kept")
                seen.add(name)
                option = "--set-string" if kind == "string" else "--set"
                yield f"{option}={name}={_set(value, folder, name)}"

    def _folder(self, chart: str) -> str:
        """Return the chart in the repository, or the repository if an expression names it."""
        for path in filter(None, (each.rstrip("/") for each in _PATH.findall(chart))):
            bare = path.lstrip("/")
            for below, own in ((path, self._start), (bare, self._start), (bare, "")):
                if self._repository.has(f"{below}/{CHART}", own):
                    return self._repository.folder(below, own)
        is_known = not isinstance(self._body.get("chart"), Expression)
        return "" if is_known else self._repository.boundary


def _set(value: object, folder: str, name: str) -> str:
    """Return a value as `--set` takes it."""
    if isinstance(value, list):
        return f"{{{','.join(_set(each, folder, name) for each in value)}}}"
    known = _placeholders(value, folder, name)
    return json.dumps(known) if isinstance(known, bool | int | float | None) else str(known)


def _filled(text: str, variables: Mapping[str, Any], folder: str) -> str:
    """Return the text of values whose `${…}` are filled in, as far as they are known."""

    def known(found: re.Match[str]) -> str:
        value = variables.get(found[1].strip())
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else _LATE

    if "%{" in text:
        raise OutsideError(_WHY)
    made = _FIELD.sub(known, text)
    content = parse_kube_map(made, "")
    if "${" in made or isinstance(content, Unreadable):
        raise OutsideError(_WHY)
    _require_written(content, folder, "")
    return made


def _require_written(value: object, folder: str, name: str) -> None:
    """Refuse values in which an expression hides what Terraform alone can evaluate."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            _require_written(each, folder, f"{name}.{key}")
            _require_written(str(key), folder, "")
    elif isinstance(value, list):
        for each in value:
            _require_written(each, folder, name)
    elif isinstance(value, str) and _LATE in value:
        _placeholders(Expression(value), folder, name)


def _placeholders(value: object, folder: str, name: str) -> Any:
    """Return a value with placeholders for what is not known and what the chart only writes."""
    if isinstance(value, Mapping):
        return {key: _placeholders(each, folder, f"{name}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_placeholders(each, folder, name) for each in value]
    if isinstance(value, Expression | Call | Block):
        if not _is_written(folder, name):
            stated = name.lstrip(".")
            raise OutsideError(f"its value {stated} is known only to Terraform" if stated else _WHY)
        return _LATE
    return value


def _is_written(folder: str, name: str) -> bool:
    """Return whether templates of a chart only write a value, and decide nothing by it."""
    if not folder:
        return True  # rules read the values, and know a placeholder
    last = name.rpartition(".")[2]
    if re.fullmatch(r"[A-Za-z_]\w*", last) is None:
        return False
    named = re.compile(rf"\b{last}\b")
    plain = re.compile(rf"\{{\{{-?\s*[.$\w]*\.{last}(?:\s*\|\s*s?quote)?\s*-?\}}\}}")
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix not in _TEMPLATES or "templates" not in path.parts:
            continue
        text = read_text(str(path), named=False)
        if isinstance(text, Unreadable):
            return False
        actions = (each for each in _ACTION.findall(text) if named.search(each))
        if not all(map(plain.fullmatch, actions)):
            return False
    return not list(Path(folder).glob("charts/*.tgz"))
