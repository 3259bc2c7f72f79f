"""Follow a page: write the files that it shows, run its commands, and compare what they print."""

from collections.abc import Callable, Iterable
from pathlib import Path

from tests.support.pages import File, Step, agrees, items
from tests.support.shells import Shell


def follow(
    page: str,
    shell: Shell,
    folder: Path,
    varying: Iterable[str] = (),
    before: Callable[[Step], object] = lambda _step: None,
) -> None:
    """Go through a page from its top, in a folder that has what the page takes for granted.

    A file that exists by then is what a command has written: it must be the one of the page.
    A command without output on the page must succeed. `before` is told of each command.
    """
    for item in items(page):
        if isinstance(item, File):
            _hold(folder / item.name, item)
            continue
        before(item)
        status, printed = shell.run(item.command)
        at = f"{page}:{item.line}: $ {item.command}\n{printed}"
        if item.printed:
            assert agrees(printed, item.printed, varying), at
        else:
            assert status == 0, at


def _hold(path: Path, shown: File) -> None:
    if path.exists():
        assert path.read_text().strip() == shown.text.strip(), shown.name
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shown.text)
