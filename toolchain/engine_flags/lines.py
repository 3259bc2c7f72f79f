"""Parses random command lines with the parser of one unpacked release.

This runs in a separate process, like the readers of the tables. `make engine-tables` records the
results in tests/core/engines/lines.json, and a test compares our reader of command lines with them.
"""

import argparse
import contextlib
import io
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

KEPT = {
    "vllm": (
        "data_parallel_size", "decode_context_parallel_size", "enable_expert_parallel",
        "max_model_len", "model", "model_tag", "nnodes", "node_rank", "pipeline_parallel_size",
        "prefill_context_parallel_size", "tensor_parallel_size",
    ),
    "sglang": ("context_length", "model_path", "nnodes", "node_rank", "pp_size", "tp_size"),
}  # fmt: skip
"""The recorded types of an accepted line's values."""
_LEFT_OUT = {"--config", "--help", "-h", "--version"}
_NEAR_LEFT_OUT = ("--conf", "--hel", "--vers", "-h")
_SHORTEST = 7
"""Length of the shortest abbreviation."""
_WORDS = ("8", "2", "0.5", "8k", "8K", "2Ki", "abc", "auto", "None", "true", "{}", "-1", "x y")
_ODD = ("--no-such-thing", "-z", "stray", "-tp9", "-tp=2", "--model=other", "--swap-space=4")
Row = tuple[list[str], dict[str, Any] | None]
Parse = Callable[[list[str]], argparse.Namespace]


def random_lines(
    parser: argparse.ArgumentParser, kept: Sequence[str], chance: random.Random, count: int
) -> Iterator[list[str]]:
    """Generate lines from a parser's own options, most of them with valid values."""
    actions = [a for a in parser._actions if a.option_strings]  # noqa: SLF001 - lists them nowhere else
    actions = [a for a in actions if not _LEFT_OUT.intersection(a.option_strings)]
    sizes = [action for action in actions if action.dest in kept]
    for _ in range(count):
        words = ["--model-path", "org/M"] if "model_path" in kept else ["org/M"]
        if "model_path" not in kept and _happens(chance, 0.2):
            words = []
        for _ in range(chance.randrange(4)):
            words += [chance.choice(_ODD)] if _happens(chance, 0.06) else []
            words += _words(chance.choice(sizes if _happens(chance, 0.6) else actions), chance)
        yield words


def _happens(chance: random.Random, share: float) -> bool:
    return chance.random() < share


def _words(action: argparse.Action, chance: random.Random) -> list[str]:
    name = chance.choice(action.option_strings)
    if len(name) > _SHORTEST and _happens(chance, 0.15):
        name = name[: chance.randrange(_SHORTEST, len(name))]
    if name.startswith("--") and _happens(chance, 0.15):
        name = "--" + name[2:].replace("-", "_")
    if name.startswith(_NEAR_LEFT_OUT):
        return []
    values = [_value(action, chance) for _ in range(_count(action.nargs, chance))]
    joined = len(values) == 1 and _happens(chance, 0.3)
    return [f"{name}={values[0]}"] if joined else [name, *values]


def _count(nargs: int | str | None, chance: random.Random) -> int:
    """Choose the number of values of an option, mostly a valid one."""
    if _happens(chance, 0.05):
        return chance.randrange(3)
    if isinstance(nargs, int):
        return nargs
    return 1 if nargs is None else chance.randrange(2) if nargs == "?" else 2


def _value(action: argparse.Action, chance: random.Random) -> str:
    if _happens(chance, 0.12):
        return chance.choice(_WORDS)
    with contextlib.suppress(TypeError, IndexError):
        return str(chance.choice(list(action.choices or ())))
    for word in ("4", "0.7", "{}", "word"):
        with contextlib.suppress(Exception):
            if callable(action.type):
                action.type(word)
            return word
    return "4"


def judge(parse: Parse, words: list[str], kept: Sequence[str]) -> Row:
    """Return the values that a parser reads from a line, or None if it rejects the line."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            space = parse(list(words))
    except (Exception, SystemExit):  # noqa: BLE001 - whatever ends the start
        return words, None
    plain = {name: getattr(space, name, None) for name in kept}
    return words, {k: v for k, v in plain.items() if type(v) in {int, str, bool}}


def main(root: str, engine: str, count: str, seed: str) -> None:
    """Print the results of the unpacked release for some random lines."""
    out, sys.stdout = sys.stdout, sys.stderr  # what the release prints is not ours
    parse, own = _parsers(engine, Path(root))
    chance = random.Random(seed)  # noqa: S311 - lines to try, no secrets
    lines = random_lines(own, KEPT[engine], chance, int(count))
    json.dump([judge(parse, words, KEPT[engine]) for words in lines], out)


def _parsers(engine: str, root: Path) -> tuple[Parse, argparse.ArgumentParser]:
    """Return a function that parses a line as the engine does, and the parser with the options."""
    # Each engine's own imports: SGLang's process sees no installed package.
    if engine == "sglang":
        from toolchain.engine_flags import sglang_parser  # noqa: PLC0415 - as above

        parser = sglang_parser.build_parser(root)
        return parser.parse_args, parser
    from toolchain.engine_flags import vllm_parser  # noqa: PLC0415 - as above

    whole, serve = vllm_parser.build_parser(root)
    return (lambda words: whole.parse_args(["serve", *words])), serve
