"""`kthena-components size`: the shapes in which a model fits on GPUs, the cheapest first."""

import argparse
import sys
from typing import TYPE_CHECKING

from kthena_components.cli.main import ERROR, PROBLEM, SUCCESS
from kthena_components.cli.shared_options import amount_of, number_of
from kthena_components.cli.terminal import Progress
from kthena_components.core.values.display import shell_word, visible, visible_json, visible_lines

if TYPE_CHECKING:
    from kthena_components.sizing import Answer, Question

_EXITS = """exit status:
  0  at least one shape fits
  1  no shape fits, or the backend of --write does not take it
  2  wrong usage"""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "size",
        help=help_text,
        description="Show in which shapes a model fits on GPUs: its tensor, pipeline and data "
        "parallelism, its pods, the memory of each GPU, and how many requests it holds at once. "
        "Every shape passes the rules of `check`. Throughput and latency are not estimated.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="such as meta-llama/Llama-3.1-8B-Instruct")
    parser.add_argument(
        "--gpu", metavar="GPU", required=True, help="the GPU, such as h200 or NVIDIA-L4"
    )
    parser.add_argument(
        "--nodes",
        metavar="NODES",
        default="4x8",
        help="the nodes and the GPUs of each: 2x4, or 8 for one node; default: 4x8",
    )
    _about_requests(parser)
    _about_the_engine(parser)
    _about_the_output(parser)
    parser.set_defaults(run=run)


def _about_requests(parser: argparse.ArgumentParser) -> None:
    """Add the options about the length and the number of requests."""
    parser.add_argument(
        "--context",
        metavar="TOKENS",
        type=number_of("tokens", least=1),
        help="the length of a request, prompt and answer together; default: the model's maximum",
    )
    parser.add_argument(
        "--requests",
        metavar="N",
        type=number_of("requests", least=1),
        help="how many requests of that length must fit at once; default: 1 in each engine",
    )


def _about_the_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options about the engine and the model."""
    parser.add_argument(
        "--engine", choices=("vllm", "sglang", "trtllm"), default="vllm", help="default: vllm"
    )
    parser.add_argument(
        "--image", metavar="IMAGE", help="its image; default: the newest release that is known"
    )
    parser.add_argument(
        "--precision",
        metavar="FORMAT",
        help="the copy of the model with weights in fp8, nvfp4, int4, …; default: MODEL as it is",
    )
    parser.add_argument(
        "--kv-cache-dtype",
        metavar="TYPE",
        help="the type of the KV cache, as the engine calls it, such as fp8; default: its own",
    )
    parser.add_argument(
        "--hf-config",
        metavar="PATH",
        help="the config.json of a model that is not in the built-in table, or its folder",
    )
    parser.add_argument(
        "--weights",
        metavar="GIB",
        type=amount_of("GiB"),
        help="the size of all weights; default: as in the table, or in the folder of --hf-config",
    )


def _about_the_output(parser: argparse.ArgumentParser) -> None:
    """Add the options about prices and the format of the answer."""
    parser.add_argument(
        "--price",
        metavar="PRICE",
        type=amount_of("money"),
        help="the price of one GPU for an hour, in any currency: adds the cost of a day",
    )
    parser.add_argument(
        "--write",
        metavar="TARGET",
        help="write a serving of the recommended shape in place of the table: the objects of a "
        "backend (native, kthena, lws, …), or python, typescript or stack",
    )
    parser.add_argument(
        "--shape",
        metavar="TPxPPxDP",
        help="with --write: another shape of the table, such as 8x2x1, or 8x1x1,ep,dcp=2 where EP "
        "and DCP are not 1",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )


def run(asked: argparse.Namespace) -> int:
    """Write the answer and return the exit status."""
    # These are slow to import, and `--help` needs none of them.
    from kthena_components.cli.size.question import UsageError, read_question  # noqa: PLC0415
    from kthena_components.core.findings import SpecError  # noqa: PLC0415
    from kthena_components.sizing import find_shapes  # noqa: PLC0415

    try:
        question = read_question(asked)
        with Progress(sys.stderr, "comparing shapes"):
            answer = find_shapes(question)
        text = _written(question, answer, asked)
    except UsageError as error:
        sys.stderr.write(f"kthena-components size: {visible(str(error))}\n")
        return ERROR
    except SpecError as error:
        sys.stderr.write(f"{visible_lines(str(error))}\n")
        return PROBLEM
    sys.stdout.write(text)
    return SUCCESS if answer.rows else PROBLEM


def _written(question: "Question", answer: "Answer", asked: argparse.Namespace) -> str:
    """Write the answer as text, as JSON, or as a serving for --write."""
    from kthena_components.cli.size.output import as_json, as_text  # noqa: PLC0415

    if asked.write is not None and answer.rows:
        from kthena_components.cli.size.output import write_serving  # noqa: PLC0415

        words = f"{shell_word(asked.model)} --gpu {shell_word(asked.gpu)}"
        origin = f"written by kthena-components size {words}"
        return write_serving(question, answer, asked.write, asked.shape, origin)
    if asked.output == "json":
        return f"{visible_json(as_json(question, answer))}\n"
    return as_text(question, answer)
