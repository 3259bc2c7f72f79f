"""Colour and progress on a terminal, with the extra `terminal`.

Output that goes elsewhere has neither. rich is imported when something is to be shown: it takes as
long to import as a small check.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, Timer
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.status import Status

AFTER = 2
"""Seconds after which a command shows that it works."""
STYLES = {
    "mandatory": "bold red",
    "advisory": "yellow",
    "not checked": "dim",
    "waived": "dim",
    "fail": "bold red",
    "warn": "yellow",
    "ok": "green",
    "unknown": "dim",
    "others": "dim",
    "running": "blue",
    "placed": "bold green",
    "waiting": "yellow",
    "lost": "bold red",
}
"""By the word that a line begins with, or by the state of the pods that a string draws."""


def paint(text: str, stream: TextIO, meaning: str = "") -> str:
    """Return a string in the colour of its meaning, if there is one for it on this stream.

    Only a terminal shows colours, and only while NO_COLOR is not set.
    Source: no-color.org, any value that is not empty counts.

    Args:
        text: A word, or a part of a drawing.
        stream: Where it will be written.
        meaning: The key of its style, if that is not the text.
    """
    style = STYLES.get(meaning or text)
    if os.environ.get("NO_COLOR") or not _is_terminal(stream) or style is None:
        return text
    return _painter(stream)(text, style)


@cache
def _painter(stream: TextIO) -> Callable[[str, str], str]:
    """Return the function that colours text; without rich or colours, it changes nothing."""
    try:
        from rich.color import ColorSystem  # noqa: PLC0415
        from rich.console import Console  # noqa: PLC0415
        from rich.style import Style  # noqa: PLC0415
    except ModuleNotFoundError:
        return _plain
    console = Console(file=stream)
    if console.color_system is None or console.legacy_windows:
        return _plain
    return lambda text, style: Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def _plain(text: str, _style: str) -> str:
    return text


class Progress:
    """The last line of a terminal, which shows what a slow command does."""

    def __init__(self, stream: TextIO, says: str | Callable[[], str]) -> None:
        """Prepare it; `says` is called a few times a second, from another thread."""
        self._stream, self._says, self._since = stream, says, time.monotonic()
        self._lock, self._is_over = Lock(), False
        self._timer = Timer(AFTER, self._begin)
        self._timer.daemon = True
        self._shown: Status | None = None

    def __enter__(self) -> Self:
        """Show the line after some seconds, if the stream is a terminal."""
        if _is_terminal(self._stream):
            self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the line."""
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._shown is not None:
                self._shown.stop()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Remove the line while something is written."""
        with self._lock:
            if self._shown is not None:
                self._shown.stop()
            yield
            if self._shown is not None:
                self._shown.start()

    def _begin(self) -> None:
        """Show the spinner, unless rich is missing or the work is over."""
        try:
            from rich.console import Console  # noqa: PLC0415
            from rich.status import Status  # noqa: PLC0415
        except ModuleNotFoundError:
            return
        with self._lock:
            if not self._is_over:
                console = Console(file=self._stream)
                self._shown = Status(_Line(self), console=console, spinner="line")
                self._shown.start()

    def text(self) -> str:
        """Write the line."""
        says = self._says if isinstance(self._says, str) else self._says()
        return f"{says} ({time.monotonic() - self._since:.0f} s)"


class _Line:
    """The current text, for rich to show."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __rich__(self) -> str:
        return self._progress.text()


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"
