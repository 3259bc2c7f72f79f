"""The format of a model's weights, read from config.json.

Sources: vllm/model_executor/layers/quantization (fp8.py, modelopt.py, mxfp4.py, awq.py, gptq.py,
compressed_tensors/compressed_tensors.py); compressed-tensors, CompressionFormat.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.values.read import mapping

_PLAIN = {"bfloat16": "bf16", "float16": "bf16", "half": "bf16"}
_ALGORITHMS = {"fp8": "fp8", "fp8_pb_wo": "fp8", "nvfp4": "nvfp4", "mxfp8": "mxfp8"}
"""Names of NVIDIA ModelOpt."""
_COMPRESSED = {
    "float-quantized": "fp8",
    "int-quantized": "int8",
    "nvfp4-pack-quantized": "nvfp4",
    "mxfp4-pack-quantized": "mxfp4",
}
"""Names of compressed-tensors. `pack-quantized` has its number of bits elsewhere."""
_BY_BITS = {4: "int4", 8: "int8"}
_PACKED = "pack-quantized"


def weights_format(config: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    """Return the format of most weights: bf16, fp8, mxfp8, int8, nvfp4, mxfp4 or int4.

    None if the file does not say, or says one of which the table of models has no weights.
    """
    both = (mapping(each.get("quantization_config")) for each in (config, text))
    quantised = next(filter(None, both), None)
    if quantised is None:
        stated = (each.get(key) for each in (config, text) for key in ("torch_dtype", "dtype"))
        return _PLAIN.get(str(next(filter(None, stated), "")))
    method = str(quantised.get("quant_method", "modelopt")).casefold()
    algorithm = quantised.get("quant_algo")
    if algorithm is not None:
        return _ALGORITHMS.get(str(algorithm).casefold())
    if method in {"fp8", "mxfp4"}:
        return method
    if method in {"awq", "gptq"}:
        return _int_of(quantised.get("bits", 4))
    if method == "compressed-tensors":
        return _compressed(quantised)
    return None


def _compressed(quantised: Mapping[str, Any]) -> str | None:
    written = str(quantised.get("format", ""))
    if written != _PACKED:
        return _COMPRESSED.get(written)
    groups = [mapping(each) for each in mapping(quantised.get("config_groups")).values()]
    bits = [mapping(each.get("weights")).get("num_bits") for each in groups]
    return _int_of(bits[0]) if bits and bits.count(bits[0]) == len(bits) else None


def _int_of(bits: object) -> str | None:
    return next((name for number, name in _BY_BITS.items() if bits == number), None)
