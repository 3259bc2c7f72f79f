"""Files that a script names: where they are, and what is known of them."""

import posixpath

from kthena_components.core.engines.bash.shell import Shell
from kthena_components.core.engines.bash.state import FOLDER, is_known
from kthena_components.core.engines.files import Absent, read_file
from kthena_components.core.values.unknown import MaybeText


def path_of(shell: Shell, word: str) -> str | None:
    """Return a path from the root; None if it is unknown."""
    return path_from(word, shell.state.get(FOLDER))


def path_from(word: str, folder: object) -> str | None:
    """Return a path from the root, as it is found in a folder; None if it is unknown."""
    if not is_known(word):
        return None
    if word.startswith("/"):
        return posixpath.normpath(word)
    return posixpath.normpath(f"{folder}/{word}") if isinstance(folder, str) else None


def text_of(shell: Shell, path: str | None) -> MaybeText | Absent | None:
    """Return the text of a mounted file; None if it is unknown what is mounted there."""
    return None if path is None else read_file(shell.session.scope.files, path)


def is_folder(shell: Shell, path: str | None) -> bool:
    """Return whether a path is definitely a mounted folder. A subPath may mount a single file."""
    at = (mount for mount in shell.session.scope.files if mount.path == path)
    return any(mount.files and all(name for name, _ in mount.files) for mount in at)
