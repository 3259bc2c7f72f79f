"""Checks the ConfigMap of inference.config: what KAITO rejects of it, and how vLLM starts with it.

KAITO appends each key below `vllm` to its own command line, so that it takes precedence. Source:
kaito-project/kaito v0.11.0 presets/workspace/inference/vllm/inference_api.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.files import read_yaml
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of, nearest, refuse, run_rule
from kthena_components.core.models import ModelShape
from kthena_components.core.rules.context_and_scheduler_sizes import (
    context_within_model,
    scheduler_sizes,
)
from kthena_components.core.rules.engine_options_and_config_file import OPTIONS
from kthena_components.core.rules.memory_weights_fraction_offload import memory_fraction_range
from kthena_components.core.values.blanks import is_blank, may_have_blanks
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.estimator import Sized, find_preset, size_of
from kthena_components.systems.kaito.facts import Start, shown, start_of
from kthena_components.systems.kaito.inference_config import (
    CONFIG,
    PORT,
    VLLM,
    Mistake,
    command_with,
    is_switch,
    mistakes_in,
    rejected_file,
    words_of,
)
from kthena_components.systems.kaito.view import (
    CONFIG_KEY,
    SEVERAL_ROLES,
    TRANSFORMERS,
    Model,
    View,
)

_SHARE = "kv_cache_cpu_memory_utilization"
_NOTHING = frozenset({"", "---", "...", "~", "null"})
_KEYS = (VLLM, "max_probe_steps", _SHARE)
"""Keys that KAITO reads of the file (KaitoConfig.from_yaml)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The file of a model, and how its flags are read."""

    view: View
    model: Model
    text: str
    content: Mapping[Any, Any]

    @property
    def path(self) -> str:
        return self.model.config_path

    @property
    def flags(self) -> dict[str, Any]:
        """The keys below `vllm`, without placeholders."""
        found = self.content.get(VLLM)
        flags = found if isinstance(found, Mapping) else {}
        return {
            str(key): value
            for key, value in flags.items()
            if not is_blank(str(key)) and not (isinstance(value, str) and is_blank(value))
        }


def kaito_config(view: View) -> Iterator[Finding]:
    """KAITO accepts the ConfigMap of inference.config, and vLLM starts on its nodes with it.

    The webhook reads the key inference_config.yaml: max-model-len is at most the model's, and
    values below vllm are strings and numbers. The launcher needs a map there. It appends each key
    to KAITO's command line with its value, so sizes in the file replace those that KAITO calculates
    for its nodes, and false turns a switch on. The options themselves are checked as on any command
    line of vLLM, by engine-option-known, memory-fraction-range and scheduler-sizes: unless KAITO's
    version is given, what the vLLM of KAITO 0.11 and the newest both reject.

    Pass: max-model-len 16384 for llama-3.3-70b-instruct.
    Fail: max-model-len 200000 for it; tensor-parallel-size 4 where KAITO starts tensor 2 × pipeline
    2 on 4 GPUs; port 8000.
    Level: mandatory; advisory for idle GPUs, ignored keys, and switches that are turned on.
    Source: kaito-project/kaito v0.11.0 api/v1beta1/inference_config_validation.go;
    presets/workspace/inference/vllm/inference_api.py KaitoConfig, parse_args.
    """
    for model in view.models:
        runs = not model.tuned and model.preset is not None and model.template is None
        if runs and model.runtime != TRANSFORMERS and not isinstance(model.runtime, Unknown):
            yield from _model(view, model)


def _model(view: View, model: Model) -> Iterator[Finding]:
    """Check the ConfigMap of one model."""
    yield from _missing_key(view, model)
    text = model.config_text
    if not isinstance(text, str):
        return
    content = read_yaml(text)
    shape = _shape(model)
    most = None if shape is None else shape.context
    draft = isinstance(content, Unknown) and may_have_blanks(text)
    rejected = None if draft else rejected_file(text, most)
    if rejected is not None:
        yield refuse(model.config_path, rejected.seen, rejected.remedy, CONFIG)
    if isinstance(content, Unknown):
        return  # kaito-capacity reports what is not checked.
    file = _File(view=view, model=model, text=text, content=content)
    if isinstance(content.get(VLLM, {}), Mapping) and not _is_empty(text):
        yield from _options(file, check_length=rejected is None)
        yield from _sizes(file)
    elif rejected is None:
        seen = "is empty" if VLLM not in content else "has vllm without a value"
        seen += ", and KAITO's launcher fails without a map there"
        yield refuse(file.path, seen, "write vllm: {}, or remove config", CONFIG)
    yield from _beside(file)


def _is_empty(text: str) -> bool:
    """Return whether a file holds nothing, which the launcher reads as None."""
    lines = (line.strip() for line in text.split("\n"))
    return all(line in _NOTHING or line.startswith("#") for line in lines)


def _missing_key(view: View, model: Model) -> Iterator[Finding]:
    found = view.object.context.find({"name": model.config})
    if not isinstance(found, Unknown) and not found.has(CONFIG_KEY):
        seen = f"is {display(model.config)}, a ConfigMap without the key {CONFIG_KEY}"
        yield refuse(model.config_path, seen, f"write {CONFIG_KEY} in its data", CONFIG)


def _shape(model: Model) -> ModelShape | None:
    shape = find_preset(model.preset) if isinstance(model.preset, str) else None
    return None if isinstance(shape, Unknown) else shape


def _options(file: _File, *, check_length: bool) -> Iterator[Finding]:
    """Check the flags in the file by the rules for any command line of vLLM."""
    words = words_of(file.flags)
    for mistake in mistakes_in(words, file.view.object.context.versions.get("kaito")):
        yield _finding(file, OPTIONS, mistake)
    for key, value in file.flags.items():
        if value is False and is_switch(key):
            seen = f"has {key}: false, which KAITO writes as --{key} False, and vLLM turns it on"
            remedy = f"write no-{key}: true, or remove it"
            yield _advice(file, seen, remedy)
    facts = _facts(file, words)
    lengths = (context_within_model,) if check_length else ()
    for check in (memory_fraction_range, scheduler_sizes, *lengths):
        for finding in run_rule(check, facts):
            yield replace(finding, path=file.path)


def _facts(file: _File, words: Sequence[str]) -> ServingFacts:
    """Return the facts of a serving that starts with the flags; nothing else is known about it."""
    name, shape = str(file.model.preset), _shape(file.model)
    pod = PodFacts(
        devices=(),
        command=command_with(words),
        shape=shape,
        gpus_path=file.path,
        command_path=file.path,
    )
    engine = EngineFacts(path=file.path, name=name, pods=1, replicas=1, entry=pod, worker=None)
    return ServingFacts(path="", name=name, engines=(engine,))


def _finding(file: _File, rule: str, mistake: Mistake) -> Finding:
    level = Level.MANDATORY if mistake.sure else Level.ADVISORY
    seen = f"names options of vLLM: {mistake.seen}"
    return Finding(path=file.path, seen=seen, remedy=mistake.remedy, rule=rule, level=level)


def _sizes(file: _File) -> Iterator[Finding]:
    """Compare vLLM's sizes and port with the nodes and the probes that KAITO creates."""
    port = file.flags.get("port")
    if port is not None and str(port) != str(PORT) and file.view.kind != SEVERAL_ROLES:
        seen = f"has port {display(port)}, but KAITO's Service and probes use {PORT}"
        yield refuse(file.path, seen, "remove it", CONFIG)
    sized = size_of(file.model)
    if not isinstance(sized, Sized) or sized.deployment is None:
        return
    start = start_of(sized, sized.deployment)
    if isinstance(start, Start) and start.configured:
        yield from _ranks(file, sized, start)


def _ranks(file: _File, sized: Sized, start: Start) -> Iterator[Finding]:
    """Compare the ranks that a ConfigMap makes vLLM start with the GPUs that KAITO provides."""
    made = sized.deployment
    ranks = start.command.world
    if made is None or not isinstance(ranks, int):
        return
    gpus = made.nodes * sized.instance.gpus
    seen = f"makes vLLM start {count_of(ranks, 'rank')} ({shown(start.deployment)}), but KAITO "
    seen += f"provides {count_of(gpus, 'GPU')} on {count_of(made.nodes, 'node')}"
    remedy = f"remove the sizes: KAITO starts {shown(made)}"
    if ranks > gpus:
        yield refuse(file.path, seen, remedy, CONFIG)
    elif ranks < gpus:
        yield _advice(file, f"{seen}, and vLLM leaves {gpus - ranks} idle", remedy)


def _beside(file: _File) -> Iterator[Finding]:
    """Check the keys beside `vllm`."""
    share = file.content.get(_SHARE)
    share = None if isinstance(share, str) and is_blank(share) else share
    if share is not None and not isinstance(share, int | float):
        seen = f"has {_SHARE} {display(share)}, and KAITO's launcher fails without a number"
        yield refuse(file.path, seen, "write a number from 0 to 1", CONFIG)
    elif share is not None and share > 1:
        seen = f"has {_SHARE} {share}, a share of the free memory of a node"
        yield _advice(file, seen, "write a number from 0 to 1")
    for key in file.content:
        if key not in _KEYS:
            near = nearest(str(key), _KEYS)
            seen = f"has the key {display(key)} beside vllm, which KAITO ignores"
            option = f"write it below {VLLM}, if it is an option of vLLM"
            yield _advice(file, seen, f"write {near}" if near else f"{option}, or remove it")


def _advice(file: _File, seen: str, remedy: str) -> Finding:
    return Finding(path=file.path, seen=seen, remedy=remedy, level=Level.ADVISORY)
