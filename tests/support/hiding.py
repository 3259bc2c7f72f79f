"""Hides parts of manifests: what was known is then a variable, a placeholder or an output."""

import copy
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kthena_components.core.engines.dialects import takes_number
from kthena_components.core.engines.placeholders import LATE_VARIABLES
from kthena_components.core.facts.container import TOKEN_VARIABLES
from kthena_components.core.values.blanks import mark_blanks
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from tests.toughness.corpus import Place, at, places, put

Body = dict[str, Any]
OUTPUT = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
TEXTS = ("${HIDDEN}", "{{ hidden }}", "<hidden>")
"""Strings of a file that somebody fills in."""
_WORDS = frozenset({"args", "command"})
_SAME = frozenset({"apiVersion", "kind"})
"""Fields that say which object it is."""
_FILES = frozenset({"ConfigMap", "Secret"})
"""Kinds whose data has no placeholders: docs/limits.md."""
_NAMESPACE = (("metadata",), ("metadata", "namespace"))
"""Where such an object states its namespace: without it, it is taken for one beside the pods."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
"""The start of an assignment, which no variable can stand for."""
_TOKEN = re.compile(r"[^\s;|&<>(){}\"'$`\\#]+")
"""A word of a script, or a part of one, without anything that the shell reads."""
_BEHIND = re.compile(r"\s+(\\\n\s*)?-|\s*$")
"""What follows an option with its values."""
_SHELL, _QUOTED = ("$HIDDEN", '"${HIDDEN[@]}"', "{{ hidden }}"), ("{{ hidden }}",)
"""What hides a word of a script; in single quotes `$` is a character."""


class Hiding(NamedTuple):
    """A part of an object, and what hides it."""

    place: Place
    value: Any

    def of(self, body: Body) -> Body:
        """Return the object with the part hidden, as a file with placeholders is read."""
        hidden = put(body, self.place, self.value)
        made: Body = mark_blanks(hidden, LATE_VARIABLES, takes_number)
        return made

    def __str__(self) -> str:
        """Name the place, and show what hides it."""
        return f"{'.'.join(map(str, self.place))} -> {self.value!r}"


def hidings(body: Body) -> Iterator[Hiding]:
    """List what can be hidden in an object: fields, words, variables and files."""
    for place in places(body):
        value = at(body, place)
        if place[-1] in _SAME and len(place) == 1:
            continue
        if body.get("kind") in _FILES and place in _NAMESPACE:
            continue
        if any(step in _WORDS for step in place):
            yield from _in_words(place, value)
        else:
            texts = () if "data" in place and body.get("kind") in _FILES else TEXTS
            yield from (Hiding(place, text) for text in (OUTPUT, *texts))
        if isinstance(value, dict) and _WORDS & value.keys() and "image" in value:
            yield from (Hiding(place, made) for made in _around(value))


def _in_words(place: Place, value: Any) -> Iterator[Hiding]:
    """Hide the words of a command line, or of the script in it."""
    if isinstance(value, list):
        yield Hiding(place, OUTPUT)
        yield from (Hiding(place, [*value, more]) for more in ("$(HIDDEN)", "${HIDDEN}", OUTPUT))
    elif not isinstance(value, str) or not isinstance(place[-1], int):
        return
    elif any(map(str.isspace, value)) and not _is_json(value):
        yield from (Hiding(place, made) for made in in_script(value))
    else:
        option, equals, _ = value.partition("=")
        heads = ("", f"{option}=") if equals else ("",)
        ends = ("$(HIDDEN)", *TEXTS, OUTPUT)
        yield from (Hiding(place, f"{head}{end}") for head in heads for end in ends)


def _is_json(word: str) -> bool:
    """Return whether a word is JSON, or an option with it: it is not a script."""
    return word.startswith("{") or (word[:1] == "-" and word.partition("=")[2].startswith("{"))


def in_script(script: str) -> Iterator[str]:
    """Hide each word of a script, and put a hidden word behind each option with its values."""
    for match in _TOKEN.finditer(script):
        before, word, after = script[: match.start()], match[0], script[match.end() :]
        option, equals, _ = word.partition("=")
        if _ASSIGNMENT.match(word):
            continue
        quoted = before.count("'") % 2 == 1
        for text in _QUOTED if quoted else _SHELL:
            yield f"{before}{text}{after}"
            if equals and text[0] != '"':
                yield f"{before}{option}={text}{after}"
            if not quoted and _BEHIND.match(after):
                yield f"{before}{word} {text}{after}"


def _around(container: Body) -> Iterator[Body]:
    """Hide the variables of a container."""
    listed = container.get("env")
    env: list[Any] = listed if isinstance(listed, list) else []
    source = {"configMapRef": {"name": "not-here"}}
    yield {**container, "envFrom": [*container.get("envFrom", ()), source]}
    for index, item in enumerate(env):
        if isinstance(item, dict) and "value" in item:
            is_token = item.get("name") in TOKEN_VARIABLES
            for kind in ("secretKeyRef",) if is_token else ("configMapKeyRef", "secretKeyRef"):
                made = copy.deepcopy(env)
                value = {kind: {"name": "not-here", "key": "hidden"}}
                made[index] = {"name": item.get("name"), "valueFrom": value}
                yield {**container, "env": made}
