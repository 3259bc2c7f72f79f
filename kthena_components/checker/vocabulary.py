"""Words that are never secret: names of fields, of engines' options and of programs.

The Kubernetes provider marks a whole list as secret if one value in it is, so `containers` with a
secret variable would have nothing to read. These words of such a list stay visible
(checker/secrecy.py). Numbers, names and all other values do not.
"""

import json
import re
from collections.abc import Iterator
from functools import cache

from kthena_components.checker.catalogue import all_rules
from kthena_components.core.engines.lmdeploy_and_tgi import LMDEPLOY, TGI
from kthena_components.core.engines.option_table import load
from kthena_components.core.schema.pod import TABLE
from kthena_components.core.spec.fields import Spec
from kthena_components.systems import all_systems

_PROGRAMS = """
    && -- -c -ec -lc -m -u ; api_server bash env exec lmdeploy lmsysorg/sglang nohup python python3
    ray serve sglang sglang.launch_server sh start text-generation-launcher tini vllm
    vllm.entrypoints.openai.api_server vllm/vllm-openai |
"""
_ENGINES = ("ray", "sglang", "trtllm", "vllm")


@cache
def public_keys() -> frozenset[str]:
    """Return the names of fields of pods, of objects with pods, and of components' input."""
    kinds = (kind for system in all_systems() for kind in system.kinds)
    holders = (re.split(r"[][.]+", place) for kind in kinds for place in kind.templates)
    listed = {word for parts in holders for word in parts}
    of_pods = (name for kind in json.loads(TABLE.read_text()).values() for name in kind["fields"])
    return frozenset({*listed, *of_pods, *_fields(Spec)}) - {""}


@cache
def public_words() -> frozenset[str]:
    """Return the spellings of all options of all engines, and of programs that start them."""
    options = (spelling for engine in _ENGINES for spelling in load(engine).spellings)
    others = (spelling for dialect in (LMDEPLOY, TGI) for spelling in dialect.options)
    return frozenset({*_PROGRAMS.split(), *options, *others})


@cache
def rule_summary(name: str) -> str:
    """Return the summary of a rule, without its full stop; empty for an unknown rule."""
    return next((rule.summary for rule in all_rules() if rule.name == name), "").rstrip(".")


def _fields(spec: type[Spec]) -> Iterator[str]:
    yield from spec.model_fields
    for kind in spec.__subclasses__():
        yield from _fields(kind)
