"""Finds what a kubeconfig makes its reader do beyond API requests: run programs, send files.

A stack file of a pull request is untrusted, and so is the kubeconfig that it names: it is checked
before it is used. Pure.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.values.display import visible
from kthena_components.reading.files import Unreadable
from kthena_components.reading.settings import parse_map

_EXEC, _PROVIDER, _TOKEN = "exec", "auth-provider", "tokenFile"
_FILES = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", _TOKEN)),
}
"""Fields with paths, which are relative to the folder of the kubeconfig.

Source: client-go tools/clientcmd/loader.go, GetClusterFileReferences and GetAuthInfoFileReferences.
"""
_SHOWN = 80


def programs_of(content: Mapping[str, Any] | str, context: str | None = None) -> tuple[str, ...]:
    """List what a kubeconfig runs or sends, one clause each; empty when it does neither.

    Args:
        content: Its parsed content, or its text. Content that cannot be read is reported too:
            another reader may read it differently.
        context: The context that is used. None: any of them.

    Returns:
        Clauses such as `its user 'ci' runs 'sh -c …' (exec)`.

    Certificate and key files are not reported: a server sees only the certificate, which is no
    secret.
    """
    if isinstance(content, str):
        parsed = parse_map(content, "kubeconfig")
        if isinstance(parsed, Unreadable):
            return (f"it {parsed.because}",)
        content = parsed
    try:
        return tuple(clause for user in _users(content, context) for clause in _clauses(user))
    except (AttributeError, TypeError):
        return ("it is not a valid kubeconfig",)


def anchored(content: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Make the relative paths in a kubeconfig absolute."""
    made: dict[str, Any] = dict(content)
    for listed, (inner, fields) in _FILES.items():
        entries = content.get(listed)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            held = entry.get(inner) if isinstance(entry, Mapping) else None
            if isinstance(held, Mapping):
                made[listed] = list(made[listed])
                made[listed][index] = {**entry, inner: _anchored(held, fields, folder)}
    return made


def _anchored(held: Mapping[str, Any], fields: tuple[str, ...], folder: str) -> dict[str, Any]:
    paths = {key: held[key] for key in fields if held.get(key) and isinstance(held[key], str)}
    return {**held, **{key: str(Path(folder, path)) for key, path in paths.items()}}


def _users(content: Mapping[str, Any], context: str | None) -> Iterator[Mapping[str, Any]]:
    """Return the users that a context may select; all of them when that is unclear."""
    users = _entries(content, "users")
    meant = {
        str(_field(_field(entry, "context") or {}, "user"))
        for entry in _entries(content, "contexts")
        if context is not None and str(_field(entry, "name")) == context
    }
    named = [user for user in users if str(_field(user, "name")) in meant]
    yield from named or users


def _clauses(user: Mapping[str, Any]) -> Iterator[str]:
    """List what a kubeconfig's user does: runs programs, or sends the content of a file."""
    held = _field(user, "user") or {}
    title = f"its user '{_shown(_field(user, 'name'))}'"
    login, provider, token = (_field(held, key) for key in (_EXEC, _PROVIDER, _TOKEN))
    if login is not None:
        command = (_field(login, "command"), *_list(_field(login, "args")))
        yield f"{title} runs '{_shown(*command)}' ({_EXEC})"
    if provider is not None:
        config = _field(provider, "config") or {}
        program = _field(config, "cmd-path")
        named = (program, _field(config, "cmd-args")) if program else (_field(provider, "name"),)
        what = "runs" if program else "logs in by"
        yield f"{title} {what} '{_shown(*filter(None, named))}' ({_PROVIDER})"
    if token is not None:
        yield f"{title} sends the content of the file '{_shown(token)}' ({_TOKEN})"


def _entries(content: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = _list(_field(content, key))
    if not all(isinstance(entry, Mapping) for entry in listed):
        raise TypeError
    return listed


def _list(value: object) -> list[Any]:
    if not isinstance(value, list | None):
        raise TypeError
    return value or []


def _field(held: Mapping[str, Any], key: str) -> Any:
    """Return a field, ignoring case: some JSON readers do so too."""
    return next(
        (
            value
            for name, value in held.items()
            if str(name).casefold() == key.casefold() and value is not None
        ),
        None,
    )


def _shown(*words: object) -> str:
    text = visible(" ".join(map(str, words)))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
