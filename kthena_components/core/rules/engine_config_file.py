"""The rule engine-config-file: the name of an engine's config file ends in .yaml or .yml."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.engine_startup import starts

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
            yield from start.refused(seen, "name it so")
