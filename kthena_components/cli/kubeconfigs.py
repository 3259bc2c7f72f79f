"""The kubeconfigs that a stack's settings lead to, as each of their readers may find them.

The provider first looks for a file with the name of the value, whatever the value looks like, and
takes it as text if there is none. It starts in the folder of the program. The stack program takes
a value with a line break for text, and Python's client a path with colons for several paths.

Source: pulumi-kubernetes v4.25 provider/pkg/provider/util.go, parseKubeconfigString; Pulumi
v3.259.0 pkg/engine/project.go, getPwdMain; kubernetes-client/python config/kube_config.py,
KubeConfigMerger.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from kthena_components.cluster.kubeconfig import programs_of
from kthena_components.core.plan.stack_file import is_kubeconfig_text
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.maps import read_below

Content = str | Unreadable


def kubeconfigs(stated: Iterable[str], folder: Path, main: str = "") -> Iterator[Content]:
    """Yield the text of each kubeconfig that a reader may use, or why it cannot be read.

    Args:
        stated: The values: paths, or texts of kubeconfigs.
        folder: The folder of the project.
        main: The `main` of the project, from its folder.
    """
    start = folder / main
    start = start if start.is_dir() else start.parent
    for value in stated:
        is_text = is_kubeconfig_text(value) or value.lstrip().startswith("{")
        places = [start / path for path in dict.fromkeys(_paths(value, is_text=is_text))]
        found = [place for place in places if os.path.lexists(place)]
        if is_text:
            yield value
        elif not found:
            yield Unreadable(file=value, because="does not exist")
        yield from (_content(place, folder) for place in found)


def clauses_of(content: Content) -> tuple[str, ...]:
    """Return what a kubeconfig runs or sends, or that it cannot be read, as clauses."""
    return (str(content),) if isinstance(content, Unreadable) else programs_of(content)


def _paths(value: str, *, is_text: bool) -> Iterator[Path]:
    parts = [value, *([] if is_text else value.split(os.pathsep))]
    for part in filter(None, parts):
        yield Path(part)
        with suppress(RuntimeError):  # there is no such user
            yield Path(part).expanduser()
        if part.startswith("~/"):
            yield from (Path(home, part[2:]) for home in _homes())


def _homes() -> Iterator[str]:
    """Yield the home of the user's entry in the list of users: the provider ignores $HOME."""
    with suppress(ImportError, KeyError):
        import pwd  # noqa: PLC0415 - Windows has none

        yield pwd.getpwuid(os.getuid()).pw_dir


def _content(place: Path, folder: Path) -> Content:
    path = Path(os.path.normpath(place))
    if path.is_relative_to(folder):
        return read_below(place, folder)
    if path.parts[1:2] in {("proc",), ("dev",)}:  # a different file for each process
        return Unreadable(file=str(path), because="is not a valid place for a kubeconfig")
    return read_text(str(place), named=False)
