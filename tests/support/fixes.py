"""Applies the fixes of findings literally: to the fields of an object, and to command lines."""

import copy
import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from kthena_components.core.engines.option_table import rows_of
from kthena_components.core.remedies import REMOVED, Change, Fix

TEXT_MAPS = {
    *("annotations", "labels", "matchLabels", "nodeSelector", "selector"),
    *("limits", "requests", "minResources", "capability", "deserved", "guarantee", "resource"),
}
"""Maps whose keys may have dots: the rest of a path below one is one key."""
_STEP = re.compile(r"\[\"([^\"]+)\"\]|\[(\d+|-)\]|([^.\[\]]+)")
_WORDS = ("command", "args")
Step = str | int


def apply(tree: Any, fix: Fix) -> Any:
    """Give a copy of an object with a fix applied.

    What a fix takes away need not be there, but one of its changes must apply.
    """
    made, missing = copy.deepcopy(tree), list[LookupError]()
    for change in fix:
        steps = steps_of(made, change.path or "")
        try:
            if change.option:
                _on_command_line(made, steps, change)
            else:
                _on_field(made, steps, change)
        except LookupError as error:
            missing.append(error)
    if len(missing) == len(fix):
        raise missing[0]
    return made


def steps_of(tree: Any, path: str) -> list[Step]:
    """Split a path into keys and indices: the longest key that exists at each place."""
    steps: list[Step] = []
    at, last = tree, ""
    while path:
        path = path.removeprefix(".")
        key = _existing(at, path) or (path if last in TEXT_MAPS and path[0] != "[" else None)
        if key is not None:
            step: Step = key
            path = path[len(key) :]
        else:
            found = _STEP.match(path)
            assert found, path
            quoted, index, plain = found.groups()
            step = len(at or ()) if index == "-" else int(index) if index else quoted or plain
            path = path[found.end() :]
        steps.append(step)
        at, last = _below(at, step), str(step)
    return steps


def _existing(at: Any, path: str) -> str | None:
    if not isinstance(at, dict):
        return None
    fitting = [
        key for key in at if isinstance(key, str) and re.match(rf"{re.escape(key)}($|[.\[])", path)
    ]
    return max(fitting, key=len, default=None)


def _below(at: Any, step: Step) -> Any:
    if isinstance(at, list):
        return at[step] if isinstance(step, int) and step < len(at) else None
    return at.get(step) if isinstance(at, dict) else None


def at_path(tree: Any, path: str) -> Any:
    """Give the value at a path; None if there is none."""
    return _below_all(tree, steps_of(tree, path))


def _on_field(tree: Any, steps: list[Step], change: Change) -> None:
    assert steps, "a fix of the whole object"
    holder = _holder(tree, steps)
    last = steps[-1]
    if change.name:
        index = list(holder).index(last)
        items = list(holder.items())
        items[index] = (change.name, holder[last])
        holder.clear()
        holder.update(items)
    elif change.value is REMOVED:
        if isinstance(holder, dict) and last not in holder:
            raise LookupError(f"{last} is not there, and so cannot be removed")
        del holder[last]
    elif isinstance(holder, list) and last == len(holder):
        holder.append(copy.deepcopy(change.value))
    else:
        holder[last] = copy.deepcopy(change.value)


def _holder(tree: Any, steps: list[Step]) -> Any:
    """Give the map or list of the last step; maps on the way are made."""
    at = tree
    for step, following in itertools.pairwise(steps):
        below = _below(at, step)
        if below is None:
            below = [] if isinstance(following, int) else {}
            if isinstance(at, list) and step == len(at):
                at.append(below)
            else:
                at[step] = below
        at = below
    return at


@cache
def _spellings(option: str) -> frozenset[str]:
    """Give every spelling that means the same as an option, in any release of any engine."""
    rows = [row for engine in ("vllm", "sglang", "trtllm") for row in rows_of(engine, option)]
    return frozenset({option, *(name for row in rows for name in row.names if option in row.names)})


def _on_command_line(tree: Any, steps: list[Step], change: Change) -> None:
    """Change an option in the words at a path, or in those of the same container beside them."""
    lists = list(_lists(tree, steps))
    assert lists, f"no words at {change.path}"
    names = _spellings(change.option)
    for words in lists:
        if _in_words(words, names, change):
            return
    if change.value is REMOVED or change.name:
        raise LookupError(f"{change.option} is not there")
    scripts = [words for words in lists if any(" " in str(word).strip() for word in words)]
    _add((scripts or lists)[-1 if not scripts else 0], change)


def _lists(tree: Any, steps: list[Step]) -> Iterator[list[Any]]:
    if steps[-1] in _WORDS:
        container = _below_all(tree, steps[:-1])
        if not any(container.get(key) for key in _WORDS):
            container["args"] = []  # the image has the command
        yield from (container[key] for key in _WORDS if isinstance(container.get(key), list))
    else:
        holder = _holder(tree, steps)
        if _below(holder, steps[-1]) is None:
            holder[steps[-1]] = []
        yield holder[steps[-1]]


def _below_all(tree: Any, steps: list[Step]) -> Any:
    for step in steps:
        tree = _below(tree, step)
    return tree


def _in_words(words: list[Any], names: frozenset[str], change: Change) -> bool:
    for index, word in enumerate(words):
        if not isinstance(word, str):
            continue
        head, sign, _ = word.partition("=")
        if head in names:
            words[index : _end(words, index, sign)] = _written(words, index, sign, change)
            return True
        for name in names:
            found = re.search(
                rf"(?<!\S){re.escape(name)}(?:[= ]+(?!-)[^\s;&|]+)?(?=\s|$|[;&|])", word
            )
            if found and " " in word.strip():
                said = _in_script(found[0], change)
                words[index] = word[: found.start()] + said + word[found.end() :]
                return True
    return False


def _end(words: list[Any], index: int, sign: str) -> int:
    """Give the place behind an option and its values."""
    end = index + 1
    while not sign and end < len(words) and not re.match(r"--?[a-zA-Z]", str(words[end])):
        end += 1
    return end


def _written(words: list[Any], index: int, sign: str, change: Change) -> list[str]:
    if change.name:
        rest = words[index + 1 : _end(words, index, sign)]
        return [words[index].replace(words[index].partition("=")[0], change.name, 1), *rest]
    return _words(change)


def _words(change: Change) -> list[str]:
    if change.value is REMOVED:
        return []
    return [change.option] if change.value is True else [change.option, str(change.value)]


def _in_script(found: str, change: Change) -> str:
    if change.name:
        return re.sub(r"^[^\s=]+", change.name, found)
    return " ".join(_words(change))


def _add(words: list[Any], change: Change) -> None:
    last = words[-1] if words else ""
    if isinstance(last, str) and " " in last.strip():
        words[-1] = f"{last.rstrip()} {' '.join(_words(change))}"
    else:
        words += _words(change)
