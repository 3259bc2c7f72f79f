"""Files that a script names: where they are, and what is known of them."""

import posixpath

from kthena_components.core.engines.bash.shell import Shell
from kthena_components.core.engines.bash.state import FOLDER, is_known
from kthena_components.core.engines.files import Absent, read_file
from kthena_components.core.values.unknown import MaybeText


def path_of(shell: Shell, word: str) -> str | None:
    """Give a path from the root; None where it is not known."""
    return path_from(word, shell.state.get(FOLDER))


def path_from(word: str, folder: object) -> str | None:
    """Give a path from the root, as it is found in a folder; None where it is not known."""
    if not is_known(word):
        return None
    if word.startswith("/"):
        return posixpath.normpath(word)
    return posixpath.normpath(f"{folder}/{word}") if isinstance(folder, str) else None


def text_of(shell: Shell, path: str | None) -> MaybeText | Absent | None:
    """Give the text of a mounted file; None where it is not known what is mounted there."""
    return None if path is None else read_file(shell.session.scope.files, path)


def is_folder(shell: Shell, path: str | None) -> bool:
    """Return whether a path is definitely a mounted folder. A subPath may mount a single file."""
    at = (mount for mount in shell.session.scope.files if mount.path == path)
    return any(mount.files and all(name for name, _ in mount.files) for mount in at)
