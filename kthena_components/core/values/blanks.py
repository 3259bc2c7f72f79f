"""Finds placeholders: strings that a person or a program replaces before a file is applied.

envsubst, Terraform and Flux replace `${MODEL}`, Jinja and Helm replace `{{ model }}`, and readers
replace `<your token>` and `REPLACE_ME`. Other programs replace a name between two marks: `@NAME@`,
`%NAME%`, `{name}`, `#{name}#`, `[[name]]`, `((name))`. Only files have placeholders: in an object
that Pulumi is about to apply, the same text is the value.
"""

import re
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import Any

from kthena_components.core.values.read import group_kind, is_map, mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import BLANK_WORD, Blank

_MARKED = r"""
    \{\{ [^\n]{0,200}? \}\}
    | (?<!<) < (?: [A-Za-z] (?: [^<>\n]* [\w.)\]] )? )? >
    | (?<![A-Za-z0-9_]) (?:
        [A-Z0-9_]{0,64} PLACEHOLDER [A-Z0-9_]*
        | (?: REPLACE | CHANGE | FILL ) [_-]? (?: ME | THIS | WITH ) [A-Z0-9_-]*
        | (?: REPLACE_ | (?: REPLACED | FILLED | SET ) _BY_ | SET_AT_ ) [A-Z0-9_]+ | SET [_-] ME
        | (?: REPLACED | FILLED | SET ) [ ] BY [ ] [A-Z ]+
        | YOUR [_-] [A-Z0-9_-]+
        | __[A-Z][A-Z0-9_]{0,64}__
        | TODO | FIXME
    ) (?![A-Za-z0-9])
"""
_VARIABLE = r"\$ (?: \{ [A-Za-z_] [^{}\n]* \} | [A-Za-z_] [A-Za-z0-9_]* )"
_BETWEEN = r"""
    @ [A-Za-z_] [\w.-]{0,63} @
    | % [A-Za-z_] [\w.-]{2,63} %
    | \#\{ [^{}\n]{1,64} \}
    | \{ [ ]? [A-Za-z_] [\w.-]{0,63} [ ]? \}
    | \[\[ [ ]? [A-Za-z_] [\w.-]{0,63} [ ]? \]\]
    | \(\( [ ]? [A-Za-z_] [\w./-]{0,63} [ ]? \)\)
"""
"""Not in scripts, where these are tests, sums, formats of dates and patterns of sed."""
_IN_SCRIPT = regex(_MARKED, re.VERBOSE)
_ANYWHERE = regex(rf"{_MARKED} | {_BETWEEN} | {_VARIABLE}", re.VERBOSE)
_REFERENCE = regex(r"\$\([A-Za-z_][\w.-]*\)")
"""Kubernetes replaces `$(NAME)` in commands and variables only: elsewhere another program does."""
_WHOLE = regex(r"(?:replace|change)[_-]?me|set[_-]me|replaced-by-[a-z-]+|your-[a-z0-9-]+-here")
_NAME = regex(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_CAPITALS = regex(r"[A-Z][A-Z0-9_]*")
TO_REPLACE = regex(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""A word for a script to replace, in a place that takes no word: a number, or a resource's name."""
_OF_NAME = regex(r"[A-Z][A-Z0-9_]*_NAME")
_HINTS: Mapping[str, Collection[str]] = {
    "{": ("{{", "#{"),
    "_": ("__", "set_me"),
    "SET": ("SET_", "SET BY", "SET-ME"),
    "change": ("changeme", "change_me", "change-me"),
    "replace": ("replaceme", "replace_me", "replace-me", "replaced-by-"),
    **dict.fromkeys(
        (
            *("PLACEHOLDER", "REPLACE", "CHANGE", "FILL", "YOUR", "TODO", "FIXME"),
            *("your-", "set-me"),
        ),
        ("",),
    ),
}
"""Words of placeholders, by what is in all of them: most files have none of these."""
_SIGNS = (
    ("$", regex(r"\$[A-Za-z_{]")),
    ("<", regex(r"<[A-Za-z>]")),
    ("@", regex(r"@[A-Za-z_][\w.-]{0,63}@")),
    ("%", regex(r"%[A-Za-z_][\w.-]{2,63}%")),
    ("{", regex(r"\{ ?[A-Za-z_][\w.-]{0,63} ?\}")),
    ("[", regex(r"\[\[ ?[A-Za-z_][\w.-]{0,63} ?\]\]")),
    ("(", regex(r"\(\( ?[A-Za-z_][\w./-]{0,63} ?\)\)")),
)
"""Patterns, each with a letter that it needs and most files do not have."""
_HINT_PATTERNS = (
    regex(r"--[a-z][a-z0-9-]*[\"']?(?:=|,|\s)[\s\\\"'-]*[A-Z]"),
    regex(r"Ref[\"']?:\s*+\{?\s*+(?:[\"']?key\b.*\n\s*+)?[\"']?name[\"']?\s*+:\s*+[\"']?[A-Z]"),
    regex(r"ame[\"']?\s*:\s*[\"']?[A-Z][A-Z0-9_]{0,63}_NAME"),
    regex(r"-[tpde]p[\"']?(?:=|,|\s)[\s\\\"'-]*[A-Z]"),
    *(
        regex(rf"{end}[\"']?\s*:\s*\[?[\"']?(?:[A-Z]|[^\n]{{0,200}}\$\()")
        for end in (
            "ort",
            "size",
            "licas",
            "gpu",
            "cpu",
            "memory",
            "image",
            "\n {1,4}+[\"']?name",
            "laimName",
            "lassName",
            "countName",
        )
    ),
)
"""Several patterns, because one that begins with a letter is much faster to search."""
_PLAIN = frozenset(
    [
        "claimName",
        "containerPort",
        "hostPort",
        "image",
        "maxReplicas",
        "minReplicas",
        "nodePort",
        "port",
        "priorityClassName",
        "replicas",
        "runtimeClassName",
        "serviceAccountName",
        "size",
        "targetPort",
    ]
)
"""Fields whose values are numbers or have no capitals, so that a word in capitals is none of them:
`containerPort: PORT`, `image: VLLM_IMAGE`, `image: [URL]`."""
_NAMES = frozenset(
    {("metadata", "name"), ("metadata", "namespace")}
    | {(f"{kind}Ref", "name") for kind in ("configMap", "configMapKey", "secret", "secretKey")}
)
"""Such fields of one map."""
_CONTAINERS = frozenset({"containers", "initContainers"})
"""Lists whose members may have the object's own name."""
_NAMED = _CONTAINERS | {"volumes", "volumeMounts"}
"""Lists whose members have names without capitals: `name: PV_NAME` is to be replaced."""
_AMOUNTS = frozenset({"limits", "requests"})
"""Maps of such fields."""
_TEXTS = frozenset({"binaryData", "data", "stringData"})
"""The files in ConfigMaps and Secrets, in which most of these strings have other meanings: a chat
template contains `{{ messages }}`. No shell has a use for that."""
_TEMPLATED = regex(r"\{\{ [^\n]{0,200}? \}\}", re.VERBOSE)
_LINES = ("command", "args")
_OF_OPTION = regex(
    r"(?<![\w-])(?P<option>--?[a-z][\w-]*)(?P<between>=|[ \t]+|[ \t]*\\\n[ \t]*)"
    r"(?P<value>[A-Z][A-Z0-9_]*)(?![\w$(){}.-])",
    re.ASCII,
)
_OPEN = regex(r"--?[A-Za-z][\w.-]*=")


def may_have_blanks(text: str) -> bool:
    """Return whether a file may have placeholders. This is a quick test."""
    for part, words in _HINTS.items():
        if part in text and any(word in text for word in words):
            return True
    for sign, pattern in _SIGNS:
        if sign in text and pattern.search(text):
            return True
    return any(pattern.search(text) for pattern in _HINT_PATTERNS)


def is_blank(text: str, *, is_plain: bool = False) -> bool:
    """Return whether a string is or contains a placeholder.

    Args:
        text: The value of a field.
        is_plain: Whether the field is a number, or a string without capitals.
    """
    if "\n" in text:  # a file or a script
        return False
    if is_plain and (_CAPITALS.fullmatch(text) or _REFERENCE.search(text)):
        return True
    return _ANYWHERE.search(text) is not None or _WHOLE.fullmatch(text) is not None


def mark_blanks(
    body: Any,
    variables: Collection[str] = (),
    takes_number: Callable[[str], bool] = lambda _: False,
) -> Any:
    """Return an object with its placeholders marked; the same object if it has none.

    A string with a placeholder becomes a `Blank`. In a word of a command line only the placeholder
    is unknown, so the option before it is still known. `$NAME` is not a placeholder in a script,
    and not if the container has such a variable.

    Args:
        body: An object of a file.
        variables: Variables that controllers add to containers.
        takes_number: Tells of an option whether its value is a number, so that a word in capitals
            is a placeholder: `--port PORT`.
    """
    return _Marking(frozenset(variables), takes_number).part(body)


def mark_empty(body: Any) -> Any:
    """Return an object whose empty words in command lines are placeholders.

    For a chart that is rendered with nothing but its own values: `""`, and `--port=`. The keys of
    a Secret without keys are unknown.
    """
    if isinstance(body, list):
        return [mark_empty(item) for item in body]
    if not isinstance(body, Mapping):
        return body
    if group_kind(body) == ("", "Secret") and not (body.get("data") or body.get("stringData")):
        return {**body, "data": Blank("{}")}
    return {
        key: [_filled(word) for word in item]
        if key in _LINES and isinstance(item, list)
        else mark_empty(item)
        for key, item in body.items()
    }


def mark_encrypted(body: Any) -> Any:
    """Return an object that SOPS has encrypted as one whose encrypted values are unknown.

    Flux, Argo CD and helm-secrets decrypt it before the apply, and remove what SOPS has added.
    Source: getsops/sops stores/stores.go SopsMetadataKey; aes/cipher.go encre.
    """
    if not is_map(body) or not is_map(added := body.get("sops")) or "mac" not in added:
        return body
    return {key: _unread(item, key) for key, item in body.items() if key != "sops"}


def _unread(value: Any, key: Any) -> Any:
    if isinstance(value, str) and value.startswith("ENC[AES256_GCM,"):
        return BLANK_WORD if key in _LINES else Blank(value)
    if isinstance(value, list):
        return [_unread(item, key) for item in value]
    return {name: _unread(item, name) for name, item in value.items()} if is_map(value) else value


def _filled(word: Any) -> Any:
    if word is None:
        return BLANK_WORD
    is_open = isinstance(word, str) and (word == "" or _OPEN.fullmatch(word) is not None)
    return f"{word}{BLANK_WORD}" if is_open else word


class _Marking:
    """The walk through one object."""

    def __init__(self, variables: frozenset[str], takes_number: Callable[[str], bool]) -> None:
        self._variables, self._takes_number = variables, takes_number
        self._names: set[str] = set()
        """The names of objects that are words in capitals."""

    def part(self, value: Any, key: Any = "", parent: Any = "") -> Any:
        """Mark a value. `key` is its field, and `parent` the field of the map around it."""
        if isinstance(value, str):
            plain = key in _PLAIN or parent in _AMOUNTS or (parent, key) in _NAMES
            if is_blank(value, is_plain=plain) or self._is_late_name(value, key, parent):
                return Blank(value)
            return value
        if isinstance(value, Mapping):
            return self._map(value, key)
        if isinstance(value, list):
            if key in _PLAIN and (word := _bracketed(value)):
                return Blank(word)
            within = key if key in _NAMED else ""
            made = [self.part(item, within) for item in value]
            return (
                made if any(new is not old for new, old in zip(made, value, strict=True)) else value
            )
        return value

    def _is_late_name(self, value: str, key: Any, parent: Any) -> bool:
        """Return whether the name of a container or a volume is a placeholder, as the object's."""
        if key != "name" or parent not in _NAMED:
            return False
        is_own = value in self._names and parent in _CONTAINERS
        return is_own or _OF_NAME.fullmatch(value) is not None

    def _map(self, value: Mapping[Any, Any], parent: Any) -> Any:
        """Mark placeholders in a map; a script's own variables are none in its command."""
        name = mapping(value.get("metadata")).get("name")
        if isinstance(name, str) and _CAPITALS.fullmatch(name):
            self._names.add(name)
        own = _variables(value) | self._variables if any(key in value for key in _LINES) else None
        made: dict[Any, Any] = {}
        for key, item in value.items():
            if key in _TEXTS and isinstance(item, Mapping):
                made[key] = _files(item)
            elif own is not None and key in _LINES:
                made[key] = self._numbers(_words(item, own))
            else:
                made[key] = self.part(item, key, parent)
        return made if any(made[key] is not item for key, item in value.items()) else value

    def _numbers(self, words: Any) -> Any:
        """Mark the words in capitals that are values of options with numbers."""
        if isinstance(words, str):
            return self._in_word(words)
        if not isinstance(words, list):
            return words
        made = [self._in_word(word) if isinstance(word, str) else word for word in words]
        for index, (option, word) in enumerate(pairwise(words)):
            if isinstance(option, str) and isinstance(word, str) and self._is_open(option, word):
                made[index + 1] = BLANK_WORD
        return words if made == words else made

    def _is_open(self, option: str, word: str) -> bool:
        is_capital = len(word) > 1 and _CAPITALS.fullmatch(word) is not None
        return is_capital and option.startswith("-") and self._takes_number(option)

    def _in_word(self, word: str) -> str:
        """Mark such values in `--port=PORT`, and in a script."""

        def blank(match: re.Match[str]) -> str:
            is_open = self._is_open(match["option"], match["value"])
            return f"{match['option']}{match['between']}{BLANK_WORD}" if is_open else match[0]

        return _OF_OPTION.sub(blank, word)


def _bracketed(items: list[Any]) -> str:
    """Return a word in capitals and brackets, which YAML reads as a list, as written: [URL]."""
    if len(items) != 1 or not isinstance(items[0], str) or not _CAPITALS.fullmatch(items[0]):
        return ""
    return f"[{items[0]}]"


def _files(texts: Mapping[Any, Any]) -> Any:
    """Mark the scripts in a ConfigMap that a template engine still has to expand."""
    made = {name: Blank(text) if _is_draft(name, text) else text for name, text in texts.items()}
    return made if any(isinstance(text, Blank) for text in made.values()) else texts


def _is_draft(name: Any, text: Any) -> bool:
    is_script = isinstance(name, str) and ("." not in name or name.endswith((".sh", ".bash")))
    return is_script and isinstance(text, str) and _TEMPLATED.search(text) is not None


def _variables(container: Mapping[Any, Any]) -> frozenset[str]:
    """List the variables of a container."""
    listed = container.get("env")
    items = listed if isinstance(listed, list) else ()
    return frozenset(str(item.get("name")) for item in items if isinstance(item, Mapping))


def _words(words: Any, variables: Collection[str]) -> Any:
    """Mark the placeholders in a command line."""
    if isinstance(words, str):
        return _word(words, variables)
    if not isinstance(words, list):
        return words
    made = [_word(word, variables) if isinstance(word, str) else word for word in words]
    return words if made == words else made


def _word(word: str, variables: Collection[str]) -> str:
    def blank(match: re.Match[str]) -> str:
        name = _NAME.match(match[0])
        return match[0] if name is not None and name[1] in variables else BLANK_WORD

    is_script = any(map(str.isspace, word))
    return (_IN_SCRIPT if is_script else _ANYWHERE).sub(blank, word)
