"""Rules of options: their names, the keys in their values, and the engine's config file."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core.engines import Problem
from kthena_components.core.engines.option_table import Keys, Table, Words, load
from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, suggest
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.remedies import plain
from kthena_components.core.rules.support.engine_pods import Start, each_start, starts
from kthena_components.core.rules.support.messages import is_number, slip_of, title
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import Version
from kthena_components.core.values.read import is_map, mapping
from kthena_components.core.values.unknown import Unknown, is_unresolved


def engine_option_keys(facts: ServingFacts) -> Iterator[Finding]:
    """The engine's release has every key of the JSON objects in its options, and takes its value.

    The options are --speculative-config, --compilation-config with its pass_config,
    --kv-transfer-config, --kv-events-config and --eplb-config of vLLM, since 0.11.0 also
    --structured-outputs-config, --pooler-config and those named attention, ec-transfer, kernel,
    profiler and reasoning, whole or as --eplb-config.num_redundant_experts, and --kv-events-config
    of SGLang. Each release has its own keys (docs/engines.md). Older releases ignore other keys, so
    what they say has no effect; newer ones refuse them. The words are those of `method` in
    --speculative-config, since vLLM 0.9.1, of cudagraph_mode in --compilation-config, since 0.10.1,
    and of publisher in --kv-events-config, since 0.11.1. SGLang ignores other keys, and does not
    start with another publisher. The types are those that vLLM's own classes refuse: a number for
    text, a string for a number, a list or a map for either. "3" is a number for them, too.

    Pass: --speculative-config '{"model": "m", "num_speculative_tokens": 3}'.
    Fail: --speculative-config '{"model": "m", "num_speculative_token": 3}'; with vLLM 0.12,
    --compilation-config.cudagraph_modes=NONE; --compilation-config.cudagraph_mode=FULL_DECODE;
    --speculative-config.method=eagel; with vLLM 0.33, --structured-outputs-config
    '{"disable_fallback": true}'; --speculative-config '{"num_speculative_tokens": "three"}'.
    Level: mandatory; advisory if the release ignores the key, or the image states no release, or
    the words are those of the releases before and after.
    Source: vllm/config of the releases, run as they are published; KVEventsConfig and
    EventPublisherFactory in sglang/srt/disaggregation/kv_events.py of each release.
    """
    for start in starts(facts, "vllm", "sglang"):
        release, table = start.command.release, load(str(start.command.engine))
        if release is None:
            continue
        for option in table.keyed:
            name, _, inner = option.partition(".")
            stated = _option_value(start, name)
            if not is_map(stated):
                continue
            taken = table.keys_in(option, release.version)
            if taken is None:
                continue
            for key in _inside(stated, inner) if inner else stated:
                if isinstance(key, str) and not _is_in(key, taken.keys):
                    yield from _unknown_key(start, table, taken, key)
            own = stated.get(inner) if inner else stated
            yield from _mistyped(start, taken, own if is_map(own) else {})
        yield from _words(start, table)


def _option_value(start: Start, option: str) -> Any:
    """Return the value of an option. SGLang's parser takes it as text, and reads it later."""
    stated = start.option(option)
    if stated is None or not isinstance(stated, str) or is_unresolved(stated):
        return stated
    try:
        return json.loads(stated)
    except (ValueError, RecursionError):
        return None


def _words(start: Start, table: Table) -> Iterator[Finding]:
    """Report words that a release does not take in a key. Those in capitals may be lower case."""
    release = start.command.release
    for option, key in sorted({(row.option, row.key) for row in table.words if row.key}):
        stated = _option_value(start, option)
        word = stated.get(key) if is_map(stated) else None
        if release is None or not isinstance(word, str) or is_unresolved(word):
            continue
        taken = table.words_in(option, key, release.version)
        if taken is None:
            continue
        near = word.upper() if all(map(str.isupper, taken.words)) else word
        if near not in taken.words:
            level = Level.MANDATORY if release.sure and not taken.between else Level.ADVISORY
            seen = f"states {display(word)} as {key} of {option}, which "
            seen += f"{start.product} does not take"
            yield from start.refused(seen, plain(suggest(near, taken.words)), level)


_TYPES: Mapping[str, str] = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "text": "a string",
    "list": "a list",
    "map": "an object",
}
_READ_AS_BOOL = frozenset(["true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "1", "0"])
"""The strings that pydantic takes for true or false."""


def _mistyped(start: Start, taken: Keys, stated: Mapping[Any, Any]) -> Iterator[Finding]:
    """Report values of another type than a key takes. null often means the default."""
    sure = start.command.release is not None and start.command.release.sure
    for key, value in stated.items():
        kind = taken.types.get(key.replace("-", "_")) if isinstance(key, str) else None
        if kind is None or value is None or is_unresolved(value) or _is_of(kind, value):
            continue
        seen = f"states {display(value)} as {key} of {taken.option}, and {start.product} takes "
        level = Level.MANDATORY if sure else Level.ADVISORY
        yield from start.refused(f"{seen}{_TYPES[kind]} there", f"write {_TYPES[kind]}", level)


def _is_of(kind: str, value: object) -> bool:
    """Return whether pydantic takes a value for a type; what it is not known for counts as taken.

    Source: pydantic documentation, Conversion Table (lax mode).
    """
    if isinstance(value, str):
        numbers: Mapping[str, type] = {"int": int, "float": float}
        if kind in numbers:
            return "$" in value or is_number(value, numbers[kind])
        return kind == "text" or (kind == "bool" and value.strip().lower() in _READ_AS_BOOL)
    if isinstance(value, bool):
        return kind in {"bool", "int", "float"}
    if isinstance(value, int | float):
        whole = float(value).is_integer()
        return kind == "float" or (kind == "int" and whole) or (kind == "bool" and value in {0, 1})
    if isinstance(value, list | Mapping):
        return kind == ("list" if isinstance(value, list) else "map")
    return True


def _inside(stated: Mapping[Any, Any], outer: str) -> Iterator[Any]:
    """Yield the keys of a map in an option: of {"outer": {"a": 1}}, and of {"outer.a": 1}."""
    yield from mapping(stated.get(outer))
    for key in stated:
        first, _, inner = key.partition(".") if isinstance(key, str) else ("", "", "")
        if inner and first.replace("-", "_") == outer:
            yield inner


def _is_in(key: str, taken: frozenset[str]) -> bool:
    """Return whether a release takes a key; newer ones take hyphens as underscores."""
    first = key.rstrip("+").partition(".")[0]  # vLLM also takes a.b=c, and a+=c for a list
    return key in taken or first.replace("-", "_") in taken


def _unknown_key(start: Start, table: Table, taken: Keys, key: str) -> Iterator[Finding]:
    """Report a key inside an option's JSON that the release lacks; name releases that have it."""
    release = start.command.release
    sure = release is not None and release.sure and not taken.ignores
    lacks = "ignores" if taken.ignores else "does not have there"
    seen = f"states {display(key)} in {taken.option}, which {start.product} {lacks}"
    remedy = plain(suggest(key, taken.keys))
    if span := table.releases_with(taken.option, key):
        seen += f": {TITLES[table.engine]} {span[0]} to {span[1]} have it"
        remedy = "remove it, or use one of these releases"
    yield from start.refused(seen, remedy, Level.MANDATORY if sure else Level.ADVISORY)


@dataclass(frozen=True, slots=True)
class _Registry:
    """When an engine looks a word up in a registry, and what may add to it."""

    title: str
    folds: Callable[[str], str] = str
    """How the engine changes the word first: to small letters, or to capitals."""
    switch: str = ""
    """The option without which the engine does not look the word up. Empty: it always does."""
    unless: str = ""
    """The option with which the engine does not look the word up. Empty: none."""
    plugin: str = ""
    """The option by which users add names."""
    classes: bool = False
    """Whether it imports a word with a dot as a class."""
    moves: bool = False
    """Whether names that are gone may be in a package of their own."""
    also: tuple[str, Version] = ("", ())
    """A further word that the engine takes, and the first release that does."""
    since: Version = ()
    """The first release that always looks it up."""


_REGISTRIES: Mapping[str, Mapping[str, _Registry]] = {
    "vllm": {
        "--attention-backend": _Registry("attention backend", str.upper, also=("auto", (0, 18))),
        "--config-format": _Registry("config format", also=("auto", ())),
        "--distributed-executor-backend": _Registry("executor", classes=True),
        "--load-format": _Registry("loader", str.lower, moves=True),
        "--quantization": _Registry(
            "quantization method", str.lower, moves=True, also=("marlin", ())
        ),
        "--reasoning-parser": _Registry(
            "parser", plugin="--reasoning-parser-plugin", also=("none", (0, 33)), since=(0, 11, 1)
        ),
        "--tokenizer-mode": _Registry("tokenizer mode", str.lower, unless="--skip-tokenizer-init"),
        "--tool-call-parser": _Registry(
            "parser", switch="--enable-auto-tool-choice", plugin="--tool-parser-plugin"
        ),
    },
    "sglang": {"--speculative-algorithm": _Registry("algorithm", str.upper)},
}
"""`marlin` stands for the kernels of GPTQ and AWQ (override_quantization_method of both, 0.10.2 to
0.33.0), `none` for no parser (vllm/engine/arg_utils.py parse_reasoning_parser of 0.33.0), and
`auto` for any (vllm/config/attention.py validate_backend_before since 0.18.0,
vllm/transformers_utils/config.py get_config)."""
_QUANTIZATION, _REPLACED_SINCE = "--quantization", (0, 10, 0)
"""The first vLLM in which the config of a checkpoint replaces any word for that option."""
_REPLACES = re.compile(r"fp4|modelopt|auto-?round|gpt-oss|(^|/)nvidia/", re.IGNORECASE)
"""Names of models that may have such a config. ModelOpt made all of NVIDIA's quantized models."""
_UNLESS = ": it starts only if the model's config replaces the word, as ModelOpt and AutoRound do"


@each_start("vllm", "sglang")
def engine_option_word(start: Start) -> Iterator[Finding]:
    """The names of parsers, loaders, backends and algorithms are those of the engine's release.

    vLLM's parser takes any word for --quantization since 0.9.2, --tool-call-parser since 0.6.3,
    --load-format since 0.10.1, --config-format and --distributed-executor-backend since 0.10.2,
    --reasoning-parser since 0.11.1, --attention-backend and --tokenizer-mode since 0.13.0, and
    SGLang's takes any word for --speculative-algorithm since 0.5.12. The engine looks the word up
    later. vLLM imports an executor with a dot in its name as a class, and looks up the tool call
    parser only with --enable-auto-tool-choice. Since 0.10.0 the config of a checkpoint of ModelOpt,
    AutoRound or gpt-oss replaces any word for --quantization, so the rule does not check it for
    models with such names. Packages and plugins add names: in an image that is not the engine's
    own, the rule reports only a word with one wrong letter, and with --tool-parser-plugin or
    --reasoning-parser-plugin it does not check the parser.

    Pass: --quantization awq, and --tool-call-parser hermes, with vllm/vllm-openai:v0.11.0.
    Fail: --quantization awqq with vllm/vllm-openai:v0.11.0; --enable-auto-tool-choice and
    --tool-call-parser qwen3; --distributed-executor-backend raylet; --attention-backend FLASHATTN.
    Level: mandatory; advisory if the image states no release, if a package may have a loader or a
    quantization that vLLM itself no longer has, if the container installs packages first, and for
    --quantization of a model whose config is not known.
    Source: the registries of each release, run as they are published: QUANTIZATION_METHODS,
    _LOAD_FORMAT_TO_MODEL_LOADER, ToolParserManager, ReasoningParserManager, AttentionBackendEnum,
    _CONFIG_FORMAT_TO_CONFIG_PARSER, _VLLM_TOKENIZERS; SpeculativeAlgorithm of SGLang, which is
    read; get_class in vllm/v1/executor/abstract.py;
    validate_api_server_args and ModelConfig._verify_quantization, which read them;
    override_quantization_method in vllm/model_executor/layers/quantization (modelopt.py, inc.py).
    """
    release, table = start.command.release, load(str(start.command.engine))
    if release is None:
        return
    for option, registry in _REGISTRIES[table.engine].items():
        word = start.option(option)
        if not isinstance(word, str) or not word or is_unresolved(word):
            continue
        if not _is_looked_up(start, registry) or release.version < registry.since:
            continue
        if _is_taken(word, registry, release.version):
            continue
        taken, shown = table.words_in(option, "", release.version), registry.folds(word)
        if taken is None or shown in taken.words:
            continue
        if option != _QUANTIZATION or not _replaced(start):
            yield from _unregistered(start, table, taken, registry, shown)


def _is_looked_up(start: Start, registry: _Registry) -> bool:
    """Return whether the engine looks a word up, and no plugin adds names."""
    if registry.plugin and start.option(registry.plugin) is not None:
        return False
    if registry.unless and start.is_on(registry.unless) is not False:
        return False
    if registry.classes and start.command.nnodes not in {None, 1}:
        return False  # executor-stated says which executors connect nodes
    return not registry.switch or start.is_on(registry.switch) is True


def _is_taken(word: str, registry: _Registry, version: Version) -> bool:
    """Return whether an engine takes a word that its registry does not have."""
    also = word.lower() == registry.also[0] and version >= registry.also[1]
    return also or (registry.classes and "." in word)


def _replaced(start: Start) -> bool | None:
    """Return whether a model's config replaces the word for --quantization; None: not known."""
    release, model = start.command.release, start.command.model
    if release is not None and release.version < _REPLACED_SINCE:
        return False
    if isinstance(model, str) and _REPLACES.search(model):
        return True
    shape = model_shape(start.command, start.engine.entry.shape)
    if isinstance(shape, Unknown):
        return None
    plain_weights = shape.dtype == "bf16" or shape.fp8_block is not None or shape.group is not None
    return False if plain_weights else None


def _unregistered(
    start: Start, table: Table, taken: Words, registry: _Registry, word: str
) -> Iterator[Finding]:
    image, release = start.pod.image, start.command.release
    spans = [row for row in table.words if row.option == taken.option and not row.key]
    having = [row for row in spans if word in row.words]
    if image is None or not image.is_own(table.engine):
        near = slip_of(word, {each for row in spans for each in row.words})
        if having or near is None:
            return
    seen = f"has {taken.option} {word}, and {start.product} has no such {registry.title}"
    remedy = plain(suggest(word, taken.words))
    gone = bool(having) and having[0].since < taken.since
    if having:
        last = table.texts[having[-1].until if gone else having[0].since]
        seen += f": {last} is the {'last' if gone else 'first'} release with it"
        remedy = f"use {TITLES[table.engine]} {last}, or one of: {', '.join(sorted(taken.words))}"
    may_be_elsewhere = gone and registry.moves
    sure = release is not None and release.sure and not taken.between and not may_be_elsewhere
    if taken.option == _QUANTIZATION and _replaced(start) is None:
        sure = False
        seen += "" if having else _UNLESS
    yield from start.refused(seen, remedy, Level.MANDATORY if sure else Level.ADVISORY)


OPTIONS = "engine-option-known"


def engine_option_known(facts: ServingFacts) -> Iterator[Finding]:
    """The engine's release has every option of the command line, and accepts its values.

    The options are those of each release's parser, for vLLM since 0.6, SGLang since 0.4.6 and
    TensorRT-LLM since 0.18.2: docs/engines.md. The tag of the project's own image states the
    release. For another image, or a tag without a release, the newest release is assumed, or the
    one in the tag if the image has the engine's name (vllm-cpu:v0.11.0-x), and findings that
    depend on the release are advisory. The rule reports unknown options, ambiguous abbreviations,
    words that belong to no option, values for switches, missing values, and values of the wrong
    type or not among the choices. It reads config files as the release does: what is not a map in
    YAML, a second --config, and a line of vLLM with --config that does not begin with the model,
    end the start. For programs with further options of their own, unknown options are not reported.
    Since vLLM 0.17.0 a line with --served-model-name that names the model as a bare word begins
    with it.

    No release reads an option with dashes instead of hyphens, in another case, in quotes, or behind
    `--`, and no container starts a command whose words are in one item of the list. `$NAME` and
    `${NAME}` stay as they are where no shell runs: Kubernetes expands $(NAME) only. These are
    mandatory whatever the image; a NAME that nothing in the pod sets is advisory, because a tool
    may fill it in before.

    Pass: --nnodes 2 with vllm/vllm-openai:v0.11.1.
    Fail: --nnodes 2 with vllm/vllm-openai:v0.11.0; --swap-space 4 with v0.18.0; --max-model-length;
        command ["vllm serve M -tp 8"]; an option that starts with an en dash; vllm serve -tp 8 M
        --served-model-name m.
    Level: mandatory; advisory if the release is uncertain or the engine starts anyway.
    Source: vllm/engine/arg_utils.py, vllm/utils/argparse_utils.py and sglang/srt/server_args.py of
        the releases, run as they are published; CPython's Lib/argparse.py.
    """
    for engine in facts.engines:
        reported: set[Problem] = set()
        for pod in filter(None, (engine.entry, engine.worker)):
            for problem in pod.command.problems if pod.command else ():
                if problem.option and problem not in reported:
                    reported.add(problem)
                    yield _finding(engine, pod, problem)


def _finding(engine: EngineFacts, pod: PodFacts, problem: Problem) -> Finding:
    return Finding(
        path=pod.flags_path or pod.command_path,
        seen=f"{title(engine)}: {problem.text}",
        remedy=problem.remedy or f"correct {problem.flag}",
        level=Level.MANDATORY if problem.hard else Level.ADVISORY,
    )


FILE = "engine-config-file"


def engine_config_file(facts: ServingFacts) -> Iterator[Finding]:
    """The name of an engine's config file ends in .yaml or .yml.

    vLLM requires lower case. Another rule reports what is in the file, and `--config=F`, which no
    release reads.

    Pass: --config /config/vllm-0.33.yaml.
    Fail: --config /config/vllm-0.33.json; --config /config/2.YAML for vLLM.
    Level: mandatory.
    Source: vllm/utils/argparse_utils.py load_config_file;
        sglang/srt/utils/server_args_config_parser.py.
    """
    for start in starts(facts, "vllm", "sglang"):
        path, written = start.option("--config"), start.command.where.get("config", "")
        ignored = written.partition(" ")[0] != "--config"
        if not isinstance(path, str) or start.command.release is None or ignored:
            continue
        name = path.casefold() if start.command.engine == "sglang" else path
        if name.rpartition(".")[2] not in {"yaml", "yml"}:
            seen = f"has --config {path}, and {start.product} reads files named .yaml or .yml"
            yield from start.refused(seen, "rename the file")
