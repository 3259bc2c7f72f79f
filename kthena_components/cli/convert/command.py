"""`kthena-components convert`: writes servings of one backend for another one."""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from kthena_components.cli.convert.output import (
    COMMAND,
    IMPORTS,
    ProofError,
    find_clashes,
    titled,
    write_imports,
    write_program,
    write_stack,
    write_typescript,
    write_yaml,
)
from kthena_components.cli.convert.sources import (
    Source,
    UsageError,
    all_servings,
    from_cluster,
    from_file,
)
from kthena_components.cli.main import ERROR, PROBLEM, SUCCESS
from kthena_components.cli.shared_options import add_cluster, opened
from kthena_components.cli.terminal import Progress
from kthena_components.convert.conversion import (
    SAME,
    ChangeError,
    Changes,
    Converted,
    Kept,
    title_of,
)
from kthena_components.convert.lost_fields import Loss
from kthena_components.convert.sources_and_kept import kinds_to_read, short_title
from kthena_components.core.findings import Finding, SpecError, nearest, today
from kthena_components.core.remedies import fixes_of
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.core.values.display import lone_surrogate, shell_word, visible
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import STDIN, shown_name
from kthena_components.reading.loader import Loader
from kthena_components.reading.settings import is_text
from kthena_components.systems import EMITTERS

# Tells what became of each object of a conversion, what is lost, and what to do about it.


_REMOVE = regex(r"^remove (it|gang_policy)\b")
_VALUE = regex(r"^write ([A-Za-z0-9.-]+)(?=,|$)")
_TEXT = regex(r"^(?:write, for example,|put it in quotes:) '([^']*)'$")
_BACKEND = regex(r"\b(?:(?:write|use a ModelServing with) )?backend: (?=[a-z])")
_OF_OBJECTS = "convertible"
"""The rule of findings about what only the object states."""
_WHOLE_PARTS = frozenset({"metadata", "spec", "status"})
"""Parts of any object, which a script may accept for all its files."""
_LISTED = 20
"""Names in an error at most."""


def report(files: Sequence[Source], accepted: Sequence[str], *, as_yaml: bool) -> Iterator[Loss]:
    """Tell what became of each object, and yield the losses that were not accepted."""
    for file, part in _reported_parts(files):
        source = part.source
        say(f"{file.place_of(source)}: {title_of(source)} {_fate(part, as_yaml=as_yaml)}")
        if as_yaml or isinstance(part, Converted):
            for note in part.notes:
                say(f"  {note}")
        for loss in _losses_of(part, as_yaml=as_yaml):
            known = any(_covers(name, loss.name) for name in accepted)
            word = "accepted" if known else "loss"
            say(f"{file.place_of(source, loss.name)}: {word}: {loss}")
            if not known:
                yield loss


def _reported_parts(files: Sequence[Source]) -> Iterator[tuple[Source, Converted | Kept]]:
    for file in files:
        for part in file.conversion.parts:
            # What happens to a kept object depends on the servings.
            if not (file.conversion.errors and isinstance(part, Kept)):
                yield file, part


def _losses_of(part: Converted | Kept, *, as_yaml: bool) -> Iterator[Loss]:
    yield from part.losses
    if not as_yaml and isinstance(part, Kept):  # elsewhere, so only its owner can change it
        for note in part.notes:
            yield Loss(name=short_title(part.source), seen=f"must be changed, so that it {note}")


def require_losses(files: Sequence[Source], accepted: Sequence[str], *, as_yaml: bool) -> None:
    """Refuse to accept what is not lost: a name with a mistake would accept nothing.

    Raises:
        UsageError: With the losses that there are.
    """
    parts = [part for _, part in _reported_parts(files)]
    names = [loss.name for part in parts for loss in _losses_of(part, as_yaml=as_yaml)]
    unknown = [
        name
        for name in accepted
        if name not in _WHOLE_PARTS and not any(_covers(name, lost) for lost in names)
    ]
    if not unknown:
        return
    close, known = nearest(unknown[0], names), list(dict.fromkeys(names))
    hint = f"write {close}" if close else f"known: {', '.join(known[:_LISTED])}"
    more = f" and {len(known) - _LISTED} more" if not close and len(known) > _LISTED else ""
    raise UsageError(
        f"--accept-loss {unknown[0]}: there is no such loss; {hint}{more}"
        if names
        else f"--accept-loss {unknown[0]}: nothing is lost; remove it"
    )


def _fate(part: Converted | Kept, *, as_yaml: bool) -> str:
    if isinstance(part, Kept):
        return "is kept" if as_yaml else "stays where it is: the result has only servings"
    made = ", ".join(title_of(manifest.body) for manifest in part.compiled.manifests)
    return f"becomes {made}"


def _covers(accepted: str, name: str) -> bool:
    """Return whether a name is accepted, by itself or as a part of an accepted field."""
    return name == accepted or name.startswith((f"{accepted}.", f"{accepted}["))


def refuse(losses: Sequence[Loss]) -> None:
    """Say that nothing was written, and how to accept these losses."""
    names = dict.fromkeys(loss.name for loss in losses)
    if names:
        flags = " ".join(f"--accept-loss {shell_word(name)}" for name in names)
        say(f"To convert without {'it' if len(names) == 1 else 'them'}: {flags}")
    lost = {0: "", 1: ": 1 loss is not accepted"}
    why = lost.get(len(losses), f": {len(losses)} losses are not accepted")
    say(f"nothing was written{why}")


def say(text: str) -> None:
    """Write one line for people."""
    sys.stderr.write(f"{visible(text)}\n")


def in_flags(error: SpecError) -> str:
    """Return the text of an error, with options of `convert` for changes of arguments.

    The arguments come from the object, so that its file may not have the field at all.
    """
    return str(SpecError([_for_convert(each) for each in error.findings], error.subject))


def _for_convert(finding: Finding) -> Finding:
    """Rewrite a remedy for arguments as one for the command line: --set FIELD=VALUE.

    A change of an option stays as it is: at its path is the whole command line.
    """
    first = re.split(r"[.\[]", finding.path, maxsplit=1)[0]
    if finding.rule == _OF_OBJECTS or first not in ModelServingSpec.model_fields:
        return finding
    if any(change.option for fix in fixes_of(finding.remedy) for change in fix):
        return replace(finding, remedy=_BACKEND.sub("convert it to ", finding.remedy))
    found = _REMOVE.match(finding.remedy)
    removed = finding.path if found is None or found[1] == "it" else found[1]
    remedy = _REMOVE.sub(f"remove it with --set {removed}=null", finding.remedy)
    remedy = _VALUE.sub(rf"write --set {finding.path}=\1", remedy)
    if text := _TEXT.match(remedy):
        plain, quoted = f"{finding.path}={text[1]}", f"\"{finding.path}='{text[1]}'\""
        remedy = f"write --set {shell_word(plain) if is_text(text[1]) else quoted}"
    return replace(finding, remedy=_BACKEND.sub("convert it to ", remedy))


PYTHON, STACK = "python", "stack"
TYPESCRIPT = "typescript"
_PROGRAMS = {PYTHON: ("__main__.py", write_program), TYPESCRIPT: ("index.ts", write_typescript)}
_TARGETS = (*EMITTERS, *_PROGRAMS, STACK)
_IN_PULUMI = f"{PYTHON}, {TYPESCRIPT} or {STACK}"
_EXITS = """exit status:
  0  everything was converted
  1  nothing was written: the backend cannot express a field, a loss was not accepted, or an
     object would be made twice
  2  nothing was written: wrong usage, or a file that cannot be read or has nothing to convert"""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "convert",
        help=help_text,
        description="Convert servings in files, of most kinds that `check` reads, to the objects "
        "of a backend, to a Pulumi program or to a stack file. What the result does not keep is "
        "listed by name, and must be accepted.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", metavar="FILE", nargs="*", help="YAML or JSON, or - for stdin")
    _about_a_cluster(parser)
    parser.add_argument("--to", metavar="TARGET", help=f"required: one of {', '.join(_TARGETS)}")
    parser.add_argument(
        "--backend",
        choices=EMITTERS,
        help=f"with --to {_IN_PULUMI}: the backend of the servings; default: the one that "
        "the objects are for",
    )
    parser.add_argument(
        "--accept-loss",
        metavar="NAME",
        action="append",
        default=[],
        help="accept that this is not kept: the path of a field, which includes all below "
        "it, or another name that the command lists; can be repeated",
    )
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        action="append",
        default=[],
        help="an argument of the result, by its path in a ModelServing, such as "
        "recovery_policy=null or backend_options.kind=LLMInferenceService; can be repeated",
    )
    parser.add_argument(
        "-o",
        "--to-folder",
        metavar="FOLDER",
        help="write files there, and overwrite none; default: standard output",
    )
    parser.set_defaults(run=lambda asked: run(asked, parser))


def _about_a_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options for a cluster in place of files."""
    parser.add_argument(
        "--from-cluster",
        action="store_true",
        help="read the servings of a cluster in place of files",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help="with --from-cluster: the namespace to read; default: all namespaces",
    )
    add_cluster(parser)


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Convert the files and return the exit status."""
    try:
        changes = _changes(asked)
        if not asked.from_cluster:
            with Progress(sys.stderr, "converting"):
                sources = [from_file(path, changes) for path in asked.paths]
            return _convert(sources, asked, changes)
        with opened(asked, parser) as (cluster, _version):
            with Progress(sys.stderr, f"reading {cluster.server}"):
                source = from_cluster(cluster, asked.namespace, changes)
            return _convert([source], asked, changes)
    except (UsageError, ChangeError, ProofError, OSError) as error:
        sys.stderr.write(f"kthena-components convert: {visible(str(error))}\n")
        return ERROR


def _convert(files: Sequence[Source], asked: argparse.Namespace, changes: Changes) -> int:
    """Write the result, unless a file is refused, a loss is not accepted or objects clash."""
    if not any(file.conversion.servings or file.conversion.errors for file in files):
        raise UsageError(_nothing(files))
    as_yaml = asked.to in EMITTERS
    refused = [error for file in files for error in file.conversion.errors]
    for file in files:
        for line in "\n".join(map(in_flags, file.conversion.errors)).splitlines():
            say(line if line.startswith(" ") else f"{file.name}: {line}")
    if not refused:
        require_losses(files, asked.accept_loss, as_yaml=as_yaml)
    open_losses = list(report(files, asked.accept_loss, as_yaml=as_yaml))
    clashes = list(find_clashes(files, as_yaml=as_yaml, as_stack=asked.to == STACK))
    for clash in clashes:
        say(str(clash))
    if refused or open_losses or clashes:
        refuse(open_losses)
        return PROBLEM
    with Progress(sys.stderr, "writing the result"):
        texts = _written(files, asked.to, changes)
    if asked.to_folder is None:
        sys.stdout.write("---\n".join(texts.values()))
    else:
        _write(Path(asked.to_folder), texts)
    return SUCCESS


def _nothing(files: Sequence[Source]) -> str:
    if any(file.is_live for file in files):
        kinds = ", ".join(kind for _, kind in kinds_to_read())
        return f"there is nothing to convert; --from-cluster reads {kinds}"
    return "there is nothing to convert: no object runs an engine"


def _changes(asked: argparse.Namespace) -> Changes:
    """Read the command line.

    Raises:
        UsageError: It is wrong.
    """
    if asked.from_cluster == bool(asked.paths):
        raise UsageError("name files, or write --from-cluster alone")
    if asked.namespace and not asked.from_cluster:
        raise UsageError("--namespace is only for --from-cluster")
    if asked.to is None:
        raise UsageError(f"--to is missing; name one of {', '.join(_TARGETS)}")
    if asked.to not in _TARGETS:
        close = nearest(asked.to, _TARGETS)
        hint = f"write {close}" if close else f"known: {', '.join(_TARGETS)}"
        raise UsageError(f"--to {asked.to}: there is no such target; {hint}")
    if asked.to in EMITTERS and asked.backend is not None:
        raise UsageError(f"--backend is only for --to {_IN_PULUMI}")
    if asked.to in _PROGRAMS and asked.from_cluster and not asked.to_folder:
        raise UsageError(f"--from-cluster --to {asked.to} writes two files; write -o FOLDER")
    target = asked.to if asked.to in EMITTERS else asked.backend or SAME
    return Changes(
        target=target,
        arguments=dict(map(_argument, asked.set)),
        # In UTC, so that a waiver expires for everybody at the same time.
        today=today(),
    )


def _argument(text: str) -> tuple[str, Any]:
    """Read FIELD=VALUE of --set; the value is YAML."""
    path, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"--set {text}: write FIELD=VALUE")
    try:
        found = yaml.load(value, Loader=Loader)  # noqa: S506 - it builds only plain values
    except yaml.YAMLError:
        message = (
            "the value is not valid YAML: put a string with special characters into double quotes"
        )
        raise UsageError(f"--set {text}: {message}") from None
    if half := lone_surrogate(found):
        raise UsageError(f"--set {text}: the value has {half}, half a character: write it in UTF-8")
    return path, found


def _written(files: Sequence[Source], target: str, changes: Changes) -> Mapping[str, str]:
    """Return the strings to write, by file name."""
    servings = all_servings(files)
    origin = f"converted from {', '.join(Path(file.name).name for file in files)}"
    if target in _PROGRAMS:
        name, write = _PROGRAMS[target]
        program = {name: write(servings, origin, changes.today)}
        return program | {name: text for file in files for name, text in _imports(file)}
    if target == STACK:
        return {"Pulumi.converted.yaml": write_stack(servings, origin, changes.today)}
    texts: dict[str, str] = {}
    for file in files:
        name = "converted.yaml" if file.name == shown_name(STDIN) else Path(file.name).name
        if name in texts:
            raise UsageError(f"two of the files are called {name}; convert them one by one")
        texts[name] = write_yaml(file.conversion.parts)
    return texts


def _imports(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the file for `pulumi import`, if a program is for objects that exist."""
    if source.is_live:
        found = source.conversion.servings
        there = [source.existing(part) for part in found]
        yield IMPORTS, write_imports(titled(found), there, version("pulumi-kubernetes"))


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write new files, all or none.

    Raises:
        UsageError: One of them exists already.
    """
    there = [name for name in texts if (folder / name).exists()]
    if there:
        raise UsageError(f"{folder / there[0]} exists already; remove it, or choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)
        say(f"wrote {folder / name}")
    if IMPORTS in texts:
        say(f"Before the first `pulumi up`, in {folder}: {COMMAND}")
