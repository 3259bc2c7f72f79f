"""Arguments in a shape that no release reads: the reader against argparse, execve and bash."""

import subprocess
from pathlib import Path

import pytest

from kthena_components.core.engines import Problem, read_command
from kthena_components.core.engines.shapes import split_command
from tests.core.engines.reference import RefusedError, parser_of
from tests.support.for_each import for_each

STARTS = {"vllm": ["vllm", "serve"], "sglang": ["python3", "-m", "sglang.launch_server"]}
FIRST = {"vllm": ["M"], "sglang": ["--model-path", "M"]}
IMAGES = {"vllm": "vllm/vllm-openai:v{}", "sglang": "lmsysorg/sglang:v{}"}
RELEASES = {"vllm": ("0.6.0", "0.11.0", "0.33.0"), "sglang": ("0.4.6", "0.5.9", "0.5.23")}
SIZE = {"vllm": "tensor-parallel-size", "sglang": "tp-size"}
WRONG = {
    "two words in one item": ["--{} 8"],
    "a second option in one item": ["--{}=8 --max-running-requests=4"],
    "an equals sign behind a blank": ["--{} =8"],
    "a tab": ["--{}\t8"],
    "a no-break space": ["--{}\u00a08"],
    "behind two hyphens": ["--", "--{}", "8"],
    "behind two hyphens in one word": ["--", "--{}=8"],
    "a word behind two hyphens": ["--{}=8", "--", "stray"],
    "an abbreviation in upper case": ["--{abbreviated}", "8"],
    "an en dash": ["\u2013{}", "8"],
    "an em dash": ["\u2014{}=8"],
    "two en dashes": ["\u2013\u2013{}", "8"],
    "a hyphen and an en dash": ["-\u2013{}", "8"],
    "a non-breaking hyphen": ["\u2011\u2011{}=8"],
    "a minus sign": ["\u2212\u2212{}", "8"],
    "upper case": ["--{upper}", "8"],
    "a title": ["--{title}=8"],
    "quotes in a list item": ['"--{}"', "8"],
    "quotes around all": ["'--{}=8'"],
    "a blank in front": [" --{}", "8"],
    "a blank behind": ["--{} ", "8"],
    "three hyphens": ["---{}", "8"],
}
RIGHT = {
    "two words": ["--{}", "8"],
    "an equals sign": ["--{}=8"],
    "a blank around the number": ["--{}", " 8 "],
    "a value with upper case": ["--served-model-name", "Tensor-Parallel-Size"],
    "a value with a dash": ["--served-model-name", "\u2013{}"],
}


def filled(words: list[str], engine: str) -> list[str]:
    size = SIZE[engine]
    return [
        w.format(size, upper=size.upper(), title=size.title(), abbreviated=size[:-2].upper())
        for w in words
    ]


def problems(engine: str, words: list[str], image: str) -> list[Problem]:
    facts = read_command([*STARTS[engine], *FIRST[engine], *words], {}, image=image)
    assert facts is not None
    return [problem for problem in facts.problems if problem.hard]


def accepted(engine: str, version: str, words: list[str]) -> bool:
    try:
        parser_of(engine, version).parse_args([*FIRST[engine], *words])
    except RefusedError:
        return False
    return True


@for_each("engine", ["vllm", "sglang"])
@for_each("shape", WRONG)
def test_a_shape_that_argparse_refuses_keeps_the_engine_from_starting(
    engine: str, shape: str
) -> None:
    words = filled(WRONG[shape], engine)
    for version in RELEASES[engine]:
        assert not accepted(engine, version, words)
        assert problems(engine, words, IMAGES[engine].format(version)), version
    # No release reads it, so the release need not be known.
    assert problems(engine, words, "registry.example/own:1")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("shape", RIGHT)
def test_a_shape_that_argparse_takes_is_taken(engine: str, shape: str) -> None:
    words = filled(RIGHT[shape], engine)
    for version in RELEASES[engine]:
        assert accepted(engine, version, words)
        assert problems(engine, words, IMAGES[engine].format(version)) == []
    assert problems(engine, words, "registry.example/own:1") == []


def test_a_model_behind_two_hyphens_is_taken() -> None:
    words = ["--tensor-parallel-size", "8", "--", "M"]
    parser_of("vllm", "0.33.0").parse_args(words)
    facts = read_command(["vllm", "serve", *words], {}, image="registry.example/own:1")
    assert facts is not None
    assert (facts.model, facts.tensor, facts.problems) == ("M", 8, ())


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["vllm serve M -tp 8"], "contains several words"),
        (["vllm serve M", "-tp", "8"], "contains several words"),
        (["vllm", "serve M", "-tp", "8"], "contains several words"),
        (["bash -c", "vllm serve M -tp 8"], "contains several words"),
        (["ray start --head && vllm serve M -tp 8"], "contains several words"),
        (["sh", "-c", "vllm", "serve", "M", "-tp", "8"], "parameters of the script"),
    ],
)
def test_a_command_that_no_program_gets_is_refused(
    argv: list[str], says: str, tmp_path: Path
) -> None:
    got = tmp_path / "got"
    program = tmp_path / "vllm"
    program.write_text(f'#!/bin/sh\nfor word; do echo "$word" >> {got}; done\n')
    program.chmod(0o755)
    try:
        subprocess.run(argv, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)
    except FileNotFoundError:
        pass
    else:
        assert not got.exists() or got.read_text().split("\n")[0] != "serve"

    split = split_command(argv)
    assert split is not None
    assert says in split.problem.text
    assert split.problem.hard
    assert " ".join(split.words).endswith("vllm serve M -tp 8")


@pytest.mark.parametrize(
    "argv",
    [
        ["vllm", "serve", "M", "-tp", "8"],
        ["sh", "-c", "vllm serve M -tp 8"],
        ["sh", "-c", 'vllm "$@"', "sh", "serve", "M"],
        ["sh", "-c", "$0 $1 $2", "vllm", "serve", "M"],
        ["pixi", "run", "vllm serve M -tp 8"],
        ["/entrypoint.sh", "vllm serve M -tp 8"],
        ["/opt/my programs/run", "vllm"],
        ["sleep 9"],
    ],
)
def test_another_command_is_left_alone(argv: list[str]) -> None:
    assert split_command(argv) is None
