"""What KAITO's webhook rejects of an inference_config.yaml: the ConfigMap of inference.config.

Its loader reads texts below `vllm`, and leaves each value as it is written: 0x10 stays a text.

Source: kaito-project/kaito v0.11.0 api/v1beta1/inference_config_validation.go
validateInferenceConfig.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kthena_components.core.engines.files import Broken, read_yaml
from kthena_components.core.values.blanks import is_blank
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown

MAX_LEN = "max-model-len"
VLLM = "vllm"
_WHOLE = re.compile(r"[+-]?[0-9]{1,60}")
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Rejected:
    """What the webhook rejects, as a finding says it."""

    seen: str
    remedy: str


def rejected_length(stated: str, most: int | None) -> Rejected | None:
    """Check max-model-len; None if the webhook accepts it, and for a placeholder.

    Args:
        stated: The value as it is written, without quotes.
        most: The longest request of the model; None if it is not known, and nothing is checked.
    """
    word = stated.strip()
    if not word or most is None or is_blank(word):
        return None
    if not _WHOLE.fullmatch(word) or not -_INT64 <= int(word) < _INT64:
        seen = f"has {MAX_LEN} {display(stated)}, but KAITO accepts only a whole number there"
        return Rejected(seen, f"write the number of tokens, at most {most}")
    if int(word) > most:
        seen = f"has {MAX_LEN} {word}, but KAITO accepts at most the model's {most}"
        return Rejected(seen, f"write at most {most}")
    return None


def rejected_file(text: str, most: int | None) -> Rejected | None:
    """Check a whole file; None if the webhook accepts it, or if it cannot be read here.

    Args:
        text: The content of the key inference_config.yaml.
        most: The longest request of the model, or None.
    """
    found = read_yaml(text)
    if isinstance(found, Broken):
        seen = f"names a file that KAITO cannot read: {found.because}"
        return Rejected(seen, "write a map in YAML, with the options of vLLM below vllm")
    if isinstance(found, Unknown):
        return None
    flags = found.get(VLLM)
    if flags is None:
        return None
    if not isinstance(flags, Mapping):
        seen = "has vllm, which is not a map"
        return Rejected(seen, "write the options of vLLM below it, as keys with values")
    nested = next((key for key, value in flags.items() if isinstance(value, dict | list)), None)
    if nested is not None:
        kind = "map" if isinstance(flags[nested], dict) else "list"
        seen = f"has a {kind} below {display(nested)}, but KAITO reads only texts and numbers there"
        return Rejected(seen, "write it as one text in quotes, in JSON")
    length = flags.get(MAX_LEN)
    return None if length is None else rejected_length(_written(text, MAX_LEN, length), most)


def _written(text: str, flag: str, read: object) -> str:
    """Return a value below `vllm` as it is written; the caller has read the file already.

    A value of another map, which YAML merges, is returned as it was read.
    """
    import yaml  # noqa: PLC0415 - slow to load

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    found = yaml.load(text, Loader=loader)  # noqa: S506 - makes nothing but texts, lists and maps
    return str(mapping(mapping(found).get(VLLM)).get(flag, read))
