"""`kthena-components convert`: writes servings of one backend for another one."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
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
from kthena_components.cli.convert.report import in_flags, refuse, report, require_losses, say
from kthena_components.cli.convert.sources import (
    Source,
    UsageError,
    all_servings,
    from_cluster,
    from_file,
)
from kthena_components.cli.shared_options import add_cluster, opened
from kthena_components.cli.terminal import Progress
from kthena_components.convert.conversion import (
    SAME,
    ChangeError,
    Changes,
)
from kthena_components.convert.sources_and_kept import kinds_to_read
from kthena_components.core.findings import nearest, today
from kthena_components.core.values.display import lone_surrogate, visible
from kthena_components.reading.files import STDIN, shown_name
from kthena_components.reading.loader import Loader
from kthena_components.systems import EMITTERS

DONE, REFUSED, WRONG = 0, 1, 2
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


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", told: str) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "convert",
        help=told,
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
        return WRONG


def _convert(files: Sequence[Source], asked: argparse.Namespace, changes: Changes) -> int:
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
        return REFUSED
    with Progress(sys.stderr, "writing the result"):
        texts = _written(files, asked.to, changes)
    if asked.to_folder is None:
        sys.stdout.write("---\n".join(texts.values()))
    else:
        _write(Path(asked.to_folder), texts)
    return DONE


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
    path, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"--set {text}: write FIELD=VALUE")
    try:
        found = yaml.load(value, Loader=Loader)  # noqa: S506 - it builds only plain values
    except yaml.YAMLError:
        told = "the value is not valid YAML: put a text with special characters into double quotes"
        raise UsageError(f"--set {text}: {told}") from None
    if half := lone_surrogate(found):
        raise UsageError(f"--set {text}: the value has {half}, half a character: write it in UTF-8")
    return path, found


def _written(files: Sequence[Source], target: str, changes: Changes) -> Mapping[str, str]:
    """Return the texts to write, by file name."""
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
