"""Groups the words of a command line by flag, without the table of an engine."""

from collections.abc import Sequence


def by_flag(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return each flag with the words up to the next one; `--a=b` is the flag --a with one word.

    Words before the first flag count as flags without values.
    """
    found: list[tuple[str, list[str]]] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if word.startswith("-") and not _is_number(word):
            found.append((flag, [value] if equals else []))
        elif found:
            found[-1][1].append(word)
        else:
            found.append((word, []))
    return found


def _is_number(word: str) -> bool:
    return word[1:2].isdecimal() or word[1:3].startswith(".")
