"""Regular expressions that are compiled when they are first used.

`check` defines more than 200, and most files need few of them.
"""

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)  # the next use finds it without this function
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but compile the text when a method is first used.

    The result has the methods of a pattern and is none: `isinstance(…, re.Pattern)` is False.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))
