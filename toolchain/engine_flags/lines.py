"""Ask the parser of one release, unpacked at a path, what it makes of random command lines.

Runs in a process of its own, as the readers of the tables do. `make engine-lines` keeps what it
says in tests/core/engines/lines.json, which the reader of command lines is held against.
"""

import argparse
import contextlib
import io
import json
import os
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
"""What is kept of a line that is taken."""
_LEFT_OUT = {"--config", "--help", "-h", "--version"}
_WORDS = ("8", "2", "0.5", "8k", "8K", "2Ki", "abc", "auto", "None", "true", "{}", "-1", "x y")
_ODD = ("--no-such-thing", "-z", "stray", "-tp9", "-tp=2", "--model=other", "--swap-space=4")
Row = tuple[list[str], dict[str, Any] | None]


def random_lines(
    parser: argparse.ArgumentParser, kept: Sequence[str], chance: random.Random, count: int
) -> Iterator[list[str]]:
    """Make lines of a parser's own options, most of them with values that it takes."""
    actions = [a for a in parser._actions if a.option_strings]  # noqa: SLF001 - lists them nowhere else
    actions = [a for a in actions if not _LEFT_OUT.intersection(a.option_strings)]
    sizes = [action for action in actions if action.dest in kept]
    for _ in range(count):
        words = ["--model-path", "org/M"] if "model_path" in kept else ["org/M"]
        if "model_path" not in kept and chance.random() < 0.2:  # noqa: PLR2004 - mostly right
            words = []
        for _ in range(chance.randrange(4)):
            words += [chance.choice(_ODD)] if chance.random() < 0.06 else []  # noqa: PLR2004
            pool = sizes if chance.random() < 0.6 else actions  # noqa: PLR2004
            words += _words(chance.choice(pool), chance)
        yield words


def _words(action: argparse.Action, chance: random.Random) -> list[str]:
    name = chance.choice(action.option_strings)
    if len(name) > 9 and chance.random() < 0.15:  # noqa: PLR2004 - an abbreviation
        name = name[: chance.randrange(7, len(name))]
    if name.startswith("--") and chance.random() < 0.15:  # noqa: PLR2004
        name = "--" + name[2:].replace("-", "_")
    if name in _LEFT_OUT or name.replace("_", "-").startswith(("--conf", "--hel", "--vers")):
        return []
    least = 1 if action.nargs == "+" else 0
    several = {None: 1, "?": chance.randrange(2), "+": 2, "*": 2}
    count = several.get(action.nargs, action.nargs)
    if chance.random() < 0.05:  # noqa: PLR2004
        count = chance.randrange(least, 3)
    values = [_value(action, chance) for _ in range(int(count))]
    return (
        [f"{name}={values[0]}"] if len(values) == 1 and chance.random() < 0.3 else [name, *values]
    )  # noqa: PLR2004


def _value(action: argparse.Action, chance: random.Random) -> str:
    if chance.random() < 0.12:  # noqa: PLR2004
        return chance.choice(_WORDS)
    with contextlib.suppress(TypeError, IndexError):
        return str(chance.choice(list(action.choices or ())))
    for word in ("4", "0.7", "{}", "word"):
        with contextlib.suppress(Exception):
            if callable(action.type):
                action.type(word)
            return word
    return "4"


def judge(
    parse: Callable[[list[str]], argparse.Namespace], words: list[str], kept: Sequence[str]
) -> Row:
    """Give what a parser says of a line: what it reads, or None where it does not take it."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            space = parse(list(words))
    except (Exception, SystemExit):  # noqa: BLE001 - whatever ends the start
        return words, None
    plain = {name: getattr(space, name, None) for name in kept}
    return words, {k: v for k, v in plain.items() if type(v) in {int, str, bool}}


def main(root: str) -> None:
    """Print what the release unpacked at a path says of random lines: COUNT SEED in the name.

    The folder's name ends in `-COUNT-SEED`, because nothing else reaches this process.
    """
    out, sys.stdout = sys.stdout, sys.stderr
    _, count, seed = Path(root).name.rsplit("-", 2)
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    engine = "vllm" if (Path(root) / "vllm").exists() else "sglang"
    chance = random.Random(int(seed))  # noqa: S311 - lines to try, no secrets
    if engine == "vllm":
        from toolchain.engine_flags import vllm_parser  # noqa: PLC0415 - pydantic is for vLLM alone

        whole, own = vllm_parser.build_parser(Path(root))
        parse: Callable[[list[str]], argparse.Namespace] = lambda words: whole.parse_args(  # noqa: E731
            ["serve", *words]
        )
    else:
        from toolchain.engine_flags import sglang_parser  # noqa: PLC0415

        own = sglang_parser.build_parser(Path(root))
        parse = own.parse_args
    lines = random_lines(own, KEPT[engine], chance, int(count))
    json.dump([judge(parse, words, KEPT[engine]) for words in lines], out)
