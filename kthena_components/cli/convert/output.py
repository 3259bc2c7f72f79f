"""Writes conversions as YAML, as a stack file, or as a Pulumi program, and proves each.

What is written is read again, compiled and compared before anybody sees it.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import yaml

from kthena_components import languages as typescript
from kthena_components.cli.convert.sources import Source
from kthena_components.cli.review.stack_file_settings import stack_values
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.conversion import Converted, Kept, title_of
from kthena_components.core import naming
from kthena_components.core.findings import Finding, SpecError, count_of
from kthena_components.core.naming import MODEL_SERVING
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.stack_file import objects_once, parse_stack
from kthena_components.core.values.display import escaped, printable, visible
from kthena_components.core.values.read import group_kind, mapping, name_of, namespace_or_default
from kthena_components.languages import Names
from kthena_components.reading.documents import read_documents
from kthena_components.reading.project import Project, ProjectError, is_encrypted
from kthena_components.reading.settings import is_text, why_unsaid
from kthena_components.systems.system import Body

_PULUMI = "pulumi.com/"
_PROJECT = "kthena-components"
_ELSEWHERE = "change it, or write a program, with --to python or --to typescript"
_IMPORT = 'import * as kthena from "@pulumi/kthena";\n'
_NEW = "new kthena.ModelServing("
_FAR = 10**6
"""Columns: no string is folded."""


class ProofError(RuntimeError):
    """The written result, read back, differs from the conversion. The text is for users."""


class _Dumper(yaml.SafeDumper):
    """Writes strings of several lines as blocks, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's interface
        """Write each value where it stands."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    quoted = None if is_text(text) else "'"  # PyYAML writes y and 1e3 without quotes
    style = "|" if "\n" in text else quoted
    if printable(text, escaped) != text:
        style = '"'  # the only style with escapes
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(value: Any) -> str:
    """Write one document, whose strings Kubernetes, Pulumi and PyYAML read as strings."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_FAR)
    return printable(text, escaped)


def objects_of(part: Converted | Kept) -> list[dict[str, Any]]:
    """Return the objects of a part as kubectl applies them: without Pulumi's annotations."""
    if isinstance(part, Kept):
        return [dict(part.body)]
    return [plain(manifest.body) for manifest in part.compiled.manifests]


def plain(body: Body) -> dict[str, Any]:
    """Return an object without the annotations that only Pulumi's provider reads."""
    metadata = dict(body["metadata"])
    own = mapping(metadata.pop("annotations", None))
    kept = {key: value for key, value in own.items() if not str(key).startswith(_PULUMI)}
    result: dict[str, Any] = json.loads(json.dumps(body))  # enums become their strings
    result["metadata"] = {**metadata, **({"annotations": kept} if kept else {})}
    return result


def write_yaml(parts: Sequence[Converted | Kept]) -> str:
    """Write all objects as documents of one file."""
    bodies = [body for part in parts for body in objects_of(part)]
    text = "---\n".join(map(dump, bodies))
    if [getattr(d, "body", d) for d in read_documents(text, "", lambda *_: True)] != bodies:
        raise ProofError("the YAML reads differently from the objects")
    return text


def write_stack(servings: Sequence[Converted], origin: str, today: date | None = None) -> str:
    """Write the stack file of a project with the package's stack program.

    Args:
        origin: What made them, for a comment: `converted from llama.yaml`.
        today: The day on which waivers are checked.
    """
    found = [
        _as_setting(serving.args, f"{serving.compiled.plan.name}: ", "") for serving in servings
    ]
    config = {f"{_PROJECT}:output": "render", f"{_PROJECT}:servings": found}
    made = visible(origin)
    text = f"# {made[:1].upper()}{made[1:]}\n{dump({'config': config})}"
    try:
        values = stack_values(text, "stack file", Project(name=_PROJECT))
    except ProjectError as error:
        raise ProofError(f"the result is refused: {error}") from None
    spec, findings = parse_stack(values.own)
    if findings:
        raise ProofError(f"the stack file is refused: {findings[0]}")
    _prove(spec.servings, servings, today)
    return text


def _as_setting(value: Any, place: str, path: str) -> Any:
    """Return a value in the form that Pulumi passes on unchanged from a stack file.

    Raises:
        ProofError: There is no such form.
    """
    if isinstance(value, Mapping):
        if is_encrypted(value):
            message = "has only the key 'secure', whose value Pulumi decrypts"
            raise ProofError(f"{place}{path} {message}: {_ELSEWHERE}")
        below = {key: f"{path}.{key}".lstrip(".") for key in value}
        return {
            _as_setting(key, place, below[key]): _as_setting(each, place, below[key])
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_as_setting(each, place, f"{path}[{at}]") for at, each in enumerate(value)]
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # the same number for Kubernetes, and for every reader of YAML
    if value is not None and (why := why_unsaid(value)):
        raise ProofError(f"{place}{path} {why}: {_ELSEWHERE}")
    return value


def write_program(servings: Sequence[Converted], origin: str, today: date | None = None) -> str:
    """Write the `__main__.py` of a Pulumi project."""
    calls = [_call(name, serving.args) for name, serving in titled(servings)]
    title = _literal(f"Servings {visible(origin)}.", 0)
    head = f'""{title}""\n\nfrom kthena_components import ModelServing\n\n'
    text = head + "\n".join(calls)
    made = [node.value for node in ast.parse(text).body if isinstance(node, ast.Expr)]
    found = [ast.literal_eval(call.args[1]) for call in made if isinstance(call, ast.Call)]
    _prove(found, servings, today)
    return text


def write_typescript(servings: Sequence[Converted], origin: str, today: date | None = None) -> str:
    """Write the `index.ts` of a Pulumi project."""
    names = Names.of(MODEL_SERVING)
    calls = [
        f"{_NEW}{typescript.write(name)}, {typescript.write(names.to_inputs(serving.args))});\n"
        for name, serving in titled(servings)
    ]
    text = f"// Servings {visible(origin)}.\n{_IMPORT}\n" + "\n".join(calls)
    _, *written = text.split(f"\n{_NEW}")  # no string that is quoted has a line break
    try:
        found = [typescript.read(f"[{call.rstrip().removesuffix(');')}]")[1] for call in written]
    except ValueError:
        raise ProofError("the program cannot be read again") from None
    _prove([names.to_args(args) for args in found], servings, today)
    return text


def titled(servings: Sequence[Converted]) -> list[tuple[str, Converted]]:
    """Give each serving a unique name for Pulumi, as short as possible."""
    plans = [serving.compiled.plan for serving in servings]
    several = [
        (p.name, f"{p.namespace}/{p.name}", f"{p.namespace}/{p.name}-{p.roles[0].name}")
        for p in plans
    ]
    counts = [Counter(names) for names in zip(*several, strict=True)]
    found: list[str] = []
    for index, names in enumerate(several):
        own = (name for name, count in zip(names, counts, strict=True) if count[name] == 1)
        found.append(next(own, f"{names[-1]}-{index}"))
    return list(zip(found, servings, strict=True))


def _call(title: str, args: Mapping[str, Any]) -> str:
    return f"ModelServing(\n    {_literal(title, 1)},\n    {_literal(args, 1)},\n)\n"


def _literal(value: Any, depth: int) -> str:
    """Write a value as Python, on one line if it fits."""
    if isinstance(value, str):
        return printable(json.dumps(value, ensure_ascii=False), escaped)
    if isinstance(value, Mapping):
        items = [f"{_literal(str(k), 0)}: {_literal(v, depth + 1)}" for k, v in value.items()]
        opens, closes = "{", "}"
    elif isinstance(value, list | tuple):
        items, opens, closes = [_literal(item, depth + 1) for item in value], "[", "]"
    else:
        return repr(value)
    return typescript.listed(opens, items, closes, "", depth)


def _prove(written: Sequence[Any], servings: Sequence[Converted], today: date | None) -> None:
    """Compile what was written, and compare its objects with the converted ones."""
    if len(written) != len(servings):
        raise ProofError(f"{len(written)} of {count_of(len(servings), 'serving')} were written")
    for args, serving in zip(written, servings, strict=True):
        try:
            again = compile_serving(args, today=today)
        except SpecError as error:
            raise ProofError(f"what was written is refused: {error.findings[0]}") from None
        if _bodies(again) != _bodies(serving.compiled):
            raise ProofError(f"serving '{serving.compiled.plan.name}' reads differently")


def _bodies(compiled: Compiled) -> list[Body]:
    return [manifest.body for manifest in compiled.manifests]


def find_clashes(files: Sequence[Source], *, as_yaml: bool, as_stack: bool) -> Iterator[Finding]:
    """Report objects that two parts of the result would make, and servings of one name.

    Args:
        files: The conversions.
        as_yaml: Whether the result also contains the objects that are kept.
        as_stack: Whether the result is one stack, in which each serving needs a name.
    """
    parts = [(file, part) for file in files for part in file.conversion.parts]
    servings = [(_place(f, p.source), p) for f, p in parts if isinstance(p, Converted)]
    made = [(at, [m.title for m in part.compiled.manifests]) for at, part in servings]
    ours = {title for _, titles in made for title in titles}
    for file, part in parts if as_yaml else ():
        if not isinstance(part, Converted) and _title(part.body) in ours:
            made.append((_place(file, part.source), [_title(part.body)]))
    found = list(objects_once(made))
    yield from found
    if as_stack and not found:
        plans = [(at, part.compiled.plan) for at, part in servings]
        named = [(at, [f"serving {plan.namespace}/{plan.name}"]) for at, plan in plans]
        yield from objects_once(named)


def _place(file: Source, body: Mapping[str, Any]) -> str:
    return f"{file.place_of(body)}: {title_of(body)}"


def _title(body: Mapping[str, Any]) -> str:
    namespace = namespace_or_default(body)
    return f"{group_kind(body)[1]} {namespace}/{name_of(body)}"


# Writes the file with which `pulumi import` takes existing objects into a stack.


IMPORTS = "import.json"
COMMAND = f"pulumi import --file {IMPORTS} --generate-code=false --protect=false"
"""Without code, because the program is there, and unprotected like all objects of the program."""


def write_imports(
    servings: Sequence[tuple[str, Converted]], there: Sequence[Sequence[str]], version: str
) -> str:
    """Write the entries of all objects that exist.

    Args:
        servings: The servings with the Pulumi names of their components.
        there: For each serving, the titles of the objects that exist.
        version: Version of the Kubernetes provider, which decides the types of its resources.
    """
    entries: list[Mapping[str, Any]] = []
    for (component, serving), titles in zip(servings, there, strict=True):
        found = [made for made in serving.compiled.manifests if made.title in titles]
        if found:
            entries.append({"type": naming.MODEL_SERVING, "name": component, "component": True})
        for made in found:
            name = naming.resource_name(component, serving.compiled.plan.name, made.name)
            entries.append(_entry(component, name, made, version))
    return json.dumps({"resources": entries}, indent=4) + "\n"


def _entry(component: str, name: str, made: Manifest, version: str) -> dict[str, Any]:
    """Write an entry of Pulumi's import file: the object's type, names and parent."""
    return {
        "type": made.type_token,
        # Of its own in the whole file, where objects of several kinds may have one name.
        "name": f"{name} {made.kind}",
        "logicalName": name,
        "id": "/".join(filter(None, (made.body["metadata"].get("namespace"), made.name))),
        "parent": component,
        "version": version,
    }
