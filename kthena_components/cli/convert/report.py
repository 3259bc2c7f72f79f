"""Tells what became of each object of a conversion, what is lost, and what to do about it."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kthena_components.cli.convert.sources import Source, UsageError
from kthena_components.convert.conversion import Converted, Kept, title_of
from kthena_components.convert.lost_fields import Loss
from kthena_components.convert.sources_and_kept import short_title
from kthena_components.core.findings import Finding, SpecError, nearest
from kthena_components.core.spec.serving_spec import ModelServingSpec
from kthena_components.core.values.display import shell_word, visible
from kthena_components.core.values.regex import regex
from kthena_components.reading.settings import is_text

_REMOVE = regex(r"^remove (it|gang_policy)\b")
_VALUE = regex(r"^write ([A-Za-z0-9.-]+)(?=,|$)")
_TEXT = regex(r"^(?:write for example|put it in quotes:) '([^']*)'$")
_BACKEND = regex(r"\b(?:(?:write|use a ModelServing with) )?backend: (?=[a-z])")
_OF_OBJECTS = "convertible"
"""The rule of findings about what only the object states."""
_WHOLE_PARTS = frozenset({"metadata", "spec", "status"})
"""Parts of any object, which a script may accept for all its files."""
_LISTED = 20
"""Names in an error at most."""


def report(files: Sequence[Source], accepted: Sequence[str], *, as_yaml: bool) -> Iterator[Loss]:
    """Tell what became of each object, and yield the losses that were not accepted."""
    for file, part in _told_parts(files):
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


def _told_parts(files: Sequence[Source]) -> Iterator[tuple[Source, Converted | Kept]]:
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
    parts = [part for _, part in _told_parts(files)]
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
    first = re.split(r"[.\[]", finding.path, maxsplit=1)[0]
    if finding.rule == _OF_OBJECTS or first not in ModelServingSpec.model_fields:
        return finding
    found = _REMOVE.match(finding.remedy)
    removed = finding.path if found is None or found[1] == "it" else found[1]
    remedy = _REMOVE.sub(f"remove it with --set {removed}=null", finding.remedy)
    remedy = _VALUE.sub(rf"write --set {finding.path}=\1", remedy)
    if text := _TEXT.match(remedy):
        plain, quoted = f"{finding.path}={text[1]}", f"\"{finding.path}='{text[1]}'\""
        remedy = f"write --set {shell_word(plain) if is_text(text[1]) else quoted}"
    return replace(finding, remedy=_BACKEND.sub("convert it to ", remedy))
