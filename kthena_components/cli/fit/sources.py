"""Reads the objects that `fit` places: manifests, charts, and the servings of stacks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kthena_components.cli.check.context import Texts
from kthena_components.cli.check.files import CheckOptions, rendered_in
from kthena_components.cli.sources import is_wanted, objects_of
from kthena_components.cluster.stack_servings import ReadStack, StackFileError, read_stack_file
from kthena_components.core.values.display import lone_surrogate
from kthena_components.core.values.read import first_unknown, group_kind, mapping
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import STDIN, Unreadable, read_text, shown_name
from kthena_components.reading.folders import find_files
from kthena_components.reading.layout import arrange
from kthena_components.reading.project import PROGRAM_SUFFIXES, PROJECT_FILES
from kthena_components.systems import find_emitter, find_kind
from kthena_components.systems.volcano.emit_cluster import emit_queue

Body = Mapping[str, Any]

_RENDER = (
    "Let a stack render them (pulumi config set kubernetes:renderYamlToDirectory rendered; "
    "pulumi up), and name that folder."
)
_PROGRAM = f"is a program, whose manifests only Pulumi knows. {_RENDER}"
_EMPTY = f"lists no servings, so a program makes its manifests, if there are any. {_RENDER}"


_APART = "ask about one folder, file or values file at a time, or rename one of the two"


class _SourceObject(NamedTuple):
    """An object, and the file, the rendering or the stack that has it."""

    source: str
    body: Body


class SourceError(ValueError):
    """An argument of `fit` cannot be read. One sentence for each reason."""

    def __init__(self, reasons: Sequence[str]) -> None:
        """Keep the sentences."""
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


def objects_asked(asked: Iterable[str], folder: Path) -> tuple[list[Body], list[str]]:
    """Return the objects of stacks and paths, and notes about what was not rendered.

    A word without a slash and a suffix is a stack of the project in the folder, if it has it.

    Raises:
        SourceError: With all reasons at once.
    """
    paths, found, wrong = list[str](), list[_SourceObject](), list[str]()
    for word in dict.fromkeys(asked):
        if word == STDIN or "/" in word or Path(word).suffix:
            paths.append(word)
            continue
        try:
            stack = read_stack_file(folder, word)
            found += (_SourceObject(f"stack {word}", body) for body in stack_objects(stack))
        except SourceError as error:
            wrong += error.reasons
        except StackFileError as error:
            if Path(word).exists():
                paths.append(word)
            elif _is_project(str(folder)):
                wrong.append(f"{error}; and there is no file or folder '{word}'.")
            else:
                none = f"there is no file or folder '{word}', and no Pulumi project here"
                wrong.append(
                    f"{none}: name a file or a folder, or a stack in the project's folder."
                )
    read, notes, unreadable = _read([path for path in paths if not _is_source(path)])
    found += read
    wrong += unreadable
    for path in paths:
        if _is_source(path) or (_is_project(path) and not _has_objects(path, paths, read)):
            wrong.append(f"{path}: {_PROGRAM}")
    wrong += _twice(found)
    if wrong:
        raise SourceError(wrong)
    return [one.body for one in found], notes


def _twice(found: Iterable[_SourceObject]) -> Iterator[str]:
    """Report objects with pods that are there twice, as in the overlays of two clusters."""
    first = dict[tuple[object, ...], str]()
    again = dict[tuple[str, str], list[str]]()
    for source, body in found:
        kind, metadata = find_kind(group_kind(body)), mapping(body.get("metadata"))
        name, space = metadata.get("name"), metadata.get("namespace") or "default"
        if kind is None or not (kind.pods or kind.demand or kind.facts) or not name:
            continue
        if first_unknown(name, space) is None:
            title = f"{body['kind']} {space}/{name}"
            key = group_kind(body), title
            if key in first:
                again.setdefault((first[key], source), []).append(title)
            first.setdefault(key, source)
    for (before, source), titles in again.items():
        apart = before != source
        who = f"{before} and {source} both have" if apart else f"{source} has"
        others = len(titles) - 1
        more = f"; {others} more {'is' if others == 1 else 'are'} alike" if others else ""
        yield (
            f"{who} {titles[0]}{'' if apart else ' twice'}, so it would be counted twice, and one "
            f"cluster has it once{more}: {_APART if apart else 'remove or rename one of the two'}."
        )


def _is_source(path: str) -> bool:
    return Path(path).suffix in PROGRAM_SUFFIXES and Path(path).is_file()


def _is_project(path: str) -> bool:
    return any(Path(path, name).exists() for name in PROJECT_FILES)


def _has_objects(path: str, paths: Sequence[str], read: Sequence[_SourceObject]) -> bool:
    """Return whether some of the objects that were read are of this path."""
    if not read or len(paths) == 1:
        return bool(read)
    return any(not isinstance(each, Unreadable) for each in _in_paths([path]))


def _read(paths: Sequence[str]) -> tuple[list[_SourceObject], list[str], list[str]]:
    """Return the objects in paths, notes, and what cannot be read."""
    found, notes, wrong = list[_SourceObject](), list[str](), list[str]()
    for each in _in_paths(paths) if paths else ():
        if isinstance(each, _SourceObject):
            found.append(each)
        elif each.is_note:
            notes.append(str(each))
        else:
            wrong.append(f"{each}.")
    return found, notes, wrong


def stack_objects(stack: ReadStack) -> list[Body]:
    """Return what a stack creates: HyperNodes, queues, and the objects of its servings.

    Raises:
        SourceError: An update would be refused, or the stack is of a program that does not read
            its servings from the config.
    """
    if stack.refusals:
        raise SourceError([str(finding) for finding in stack.refusals])
    if stack.is_empty:
        raise SourceError([f"{stack.file}: {_EMPTY}"])
    emitters = [(plan, find_emitter(plan.backend)) for plan in stack.need.plans]
    return [
        *stack.need.hyper_nodes,
        *(emit_queue(queue).body for queue in stack.spec.queues),
        *(m.body for plan, emitter in emitters if emitter for m in emitter.emit(plan)),
    ]


def _in_paths(paths: Sequence[str]) -> Iterator[_SourceObject | Unreadable]:
    """Yield the objects in files, folders, charts and kustomizations, and what cannot be read."""
    found = find_files(paths)
    layout = arrange(found)
    with rendered_in(layout, found, CheckOptions(), Texts(found.named)) as rendered:
        yield from rendered.notes
        yield from layout.unreadable
        walked = [each for each in found.files if isinstance(each, str)]
        loose = [each for each in walked if each not in found.named]
        kept = found.named.union(layout.objects(loose, rendered.covered))
        yield from (each for each in found.files if isinstance(each, Unreadable))
        for path in (each for each in walked if each in kept):
            yield from _in_text(path, shown_name(path), named=path in found.named)
        for rendering in rendered.renderings:
            yield from _in_text(str(rendering.output), rendering.name, named=False)


def _in_text(path: str, name: str, *, named: bool) -> Iterator[_SourceObject | Unreadable]:
    """List the objects in a file, and what of it cannot be read."""
    text = read_text(path, named=named)
    if isinstance(text, Unreadable):
        yield text
        return
    for document in read_documents(text, name, is_wanted):
        if isinstance(document, Unreadable):
            yield document
        elif half := lone_surrogate(document.body):
            message = f"contains {half}, half a character, which no cluster can store: remove it"
            yield Unreadable(file=name, because=message, line=document.line, is_object=True)
        else:
            yield from (_SourceObject(name, item.body) for item in objects_of(document))
