"""Finds the program that a command starts, behind shells, launchers and other wrappers.

Only names are known here; the engines' modules read the arguments.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import read_image
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
MPI = frozenset({"mpiexec", "mpirun", "orterun", "srun"})
RANK_LAUNCHER = "trtllm-llmapi-launch"
"""Connects the ranks of a TensorRT-LLM engine that an MPI launcher starts."""
RAY_SCRIPT_NAME = "multi-node-serving.sh"
RAY_SCRIPTS = frozenset({RAY_SCRIPT_NAME, "ray_init.sh"})
"""vLLM's script that starts Ray, and the one from which it was made: the same arguments. Source:
kubernetes-sigs/lws v0.4.0 docs/examples/vllm/build/ray_init.sh; vllm-project/vllm#12913."""
OMNI = "--omni"
"""Hands a command line over to vLLM-Omni, anywhere in it (vllm/entrypoints/cli/main.py;
vllm_omni/entrypoints/cli/main.py)."""
_LAUNCHERS = """
    catatonit chroot chrt command conda ddtrace-run doppler dumb-init env exec gosu hatch ionice
    mamba micromamba nice nohup nsys numactl op opentelemetry-instrument pdm pipenv pipx pixi poetry
    rye setpriv setsid stdbuf su-exec sudo taskset time timeout tini trtllm-llmapi-launch unbuffer
    uv uvx
"""
_WRAPPERS = MPI.union(_LAUNCHERS.split())
SERVES_SINCE = (0, 11, 1)
"""The first vLLM whose image starts `vllm serve` (docker/Dockerfile); before, the API server."""
API_SERVER = ("python3", "-m", "vllm.entrypoints.openai.api_server")
"""Starts vLLM's server in every release."""
_TGI_LAUNCHER = "text-generation-launcher"
_KTHENA_IMAGE = "kthena-engine"
_TGI_IMAGES = ("text-generation-inference", "tgi-gaudi")
_PYTHON = regex(r"python[0-9.]*")
_WITH_VALUE = frozenset({"-W", "-X"})
_RAY = "ray.scripts.scripts"
"""The module behind the command `ray` (python/setup.py of ray-project/ray)."""
_RAY_STARTS = frozenset({"start", "symmetric-run"})
_TORCHRUN = "torchrun"
_TORCH_MODULES = frozenset({"torch.distributed.launch", "torch.distributed.run"})
"""The modules behind `torchrun` (torch/distributed/run.py), which run another module."""
_LONG_WITH_VALUE = frozenset({"--init-file", "--rcfile"})


class Program(StrEnum):
    """A program that a command starts."""

    SHELL = "shell"
    RAY = "ray"
    RAY_SCRIPT = "ray-script"
    VLLM = "vllm"
    VLLM_API_SERVER = "vllm-api-server"
    VLLM_INSIDE = "vllm-inside"
    """A program with vLLM's options and its own."""
    SGLANG = "sglang"
    SGLANG_LAUNCH_SERVER = "sglang-launch-server"
    SGLANG_INSIDE = "sglang-inside"
    """A program with SGLang's options and its own."""
    TRTLLM = "trtllm"
    DYNAMO_TRTLLM = "dynamo-trtllm"
    DYNAMO_VLLM = "dynamo-vllm"
    HUGGINGFACESERVER = "huggingfaceserver"
    LMDEPLOY = "lmdeploy"
    TGI = "tgi"


@dataclass(frozen=True, slots=True)
class Start:
    """A program, and the index of its first argument."""

    program: Program
    arguments: int
    at: int
    """Index of the program itself, after its wrappers."""


_MODULES: Mapping[str, Program] = {
    "dynamo.sglang": Program.SGLANG_INSIDE,
    "dynamo.trtllm": Program.DYNAMO_TRTLLM,
    "dynamo.vllm": Program.DYNAMO_VLLM,
    "huggingfaceserver": Program.HUGGINGFACESERVER,
    "sglang.launch_server": Program.SGLANG_LAUNCH_SERVER,
    "tensorrt_llm.commands.serve": Program.TRTLLM,
}
_LMDEPLOY = ("lmdeploy", "serve", "api_server")
_SERVED: Mapping[tuple[str, ...], Program] = {
    _LMDEPLOY: Program.LMDEPLOY,
    ("sglang", "serve"): Program.SGLANG,
    (_TGI_LAUNCHER,): Program.TGI,
    ("vllm", "serve"): Program.VLLM,
    ("vllm-omni", "serve"): Program.VLLM,
}
"""The words that start a server by name."""
_HINTS = (
    *("vllm", "sglang", "trtllm", "huggingfaceserver", "tensorrt_llm", "inference_api", "ray"),
    *("lmdeploy", "text-generation-launcher", RAY_SCRIPT_NAME),
)
"""Every known program has one of these in its command."""


def may_start_one(text: str) -> bool:
    """Check quickly whether a string can start a known program."""
    for hint in _HINTS:  # noqa: SIM110 - asked of every word, and any() takes twice as long
        if hint in text:
            return True
    return False


@lru_cache(maxsize=8)
def files_may_start_one(files: tuple[tuple[str, object], ...]) -> bool:
    """Check the same for the contents of mounted files, which many containers may share."""
    return any(may_start_one(text) for _, text in files if isinstance(text, str))


def find_program(words: Sequence[str]) -> Start | None:
    """Find the program that a command starts, behind wrappers; None for an unknown one."""
    if not words or base_name(words[0]) not in _WRAPPERS:
        return _program_at(words, 0)
    starts = (_program_at(words, at) for at in range(1, len(words)))
    return next(filter(None, starts), None)


def base_name(word: str) -> str:
    """Return the last part of a path."""
    return word.rpartition("/")[2]


def _program_at(words: Sequence[str], at: int) -> Start | None:
    """Find out which program starts at a word, and where its arguments begin; None if unknown."""
    name = base_name(words[at]) if at < len(words) else ""
    following = words[at + 1] if at + 1 < len(words) else ""
    if name in SHELLS or name in RAY_SCRIPTS:
        return Start(Program.SHELL if name in SHELLS else Program.RAY_SCRIPT, at + 1, at)
    if name == "ray" and following in _RAY_STARTS:
        return Start(Program.RAY, at + 1, at)
    for served, program in _SERVED.items():
        if (name, *words[at + 1 : at + len(served)]) == served:
            return Start(program, at + len(served), at)
    if name == "trtllm-serve" and not _is_disaggregated(following, words[at + 2 : at + 3]):
        return Start(Program.TRTLLM, at + 1 + (following == "serve"), at)
    if name == _TORCHRUN:
        return _module_of_torchrun(words, at + 1, at)
    return _python_at(words, at) if _PYTHON.fullmatch(name) else None


def _is_disaggregated(command: str, then: Sequence[str]) -> bool:
    """Return whether trtllm-serve starts its router, as a hidden command with `-c` may."""
    return command.startswith("disaggregated") or (is_unresolved(command) and "-c" in then)


def _python_at(words: Sequence[str], start: int) -> Start | None:
    """Read `python3 -u -m module …` and `python3 path/to/file.py …`."""
    at = start + 1
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        if option.startswith("-m"):
            module = option[2:] or "".join(words[at + 1 : at + 2])
            return _module(module, words, at + (1 if option[2:] else 2), start)
        at += 2 if option in _WITH_VALUE else 1
    path = words[at] if at < len(words) else ""
    if path.endswith("vllm/entrypoints/openai/api_server.py"):
        return Start(Program.VLLM_API_SERVER, at + 1, start)
    # KAITO has a second program of this name for its transformers runtime, below tfs/.
    if base_name(path) == "inference_api.py" and "tfs/" not in path:
        return Start(Program.VLLM_INSIDE, at + 1, start)
    # A command that pip installs is a script of Python.
    return _program_at(words, at) if "bin/" in path and base_name(path) not in SHELLS else None


def _module(module: str, words: Sequence[str], arguments: int, start: int) -> Start | None:
    """Find out which program `python -m MODULE` starts; None for modules that serve nothing."""
    if module in _MODULES:
        program = _MODULES[module]
        named = program is Program.TRTLLM and words[arguments : arguments + 1] == ["serve"]
        return Start(program, arguments + named, start)
    if module in _TORCH_MODULES:
        return _module_of_torchrun(words, arguments, start)
    if module == _RAY:
        starts = arguments < len(words) and words[arguments] in _RAY_STARTS
        return Start(Program.RAY, arguments, start) if starts else None
    if module == "vllm.entrypoints.cli.main":
        serves = arguments < len(words) and words[arguments] == "serve"
        return Start(Program.VLLM, arguments + 1, start) if serves else None
    if (module, *words[arguments : arguments + 2]) == _LMDEPLOY:
        return Start(Program.LMDEPLOY, arguments + 2, start)
    # vllm.entrypoints.openai.run_batch of 0.11.2 reads a file, has options of its own, and ends.
    server = module.startswith("vllm.entrypoints.") and not module.endswith(".run_batch")
    return Start(Program.VLLM_API_SERVER, arguments, start) if server else None


def _module_of_torchrun(words: Sequence[str], at: int, start: int) -> Start | None:
    """Read `torchrun --nproc-per-node 1 -m module …`."""
    flag = next((i for i in range(at, len(words) - 1) if words[i] in {"-m", "--module"}), None)
    # With this executor torchrun starts each rank, and no option of the engine says how many.
    if flag is None or "external_launcher" in words:
        return None
    return _module(words[flag + 1], words, flag + 2, start)


def shell_operand(words: Sequence[str], at: int) -> tuple[int, bool]:
    """Return the index of a shell's first operand, and whether it is a script text (`-c`).

    Options may be combined and may follow `-c`: `bash -lc`, `sh -ec`, `bash -c -e`, `bash -euo
    pipefail -c`.
    """
    text = False
    while at < len(words) and words[at][:1] in {"-", "+"} and len(words[at]) > 1:
        option = words[at]
        at += 1
        if option == "--":
            break
        if option.startswith("--"):
            at += option in _LONG_WITH_VALUE
            continue
        text = text or (option[0] == "-" and "c" in option)
        at += option.count("o") + option.count("O")
    return at, text


def image_entrypoint(image: str) -> tuple[str, ...]:
    """Return what an image starts if the container has args but no command.

    vLLM's server images start an engine by themselves (vllm docker/Dockerfile), Kthena's for
    Ascend (its docker/Dockerfile.mooncake-npu-a3), and those of Text Generation Inference but for
    the one with llama.cpp (its Dockerfile), and KServe's huggingfaceserver (its
    python/huggingface_server.Dockerfile). Put it before the args for `read_command`.
    """
    read = read_image(image)
    if base_name(read.repository) == Program.HUGGINGFACESERVER.value:
        return ("python3", "-m", Program.HUGGINGFACESERVER.value)
    if base_name(read.repository) == _KTHENA_IMAGE and (read.tag or "").startswith("vllm"):
        return ("vllm", "serve")
    if any(name in base_name(read.repository) for name in _TGI_IMAGES):
        return () if "llamacpp" in (read.tag or "") else (_TGI_LAUNCHER,)
    if not base_name(read.repository).startswith("vllm-openai"):
        return ()
    release = read.vllm_version
    return API_SERVER if release is not None and release < SERVES_SINCE else ("vllm", "serve")
