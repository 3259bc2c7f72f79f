"""Prints as JSON which command lines one unpacked vLLM release accepts.

`verdicts` starts this in a separate process. The release's own code decides: its parser,
`vllm serve`, its EngineArgs, ParallelConfig, SchedulerConfig, CacheConfig and ModelConfig. Only the
model is a stub, because there is no model to read: its number of heads, and whether it has experts.
"""

import argparse
import contextlib
import importlib
import importlib.machinery
import json
import os
import sys
from collections.abc import Callable
from functools import partialmethod
from inspect import signature
from pathlib import Path
from typing import Any, cast

from toolchain.engine_flags.verdict_lines import MODELS, lines
from toolchain.engine_flags.vllm_parser import build_parser

_LONGEST = 4096
_GPUS = 1024
"""The simulated number of GPUs of a machine. Another rule checks the real number."""
_KEPT = ("/vllm/config", "/vllm/engine/arg_utils.py", "/entrypoints/cli/serve.py")
_KEPT_TOO = ("/vllm/config.py", "/dp_supervisor.py", "/worker/cp_utils.py")


class _StartedError(BaseException):
    """Raised instead of starting the engine, after all checks have passed."""


class _Model:
    """A stub for the release's ModelConfig."""

    hf_text_config: Any
    is_chunked_prefill_supported = is_prefix_caching_supported = True
    runner_type, dtype = "generate", "bfloat16"

    def __init__(self, name: str, longest: int | None) -> None:
        shape = MODELS[name]
        self.model = self.tokenizer = name
        self.max_model_len = longest or _LONGEST
        self.is_moe, self.use_mla = shape["experts"] > 0, shape["mla"]
        self.get_num_experts = lambda: shape["experts"]
        self.get_total_num_kv_heads = lambda: shape["kv_heads"]
        self.get_sliding_window = lambda: None
        self.hf_text_config = self.hf_config = argparse.Namespace(
            num_attention_heads=shape["heads"], num_experts=shape["experts"], rope_scaling=None
        )
        self.hf_config.get_text_config = lambda: self.hf_text_config
        self.hf_config.model_type = "any"
        self.model_arch_config = argparse.Namespace(total_num_attention_heads=shape["heads"])
        self.registry = argparse.Namespace(is_pp_supported_model=lambda *_: True)
        self.multimodal_config = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "_verify_with_expert_parallelism":
            real = importlib.import_module("vllm.config").ModelConfig
            return lambda: real._verify_with_expert_parallelism(self)  # noqa: SLF001 - its own
        return (lambda *_, **__: False) if name.startswith(("get_", "verify")) else False


def keep_assertions() -> None:
    """Compile the modules with vLLM's checks with assertions. The parser is imported without."""
    loader: Any = importlib.machinery.SourceFileLoader
    compiled = loader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        kept = any(part in str(path) for part in _KEPT) or str(path).endswith(_KEPT_TOO)
        return compiled(self, data, path, _optimize=0 if kept else _optimize)

    loader.source_to_code = source_to_code


class Judge:
    """One release."""

    def __init__(self, root: Path) -> None:
        keep_assertions()
        self.parser, _ = build_parser(root)
        self.serves = (root / "vllm/entrypoints/cli/serve.py").exists()
        self.args: Any = importlib.import_module("vllm.engine.arg_utils")
        self.supervisor: Any = None
        self.parallel: Any = None
        self.model: Any = None
        self.because = ""
        self._stand_in()

    def _stand_in(self) -> None:
        """Install the model stub, and stop where the engine would start."""
        args, engine = self.args, self.args.EngineArgs
        engine.create_model_config = partialmethod(_read_model, self)
        engine.create_speculative_config = lambda *_, **__: None
        if hasattr(engine, "_is_v1_supported_oracle"):
            engine._is_v1_supported_oracle = lambda *_, **__: True  # noqa: SLF001 - needs a GPU
        for name, out in (
            ("maybe_override_with_speculators", lambda m, t, s: (m, t, s)),
            ("maybe_override_with_speculators_target_model", lambda m, t, _: (m, t)),
        ):
            if hasattr(args, name):
                setattr(args, name, _speculators(out))
        args.ParallelConfig = _wrapped(args.ParallelConfig, self._parallel_made)
        args.SchedulerConfig = _wrapped(args.SchedulerConfig, self._scheduler_made)
        platform: Any = importlib.import_module("vllm.platforms").current_platform
        type(platform).device_count = classmethod(lambda _: _GPUS)
        counting = "cuda_device_count_stateless"
        with contextlib.suppress(ImportError):
            importlib.import_module("vllm.utils.torch_utils")
        for module in [m for m in sys.modules.values() if counting in vars(m)]:
            setattr(module, counting, lambda: _GPUS)

    def _parallel_made(self, config: Any) -> None:
        self.parallel = config

    def _scheduler_made(self, _: Any) -> None:
        config: Any = importlib.import_module("vllm.config").ModelConfig
        config.verify_with_parallel_config(self.model, self.parallel)
        _check_context_parallel(self.parallel, mla=self.model.use_mla)
        _check_nodes(self.parallel)
        raise _StartedError

    def refuses(self, line: str) -> bool | None:
        """Return whether the release rejects a command line, or None if it lacks the options."""
        try:
            args = self.parser.parse_args(["serve", *line.split()])
        except SystemExit:
            return None
        if not self.serves:
            args.model = args.model_tag
        try:
            self._start(args)
        except _StartedError:
            return False
        except (AssertionError, NotImplementedError, RuntimeError, ValueError) as error:
            self.because = f"{type(error).__name__}: {error}"
            return True
        raise AssertionError(f"{line}: neither started nor rejected")

    def _start(self, args: argparse.Namespace) -> None:
        if not self.serves:
            self._build(args)
            return
        serve: Any = importlib.import_module("vllm.entrypoints.cli.serve")
        if self.supervisor is None and hasattr(serve, "run_dp_supervisor"):
            self.supervisor = sys.modules[serve.run_dp_supervisor.__module__]
        serve.run_server = lambda args, **_: args
        serve.uvloop = argparse.Namespace(run=self._build)
        serve.run_multi_api_server = self._build
        serve.run_headless = lambda args: self._build(args, headless=True)
        serve.run_dp_supervisor = self._build_child
        command = serve.ServeSubcommand()
        command.validate(args)
        command.cmd(args)

    def _build_child(self, args: Any) -> None:
        """Build the first of several engines that serve on different ports."""
        own = self.supervisor
        self._build(own._build_vllm_dp_server_args(args, 0))  # noqa: SLF001 - as it does itself

    def _build(self, args: Any, *, headless: bool = False) -> None:
        engine = self.args.AsyncEngineArgs.from_cli_args(args)
        usage: Any = importlib.import_module("vllm.usage.usage_lib").UsageContext
        build = engine.create_engine_config
        stated = {"usage_context": usage.OPENAI_API_SERVER, "headless": headless}
        build(**{name: stated[name] for name in stated if name in signature(build).parameters})


def _read_model(args: Any, judge: Judge) -> _Model:
    judge.model = _Model(args.model, args.max_model_len)
    return cast("_Model", judge.model)


def _speculators(out: Callable[..., Any]) -> Callable[..., Any]:
    def override(model: Any, tokenizer: Any, **more: Any) -> Any:
        return out(model, tokenizer, more.get("vllm_speculative_config"))

    return override


def _wrapped(real: Any, after: Callable[[Any], None]) -> Any:
    """Return a class that creates the same objects as the real one, and records them."""

    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            return getattr(real, name)

    class Wrapped(metaclass=Meta):
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            made = real(*args, **kwargs)
            after(made)
            return made

    return Wrapped


def _check_nodes(parallel: Any) -> None:
    """Run the assertions of v1/executor/multiproc_executor.py before it starts its workers."""
    if getattr(parallel, "nnodes", 1) > 1:
        try:
            rest = parallel.world_size % parallel.nnodes_within_dp
        except ZeroDivisionError:
            rest = 1
        if rest:
            raise ValueError("global world_size must be divisible by nnodes_within_dp")


def _check_context_parallel(parallel: Any, *, mla: bool) -> None:
    """Run the check of a worker with a model of one kind of attention."""
    try:
        check: Any = importlib.import_module("vllm.v1.worker.cp_utils")
    except ImportError:
        return
    if not hasattr(check, "check_attention_cp_compatibility"):
        return
    own = _attention_module()
    kind = getattr(own, "MLAAttentionImpl" if mla else "AttentionImpl")

    class Backend(own.AttentionBackend):  # type: ignore[misc, name-defined]
        get_impl_cls = staticmethod(lambda: kind)
        get_name = staticmethod(lambda: kind.__name__)

    impl = argparse.Namespace(
        need_to_return_lse_for_decode=True,
        dcp_world_size=1,
        supports_pcp=getattr(kind, "supports_pcp", False),
        supports_mtp_with_cp_non_trivial_interleave_size=True,
    )
    layer = argparse.Namespace(impl=impl, get_attn_backend=lambda: Backend)
    check.get_layers_from_vllm_config = lambda *_, **__: {"layer": layer}
    config = argparse.Namespace(parallel_config=parallel, speculative_config=None)
    check.check_attention_cp_compatibility(config)


def _attention_module() -> Any:
    try:
        return importlib.import_module("vllm.v1.attention.backend")
    except ImportError:
        return importlib.import_module("vllm.attention.backends.abstract")


def _apart(judge: Judge, line: str) -> tuple[bool | None, str]:
    """Check in a separate process, because some releases change global state."""
    receiver, sender = os.pipe()
    if os.fork() == 0:
        with contextlib.suppress(BaseException), os.fdopen(sender, "w") as out:
            out.write(json.dumps([judge.refuses(line), judge.because]))
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as told:
        text = told.read()
    os.wait()
    if not text:
        raise ValueError(f"{line}: neither started nor rejected")
    refused, because = json.loads(text)
    return refused, because if refused else ""


def main(root: str) -> None:
    """Print every command line with the release's verdict and the reason."""
    judge = Judge(Path(root))
    told = {line: _apart(judge, line) for line in lines(Path(root).name)}
    json.dump({line: said for line, said in told.items() if said[0] is not None}, sys.stdout)
