"""Reads objects of KServe back to the arguments of a serving."""

from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.plan.read_back import split_name
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.systems.emitter import Converter, Pair
from kthena_components.systems.kserve import convert_llm, convert_service
from kthena_components.systems.kserve.convert_service import CLUSTER_RUNTIME
from kthena_components.systems.kserve.emit_llm import CONFIG, LLM
from kthena_components.systems.kserve.emit_service import RUNTIME
from kthena_components.systems.kserve.templates import OWN_ENV, mentions
from kthena_components.systems.kserve.view import GROUP, SERVICE
from kthena_components.systems.system import Body

_SERVICE_LABEL, _PART = f"{GROUP}/inferenceservice", "component"


def _reader(body: Body) -> Any:
    return convert_llm if group_kind(body)[1] == LLM else convert_service


def _merged(body: Body, others: Sequence[Body]) -> tuple[Body, tuple[int, ...]]:
    result: tuple[Body, tuple[int, ...]] = _reader(body).merged(body, others)
    return result


def _filled(body: Body) -> dict[str, Any]:
    result: dict[str, Any] = _reader(body).filled(body)
    return result


def _arguments(body: Body) -> dict[str, Any]:
    result: dict[str, Any] = _reader(body).arguments(body)
    return result


def _same_name(body: Body, args: dict[str, Any], _shared: bool) -> dict[str, Any]:
    """Split the name of an InferenceService into those of a serving and a role: the only way."""
    name = mapping(body.get("metadata")).get("name")
    split = split_name(name)
    if group_kind(body)[1] == LLM or args.get("name") != name or split is None:
        return args
    return {**args, "name": split[0], "roles": [{**args["roles"][0], "name": split[1]}]}


def _elsewhere(args: dict[str, Any]) -> dict[str, Any]:
    """Reject pods that need variables which only KServe sets.

    Raises:
        SpecError: There are such pods.
    """
    found = [
        Finding(
            path=f"roles[{index}].{field}",
            seen=f"uses {', '.join(names)}, which only KServe sets",
            remedy="write the value, and ENTRY_ADDRESS for the address of the first pod",
            rule="convertible",
        )
        for index, role in enumerate(args["roles"])
        for field in ("entry_template", "worker_template")
        if (names := _kserves_own(role.get(field)))
    ]
    if found:
        raise SpecError(found, f"{SERVICE} {args.get('name')}")
    return args


def _kserves_own(template: object) -> list[str]:
    """List the variables in a template that KServe sets and the template does not."""
    if not isinstance(template, Mapping):
        return []
    names = [name for name in OWN_ENV if mentions(template, name)]
    listed = sequence(mapping(template.get("spec")).get("containers"))
    env = [mapping(e) for one in listed for e in sequence(mapping(one).get("env"))]
    return [name for name in names if not any(e.get("name") == name for e in env)]


def _label(pair: Pair) -> Pair | None:
    key, value = pair
    return (naming.NAME, value) if key == _SERVICE_LABEL else None


CONVERTER = Converter(
    kinds=((GROUP, SERVICE), (GROUP, LLM)),
    filled=_filled,
    merged=_merged,
    beside=((GROUP, RUNTIME), (GROUP, CLUSTER_RUNTIME), (GROUP, CONFIG)),
    arguments=_arguments,
    elsewhere=_elsewhere,
    same_name=_same_name,
    only_here=("storage_uri",),
    labels=(f"{GROUP}/",),
    label=_label,
)
