"""KAITO's rules about partitions of GPUs. A rule's docstring documents it."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, each_of, nearest, part_of_rule
from kthena_components.core.remedies import either, or_more, remove
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, require_known, text, unknown_inside
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.kaito.presets import find_preset
from kthena_components.systems.kaito.view import Model, each_model, refused

_RULE = "kaito-partition"
_PROFILES = frozenset(
    [
        "1g.5gb",
        "1g.6gb",
        "1g.10gb",
        "1g.12gb",
        "1g.18gb",
        "1g.20gb",
        "1g.23gb",
        "1g.24gb",
        "1g.35gb",
        "1g.45gb",
        "2g.10gb",
        "2g.12gb",
        "2g.20gb",
        "2g.24gb",
        "2g.35gb",
        "2g.45gb",
        "3g.20gb",
        "3g.40gb",
        "3g.47gb",
        "3g.48gb",
        "3g.71gb",
        "3g.90gb",
        "4g.20gb",
        "4g.24gb",
        "4g.40gb",
        "4g.47gb",
        "4g.48gb",
        "4g.71gb",
        "4g.90gb",
        "7g.40gb",
        "7g.80gb",
        "7g.94gb",
        "7g.96gb",
        "7g.141gb",
        "7g.180gb",
    ]
)
"""The MIG profiles that KAITO knows: shares of a GPU, and GiB."""


@each_of(each_model)
def kaito_partition(model: Model) -> Iterator[Finding]:
    """A partition is a MIG profile that holds the weights, or a number of whole GPUs.

    Whether KAITO accepts partitions at all depends on its feature gates, which `check` does not
    know.

    Pass: mode mig, profile 3g.40gb for phi-4; mode accelerator, count 2.
    Fail: mode mig, profile 1g.10gb for llama-3.3-70b-instruct; mode accelerator without count.
    Level: mandatory. KAITO's webhook rejects it.
    Source: kaito-project/kaito v0.12.0 api/v1beta1/workspace_validation.go validatePartition,
    validateMIGModelFit; pkg/utils/mig/mig.go.
    """
    stated, path = model.resource.get("partition"), f"{model.resource_path}.partition"
    require_known(path, unknown_inside(stated))
    fields = mapping(stated)
    if stated is not None and model.tuned:
        yield refused(path, "is given, but tuning takes whole GPUs", remove(), _RULE)
    elif fields.get("mode") == "mig":
        yield from _slice(model, fields, path)
    elif fields.get("mode") == "accelerator":
        if fields.get("profile"):
            seen = "is given, but mode accelerator takes whole GPUs"
            yield refused(f"{path}.profile", seen, either(remove(), "write mode: mig"), _RULE)
        if fields.get("count") is None:
            seen = "is missing, and mode accelerator needs it"
            yield refused(f"{path}.count", seen, or_more(1), _RULE)


@part_of_rule
def _slice(model: Model, fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    profile = known(text(fields.get("profile")), f"{path}.profile")
    if fields.get("count") is not None:
        seen = "is given, but mode mig takes one slice"
        yield refused(f"{path}.count", seen, either(remove(), "write mode: accelerator"), _RULE)
    if profile is None or profile not in _PROFILES:
        seen = f"is {display(profile)}, which KAITO does not know" if profile else "is missing"
        near = nearest(str(profile), sorted(_PROFILES)) or "3g.40gb"
        yield refused(f"{path}.profile", seen, f"write for example '{near}'", _RULE)
        return
    require_known(f"{path}.profile", model.preset)
    shape = find_preset(str(model.preset)) if model.preset else None
    if shape is None or isinstance(shape, Unknown):
        return
    files = shape.files_gib or shape.weights_gib or 0
    held = int(profile.rpartition(".")[2].removesuffix("gb"))
    if files > held:
        seen = f"is {profile}, which holds {held} GiB, but the files of {model.preset} are "
        seen += f"{files:g} GiB"
        yield refused(f"{path}.profile", seen, "choose a larger slice, or whole GPUs", _RULE)
