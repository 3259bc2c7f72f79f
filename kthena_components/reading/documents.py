"""Reads YAML and JSON documents from untrusted text, within fixed limits.

A document that cannot be read is reported with its line, and the following ones are still read.
"""

import json
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import yaml

from kthena_components.core.values.blanks import may_have_blanks
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable, may_name_object
from kthena_components.reading.identity import (
    MERGES,
    IdentityError,
    NoObjectError,
    Wanted,
    check_body,
    check_items,
    named,
    read_head,
    top_fields,
)
from kthena_components.reading.loader import (
    LimitError,
    Loader,
    MapKeyError,
    check_aliases,
    check_depth,
    check_json_depth,
)

# A pattern that starts with a line feed is searched much faster than one with ^.
_MARKER, _FIRST = (regex(rf"{start}(---|\.\.\.)(?=\s|\Z)") for start in (r"\n", ""))
_DIRECTIVES = regex(r"(?>(?:[ \t\r]*+(?:[%#][^\n]*+)?\n)*)")
_BLANK = regex(r"\s*")
_DIGITS = 1000
_BOM = "\ufeff"
_BEFORE = regex(rf"\A(?:---[^\n]*+\n)?(?>(?:[ \t\r{_BOM}]*+(?:#[^\n]*+)?\n)*){_BOM}*")
"""What is before the content of a document, where kubectl passes over marks of byte order."""
_ONLY_HERE = frozenset({"found unexpected ':'"})
"""What libyaml refuses, and kubectl reads."""
_TEMPLATE = regex(r"\{\{|\{%")
_TOLD_TEMPLATE = "is a template with {{ or {%, and not valid YAML: check its output"


class _ObjectError(Exception):
    """An object that is wanted cannot be read."""

    def __init__(self, why: Exception) -> None:
        """Keep the reason."""
        super().__init__(str(why))
        self.why = why


_OBJECTS = (IdentityError, LimitError, _ObjectError)
"""Errors of documents that kubectl may read as objects."""
_REFUSED = (NoObjectError, MapKeyError)
"""Errors of documents that kubectl does not read either, such as templates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a file."""

    body: Any
    line: int
    """Its first line in the file."""
    node: yaml.Node | None = None
    """Its node, with the lines of its parts; None in JSON."""
    shift: int = 0
    """Lines of the file before the text that the node's line numbers refer to."""
    may_have_blanks: bool = False
    """Whether it may contain placeholders."""


def read_documents(
    text: str, file: str, wanted: Wanted, only: Container[int] | None = None
) -> Iterator[Document | Unreadable]:
    """Read the documents of a file. Of unwanted ones, only apiVersion and kind are read.

    A document whose first lines show that it is unwanted is not parsed (heads.py), so its syntax
    errors are not reported. All other documents that cannot be read are reported.

    `only` selects YAML documents by their shifts, to read some of them again.
    """
    is_named_json = file.endswith(".json")
    if not (is_named_json or text.lstrip()[:1] in {"{", "["}):
        yield from _read_yaml(text, file, wanted, only)
        return
    documents = list(_read_json(text, file))
    if any(isinstance(each, Unreadable) for each in documents):
        # YAML may start with a bracket, too, and kubectl reads both in a file with any name.
        others = list(_read_yaml(text, file, wanted, only))
        more = _count_objects(others) - _count_objects(documents)
        documents = others if more > 0 or (more == 0 and not is_named_json) else documents
    yield from documents


def _count_objects(documents: Iterable[Document | Unreadable]) -> int:
    return sum(
        each.is_object if isinstance(each, Unreadable) else "kind" in mapping(each.body)
        for each in documents
    )


def _read_json(text: str, file: str) -> Iterator[Document | Unreadable]:
    """Yield the documents of a JSON file, which may have several, one after another."""
    decoder = json.JSONDecoder(parse_int=_json_integer, parse_constant=_no_number)
    at, line = len(text) - len(text.lstrip()), 1
    counted = 0
    while at < len(text):
        line += text.count("\n", counted, at)
        counted = at
        try:
            body, end = decoder.raw_decode(text, at)
            check_json_depth(text[at:end], body)
            check_body(body)
        except json.JSONDecodeError as error:
            because = f"is not JSON: {error.msg}"
            yield Unreadable(file=file, because=because, line=error.lineno, column=error.colno)
            return
        except (IdentityError, LimitError) as error:
            is_object = not isinstance(error, NoObjectError)
            yield Unreadable(file=file, because=_reason(error), line=line, is_object=is_object)
        except (RecursionError, ValueError) as error:
            is_object = isinstance(error, RecursionError)
            yield Unreadable(file=file, because=_reason(error), line=line, is_object=is_object)
            return
        else:
            yield Document(body=body, line=line, may_have_blanks=may_have_blanks(text[at:end]))
        blank = _BLANK.match(text, end)
        at = blank.end() if blank else end


def _json_integer(digits: str) -> int | float:
    """Read an integer. Python refuses more than 4,300 digits; no field takes more than 20."""
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def _no_number(word: str) -> None:
    """Refuse NaN and Infinity, which only Python reads as JSON."""
    raise ValueError(f"is not JSON: {word} is not a number there")


def _read_yaml(
    text: str, file: str, wanted: Wanted, only: Container[int] | None
) -> Iterator[Document | Unreadable]:
    """Yield the documents of a YAML file: those that are wanted in full, of others the kind."""
    is_template = False
    for piece, before in _pieces(text):
        if only is not None and before not in only:
            continue
        if _BOM in piece:
            piece = _BEFORE.sub(_without_bom, piece)  # noqa: PLW2901 - the same document
        head = read_head(piece, wanted)
        if head is not None:
            body = {"apiVersion": head.version, "kind": head.kind}
            yield Document(body=body, line=before + head.line + 1)
            continue
        try:
            check_depth(piece)
            loader = Loader(piece)
            try:
                while loader.check_node():
                    yield _document(loader, piece, before, wanted)
            finally:
                loader.dispose()
        except Exception as error:  # noqa: BLE001 - PyYAML raises all sorts for odd scalars
            unreadable = _unreadable_document(error, piece, before, file)
            # Once for each file.
            if unreadable.because != _TOLD_TEMPLATE or not is_template:
                yield unreadable
            is_template = is_template or unreadable.because == _TOLD_TEMPLATE


def _unreadable_document(error: Exception, piece: str, before: int, file: str) -> Unreadable:
    """Report a document that cannot be read, and whether kubectl may read it as an object."""
    why = error.why if isinstance(error, _ObjectError) else error
    result = unreadable(why, piece, before, file)
    said = {getattr(why, "context", None), getattr(why, "problem", None)}
    is_strict = not said.isdisjoint(_ONLY_HERE) and may_name_object(piece.encode())
    if isinstance(why, _REFUSED) or not (is_strict or isinstance(error, _OBJECTS)):
        return result
    return replace(result, because=_reason(why), is_object=True)


def _without_bom(found: re.Match[str]) -> str:
    return found[0].replace(_BOM, "")


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """Split a text at its document markers; each part comes with the number of lines before it."""
    start = line = 0
    first = _FIRST.match(text)
    for marker in chain((first,) if first else (), _MARKER.finditer(text)):
        begins = marker[1] == "---"
        # Directives such as %YAML belong to the document after the marker.
        if begins and _DIRECTIVES.fullmatch(text, start, marker.start(1)):
            continue
        cut = marker.start(1) if begins else marker.end()
        yield text[start : marker.start(1)], line
        line += text.count("\n", start, cut)
        start = cut
    yield text[start:], line


def _document(loader: Any, piece: str, before: int, wanted: Wanted) -> Document:
    """Build one document, with its line in the file; other kinds only get their name."""
    node = loader.get_node()
    line = before + node.start_mark.line + 1
    if MERGES in piece:
        check_aliases(piece, node)
    fields = top_fields(node)
    version, kind = named(fields)
    # kubectl takes any object with items for a list.
    if not ("items" in fields or wanted(version, kind, piece)):
        return Document(body={"apiVersion": version, "kind": kind}, line=line)
    blanks = may_have_blanks(piece)
    try:
        check_aliases(piece, node)
        body = loader.build(node)
        check_items(body)
    except Exception as error:
        raise _ObjectError(error) from error
    return Document(body=body, line=line, node=node, shift=before, may_have_blanks=blanks)


_TABBED = regex(r"a tab character that violates|next token found character that cannot start")


def unreadable(error: Exception, piece: str, before: int, file: str) -> Unreadable:
    """Report where and why a piece of a file, after some lines, cannot be read."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        line, column = before + mark.line + 1, mark.column + 1
    elif isinstance(error, yaml.reader.ReaderError):
        read = piece.encode()[: error.position].decode(errors="ignore")
        line, column = before + read.count("\n") + 1, len(read) - (read.rfind("\n") + 1) + 1
    else:
        skipped = len(piece) - len(piece.lstrip())
        line, column = before + piece.count("\n", 0, skipped) + 1, None
    may_be = isinstance(error, yaml.MarkedYAMLError | NoObjectError)
    is_template = may_be and _TEMPLATE.search(piece) is not None
    because = _TOLD_TEMPLATE if is_template else _reason(error)
    return Unreadable(file=file, because=because, line=line, column=column)


def _reason(error: Exception) -> str:
    """Explain in one line why a document cannot be read."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"is not valid YAML: character U+{_code(error.character):04X} is not allowed"
    if isinstance(error, yaml.MarkedYAMLError):
        return _mistake(error)
    if isinstance(error, RecursionError):
        return "is nested too deeply to be read"
    if "integer string conversion" in str(error):
        return "has a whole number of more digits than any field takes: write a smaller one"
    return " ".join(str(error).split()) or f"cannot be read: {type(error).__name__}"


def _mistake(error: yaml.MarkedYAMLError) -> str:
    """Say what is wrong in a YAML text."""
    message = " ".join(part for part in (error.context, error.problem) if part)
    if _TABBED.search(message):
        return "is not valid YAML: has a tab before a field: indent with blanks only"
    if "found another document" in message:
        return "has a second document after ---, and is read as one: remove all but one"
    return f"is not valid YAML: {' '.join(message.split())}"


def broken_json(error: Exception) -> str:
    """Explain why a string that must be JSON cannot be read: a clause without its subject."""
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 at byte {error.start}"
    return _reason(error)


def _code(character: object) -> int:
    return character if isinstance(character, int) else ord(str(character)[:1] or "\0")
