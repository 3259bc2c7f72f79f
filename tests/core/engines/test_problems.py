"""What is said about a command line that an engine refuses, or that reads badly."""

from dataclasses import replace

import pytest

from kthena_components.core.engines import Problem, read_command
from kthena_components.core.engines.facts import MAX_PROBLEMS
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each

CASES: dict[str, tuple[str, Problem]] = {
    "the program named twice": (
        "vllm serve vllm serve M",
        Problem(
            flag="vllm",
            text="`vllm serve` takes the bare word 'vllm' for the model",
            remedy="remove 'vllm serve': the program is started already",
            hard=True,
        ),
    ),
    "a command of another program": (
        "python3 -m vllm.entrypoints.openai.api_server serve M",
        Problem(
            flag="serve",
            text="the API server has no command 'serve' and takes its model from --model",
            remedy="write --model M without 'serve', or start `vllm serve M`",
            hard=True,
        ),
    ),
    "a command of another program beside the model": (
        "python3 -m vllm.entrypoints.openai.api_server serve --model M",
        Problem(
            flag="serve",
            text="the API server has no command 'serve' and takes its model from --model",
            remedy="remove 'serve'",
            hard=False,
        ),
    ),
    "a bare word beside the model": (
        "python3 -m vllm.entrypoints.openai.api_server B --model M",
        Problem(
            flag="B",
            text="the API server ignores the bare word 'B' and takes its model from --model",
            remedy="remove it",
            hard=False,
        ),
    ),
    "a value that hangs on a long short": (
        "vllm serve M -tp8",
        Problem(
            flag="-tp8",
            text="vLLM 0.33.0 has no flag '-tp8' and does not start with it",
            remedy="write -tp 8",
            hard=True,
        ),
    ),
    "another engine's flag": (
        "vllm serve M --tp 8",
        Problem(
            flag="--tp",
            text="vLLM 0.33.0 has no flag '--tp' and does not start with it",
            remedy="write --tensor-parallel-size",
            hard=True,
        ),
    ),
    "underscores where only hyphens are taken": (
        "python3 -m sglang.launch_server --model M --tp_size 8",
        Problem(
            flag="--tp_size",
            text="SGLang 0.5.23 has no flag '--tp_size' and does not start with it",
            remedy="write --tp-size",
            hard=True,
        ),
    ),
    "hyphens where only underscores are taken": (
        "trtllm-serve M --tp-size 8",
        Problem(
            flag="--tp-size",
            text="TensorRT-LLM has no flag '--tp-size' and does not start with it",
            remedy="write --tp_size",
            hard=True,
        ),
    ),
    "an ambiguous abbreviation": (
        "vllm serve M --pipeline-parallel-size 2 --data-parallel 8",
        Problem(
            flag="--data-parallel",
            text="'--data-parallel' can mean --data-parallel-address, --data-parallel-backend, "
            "--data-parallel-external-lb, --data-parallel-hybrid-lb, "
            "--data-parallel-multi-port-external-lb, --data-parallel-rank, … 5 more, and vLLM "
            "0.33.0 does not guess",
            remedy="write the flag in full",
            hard=True,
        ),
    ),
    "an abbreviation that SGLang outgrew": (
        "sglang serve M --pp 2",
        Problem(
            flag="--pp",
            text="'--pp' can mean --pp-async-batch-depth, --pp-max-micro-batch-size or --pp-size, "
            "and SGLang 0.5.23 does not guess",
            remedy="write the flag in full",
            hard=True,
        ),
    ),
    "an abbreviation": (
        "vllm serve M --tensor 8",
        Problem(
            flag="--tensor",
            text="'--tensor' is short for --tensor-parallel-size, and any new flag can make it "
            "ambiguous",
            remedy="write --tensor-parallel-size",
            hard=False,
        ),
    ),
    "an abbreviation of a switch that is turned off": (
        "vllm serve M --no-enable-exp",
        Problem(
            flag="--no-enable-exp",
            text="'--no-enable-exp' is short for --no-enable-expert-parallel, and any new flag "
            "can make it ambiguous",
            remedy="write --no-enable-expert-parallel",
            hard=False,
        ),
    ),
    "a repeated flag": (
        "vllm serve M -tp 4 --tensor-parallel-size 8 -tp 8",
        Problem(
            flag="--tensor-parallel-size",
            text="--tensor-parallel-size is given different values (4, 8); the last one counts",
            remedy="keep one",
            hard=False,
        ),
    ),
    "no integer": (
        "vllm serve M -tp eight",
        Problem(
            flag="-tp",
            text="--tensor-parallel-size takes an integer, not 'eight'",
            remedy="write a number",
            hard=True,
        ),
    ),
    "too small an integer": (
        "vllm serve M -tp 0",
        Problem(
            flag="-tp",
            text="--tensor-parallel-size takes an integer of at least 1, not '0'",
            remedy="write 1 or more",
            hard=True,
        ),
    ),
    "a port that is too large": (
        "vllm serve M --port 65536",
        Problem(
            flag="--port",
            text="--port takes a port of at most 65535, not '65536'",
            remedy="write 65535 or less",
            hard=True,
        ),
    ),
    "a port that is too large, and not used without copies": (
        "vllm serve M --data-parallel-rpc-port 65536",
        Problem(
            flag="--data-parallel-rpc-port",
            text="--data-parallel-rpc-port takes a port of at most 65535, not '65536'",
            remedy="write 65535 or less",
            hard=False,
        ),
    ),
    "no value": (
        "vllm serve M --tensor-parallel-size --headless",
        Problem(
            flag="--tensor-parallel-size",
            text="--tensor-parallel-size has no value",
            remedy="write --tensor-parallel-size and its value",
            hard=True,
        ),
    ),
    "a value for a switch": (
        "vllm serve M --enable-expert-parallel=true",
        Problem(
            flag="--enable-expert-parallel",
            text="--enable-expert-parallel is a switch and takes no value, but has 'true'",
            remedy="write --enable-expert-parallel alone",
            hard=True,
        ),
    ),
    "a switch that has an opposite, turned off by a value": (
        "vllm serve M --enable-expert-parallel=False",
        Problem(
            flag="--enable-expert-parallel",
            text="--enable-expert-parallel is a switch and takes no value, but has 'False'",
            remedy="write --no-enable-expert-parallel",
            hard=True,
        ),
    ),
    "an opposite that a value turns off": (
        "vllm serve M --no-enable-expert-parallel=false",
        Problem(
            flag="--no-enable-expert-parallel",
            text="--no-enable-expert-parallel is a switch and takes no value, but has 'false'",
            remedy="write --enable-expert-parallel",
            hard=True,
        ),
    ),
    "a switch without an opposite, turned off by a value": (
        "vllm serve M --headless=false",
        Problem(
            flag="--headless",
            text="--headless is a switch and takes no value, but has 'false'",
            remedy="remove it",
            hard=True,
        ),
    ),
    "decimals of 1024": (
        "vllm serve M --max-model-len 1.5K",
        Problem(
            flag="--max-model-len",
            text="--max-model-len takes no decimals before 'K', which counts in 1024s: '1.5K'",
            remedy="write 1.5k",
            hard=True,
        ),
    ),
    "no number": (
        "vllm serve M --gpu-memory-utilization nan",
        Problem(
            flag="--gpu-memory-utilization",
            text="--gpu-memory-utilization takes a number, not 'nan'",
            remedy="write a number such as 0.9",
            hard=True,
        ),
    ),
    "words for a number": (
        "sglang serve M --mem-fraction-static most",
        Problem(
            flag="--mem-fraction-static",
            text="--mem-fraction-static takes a number, not 'most'",
            remedy="write a number such as 0.9",
            hard=True,
        ),
    ),
    "another engine's short flag": (
        "sglang serve M -tp8",
        Problem(
            flag="-tp8",
            text="SGLang 0.5.23 has no flag '-tp8' and does not start with it",
            remedy="write --tp-size 8",
            hard=True,
        ),
    ),
    "a shell variable without a shell": (
        "vllm serve M -tp $TP",
        Problem(
            flag="-tp",
            text="--tensor-parallel-size has '$TP', which no shell expands here",
            remedy="write $(TP), which Kubernetes expands, or start the engine from a shell",
            hard=False,
        ),
    ),
    "a misspelt flag": (
        "vllm serve M --tensor-paralel-size 8",
        Problem(
            flag="--tensor-paralel-size",
            text="vLLM 0.33.0 has no option '--tensor-paralel-size' and does not start with it",
            remedy="write --tensor-parallel-size",
            hard=True,
        ),
    ),
    "a Ray leader without a size": (
        "bash multi-node-serving.sh leader --ray_cluster_size 2",
        Problem(
            flag="--ray_cluster_size",
            text="multi-node-serving.sh leader ends at once without --ray_cluster_size=…",
            remedy="write --ray_cluster_size= and the value in one word",
            hard=True,
        ),
    ),
    "a Ray worker without an address": (
        "bash multi-node-serving.sh worker",
        Problem(
            flag="--ray_address",
            text="multi-node-serving.sh worker ends at once without --ray_address=…",
            remedy="write --ray_address= and the value in one word",
            hard=True,
        ),
    ),
    "a Ray cluster of words": (
        "bash multi-node-serving.sh leader --ray_cluster_size=two",
        Problem(
            flag="--ray_cluster_size",
            text="--ray_cluster_size takes an integer, not 'two'",
            remedy="write a number",
            hard=True,
        ),
    ),
    "MPI ranks in words": (
        "mpirun -np many trtllm-serve M",
        Problem(
            flag="-np", text="-np takes an integer, not 'many'", remedy="write a number", hard=True
        ),
    ),
}


IMAGES = {"vllm": "vllm/vllm-openai:v0.33.0", "sglang": "lmsysorg/sglang:v0.5.23"}


def problems_of(*argv: str) -> tuple[Problem, ...]:
    """Give what is wrong with a command line of the releases in IMAGES."""
    image = next((image for engine, image in IMAGES.items() if engine in " ".join(argv)), None)
    facts = read_command(argv, {}, image=image)
    assert facts is not None
    assert all(problem.option is (problem.flag not in RAY_FLAGS) for problem in facts.problems)
    return tuple(replace(problem, option=False) for problem in facts.problems)


RAY_FLAGS = {"--ray_cluster_size", "--ray_address", "-np", "-c", ""}
"""What no engine's parser sees."""


@for_each(("command", "expected"), CASES.values(), ids=CASES)
def test_a_problem_says_what_is_wrong_and_what_to_write(command: str, expected: Problem) -> None:
    assert problems_of(*command.split()) == (expected,)


def test_a_line_of_flags_in_one_item_reads_badly() -> None:
    assert problems_of("vllm", "serve", "M", "-tp 8 -pp 2") == (
        Problem(
            flag="-tp",
            text="the list item '-tp 8 -pp 2' contains several words, and no shell splits it",
            remedy="write each word as its own item",
            hard=True,
        ),
    )


@pytest.mark.parametrize(
    ("script", "inside", "hard"),
    [
        ("vllm serve M -tp '8", "a single quote (')", True),
        ("vllm serve M -tp $'8", "a single quote (')", True),
        ('vllm serve M -tp "8', 'a double quote (")', True),
        ("vllm serve M -tp `nproc", "a back quote (`)", True),
        ("vllm serve M -tp $(nproc", "a bracket (()", False),
        ("vllm serve M -tp ${N", "a bracket ({)", False),
    ],
)
def test_an_open_quote_leaves_everything_unknown(script: str, inside: str, hard: bool) -> None:
    facts = read_command(["sh", "-c", script], {})

    text = f"the script ends inside {inside}, and the shell rejects it"
    assert facts is not None
    assert facts.problems == (Problem(flag="-c", text=text, remedy="close it", hard=hard),)
    assert (facts.engine, facts.tensor, facts.model) == ("vllm", Unknown(text), Unknown(text))


def test_an_item_that_no_linux_takes_is_not_read() -> None:
    facts = read_command(["sh", "-c", "vllm serve M " + "x" * (1 << 21)], {})

    text = "one item has 2097165 characters, and no Linux accepts more than 2097152"
    assert facts is not None
    assert facts.problems == (Problem(flag="", text=text, remedy="put it in a file", hard=True),)
    assert facts.tensor == Unknown(text)


def test_numbers_at_their_bounds_are_taken() -> None:
    words = ["-tp", "1", "--port", "65535", "--max-model-len", "131072"]
    assert problems_of("vllm", "serve", "M", *words) == ()


def test_problems_end_somewhere() -> None:
    assert len(problems_of("vllm", "serve", *["-tp8"] * 1000)) == MAX_PROBLEMS


def test_problems_that_end_no_start_hide_none_that_does() -> None:
    short = ["--tensor-parallel-s", "8"] * 1000
    found = problems_of("vllm", "serve", "M", *short, "-tp8")
    assert [problem.hard for problem in found].count(False) == MAX_PROBLEMS
    assert found[-1].flag == "-tp8"
    assert found[-1].hard
    started = ["ray", "start", *["--none"] * 1000]
    facts = read_command(["sh", "-c", f"{' '.join(started)}; multi-node-serving.sh leader x"], {})
    assert facts is not None
    assert facts.problems[-1].hard


def test_options_that_nobody_could_guess_hide_what_is_not_stated() -> None:
    many = [f"--no-such-{number}" for number in range(201)]
    facts = read_command(["vllm", "serve", "M", "-tp", "8", *many], {})
    assert facts is not None
    assert facts.tensor == 8
    assert facts.pipeline == Unknown("more than 200 options are unknown")


def test_a_flag_that_is_not_known_is_passed_over_with_its_value() -> None:
    command = "vllm serve --new-thing 4 M -x 5 --no-cake -zz9 -tp 8"
    facts = read_command(command.split(), {})

    assert facts is not None
    assert (facts.model, facts.tensor) == ("M", 8)
    assert [problem.flag for problem in facts.problems] == [
        "--new-thing",
        "-x",
        "--no-cake",
        "-zz9",
    ]
    assert not any(problem.hard for problem in facts.problems)
