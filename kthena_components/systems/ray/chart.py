"""Reads the script of the Helm chart vllm-stack, whose RayCluster has its engine in a ConfigMap.

The head copies the script out of its mount and runs the copy. The script appends words to an array
and runs it. The chart writes each line of the script from its values.
Source: vllm-project/production-stack helm/templates/ray-cluster.yaml, chart 0.1.12.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from kthena_components.core.engines.files import read_file
from kthena_components.core.facts.container import read_volumes
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.files import PodVolumes, read_files
from kthena_components.core.values.read import sequence

_SCRIPT = "/entrypoint/vllm-entrypoint.sh"
_WORDS = re.compile(r"^\s*ARGS\+?=\(([^()]*)\)\s*$", re.MULTILINE)
_RUN = re.compile(r'^\s*exec "\$\{ARGS\[@\]\}"\s*$', re.MULTILINE)


def chart_command(
    container: Mapping[str, Any], spec: Mapping[str, Any], context: Context
) -> list[str] | None:
    """Return the command of the head of such a cluster; None for other containers and scripts.

    Args:
        container: The head's first container.
        spec: The spec of its pod.
        context: What is known beside the object: the ConfigMap with the script.
    """
    words = [word for word in sequence(container.get("command")) if isinstance(word, str)]
    if not any(f"cp {_SCRIPT} " in word for word in words):
        return None
    files, _ = read_files(container, PodVolumes(read_volumes(spec), context), "")
    text = read_file(files, _SCRIPT)
    # The reader of scripts reports why one is not at hand.
    return _engine(text) if isinstance(text, str) else ["bash", _SCRIPT]


def _engine(text: str) -> list[str] | None:
    """Return the command that the chart's script runs; None for other scripts."""
    parts = _WORDS.findall(text)
    if not parts or not _RUN.search(text) or text.count("ARGS") > len(parts) + 2:
        return None
    try:
        return [word for part in parts for word in shlex.split(part)]
    except ValueError:
        return None
