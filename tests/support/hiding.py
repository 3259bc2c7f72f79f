"""Hides parts of manifests: what was known is then a variable, a placeholder or an output."""

import copy
import re
from collections.abc import Iterator
from typing import Any

from kthena_components.core.engines.late import LATE_VARIABLES
from kthena_components.core.values.blanks import mark_blanks
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from tests.toughness.corpus import Place, at, places, put

Body = dict[str, Any]
OUTPUT = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
TEXTS = ("${HIDDEN}", "{{ hidden }}", "<hidden>")
"""Texts of a file that somebody fills in."""
_WORDS = frozenset({"args", "command"})
_SAME = frozenset({"apiVersion", "kind"})
"""Fields that say which object it is."""
_TOKEN = re.compile(r"[^\s;|&<>(){}\"'$`\\#]+")
"""A word of a script, or a part of one, without anything that the shell reads."""
_SHELL, _QUOTED = ("$HIDDEN", '"${HIDDEN[@]}"', "{{ hidden }}"), ("{{ hidden }}",)
"""What hides a word of a script; in single quotes `$` is a character."""


def hidings(body: Body) -> Iterator[tuple[str, Body]]:
    """Hide one part of an object after another: fields, words, variables and files."""
    for place in places(body):
        value = at(body, place)
        if place[-1] in _SAME and len(place) == 1:
            continue
        shown = ".".join(map(str, place))
        if any(step in _WORDS for step in place):
            yield from ((f"{shown}: {how}", made) for how, made in _in_words(body, place, value))
        else:
            yield f"{shown}: output", put(body, place, OUTPUT)
            for text in TEXTS:
                yield f"{shown}: {text}", mark_blanks(put(body, place, text), LATE_VARIABLES)
        if isinstance(value, dict) and _WORDS & value.keys() and "image" in value:
            yield from ((f"{shown}: {how}", put(body, place, made)) for how, made in _around(value))


def _in_words(body: Body, place: Place, value: Any) -> Iterator[tuple[str, Body]]:
    """Hide the words of a command line, or of the script in it."""
    if isinstance(value, list):
        for text in ("$(HIDDEN)", "${HIDDEN}", OUTPUT):
            yield f"and {text}", mark_blanks(put(body, place, [*value, text]), LATE_VARIABLES)
        yield "output", put(body, place, OUTPUT)
    elif not isinstance(value, str) or not isinstance(place[-1], int):
        return
    elif any(map(str.isspace, value)):
        for how, made in in_script(value):
            yield how, mark_blanks(put(body, place, made), LATE_VARIABLES)
    else:
        option, equals, _ = value.partition("=")
        heads = ("", f"{option}=") if equals else ("",)
        for text in (f"{head}{end}" for head in heads for end in ("$(HIDDEN)", *TEXTS, OUTPUT)):
            yield text, mark_blanks(put(body, place, text), LATE_VARIABLES)


def in_script(script: str) -> Iterator[tuple[str, str]]:
    """Hide each word of a script, and put a hidden word behind each option with its values."""
    for match in _TOKEN.finditer(script):
        before, word, after = script[: match.start()], match[0], script[match.end() :]
        option, equals, _ = word.partition("=")
        quoted = before.count("'") % 2 == 1
        for text in _QUOTED if quoted else _SHELL:
            yield f"{word} -> {text}", f"{before}{text}{after}"
            if equals and text[0] != '"':
                yield f"{word} -> {option}={text}", f"{before}{option}={text}{after}"
            if not quoted and re.match(r"\s+(\\\n\s*)?-|\s*$", after):
                yield f"{text} behind {word}", f"{before}{word} {text}{after}"


def _around(container: Body) -> Iterator[tuple[str, Body]]:
    """Hide the variables of a container."""
    env = container.get("env")
    source = {"configMapRef": {"name": "not-here"}}
    yield "envFrom", {**container, "envFrom": [*container.get("envFrom", ()), source]}
    for index, item in enumerate(env if isinstance(env, list) else ()):
        if isinstance(item, dict) and "value" in item:
            for kind in ("configMapKeyRef", "secretKeyRef"):
                made = copy.deepcopy(env)
                made[index] = {
                    "name": item.get("name"),
                    "valueFrom": {kind: {"name": "not-here", "key": "hidden"}},
                }
                yield f"env[{index}] from {kind}", {**container, "env": made}
