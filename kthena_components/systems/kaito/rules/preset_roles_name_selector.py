"""Checks KAITO's Workspace, InferenceSet and MultiRoleInference.

Mandatory rules cover what its admission rejects, or what its controller cannot deploy, as of v0.12.
capacity_and_instance_type.py checks the number of nodes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    Level,
    count_of,
    nearest,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.naming import DNS_LABEL, is_dns_name
from kthena_components.core.remedies import either, write
from kthena_components.core.schema.versions import known_version, read_release
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    text,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.kaito.estimator import FORMER_NAMES, SHORT_NAMES, is_preset
from kthena_components.systems.kaito.rules.access_adapters_runtime_annotations import (
    kaito_access_secret,
    kaito_adapters,
    kaito_annotations,
    kaito_runtime,
)
from kthena_components.systems.kaito.rules.capacity_and_instance_type import (
    kaito_capacity,
    kaito_instance_type,
)
from kthena_components.systems.kaito.rules.kaito_config import kaito_config
from kthena_components.systems.kaito.rules.parallelism_and_partition import (
    kaito_parallelism,
    kaito_partition,
)
from kthena_components.systems.kaito.view import OWN_LABELS, SEVERAL_ROLES, WORKSPACE, Model, View

_PRESET, _ROLES = "kaito-preset", "kaito-roles"
_NAME = "kaito-name"


def kaito_preset(view: View) -> Iterator[Finding]:
    """A Workspace either infers or tunes, and inference has either a preset or a template.

    A preset's name is the name of a model on Hugging Face, `organisation/name`, or one of the short
    names that KAITO still supports. It rejects other earlier names, such as falcon-7b, since the
    release after the last one that has the model.

    Pass: the preset Qwen/Qwen3-32B; the preset phi-4-mini-instruct, one of 25 short names.
    Fail: inference with 1 preset and 1 template; the preset llama-3.1-80b-instruct.
    Level: mandatory; advisory for the name of a preset for tuning.
    Source: kaito-project/kaito api/v1beta1/workspace_validation.go; pkg/utils/plugin/plugin.go.
    """
    if view.kind == WORKSPACE:
        both = [view.object.body.get(key) for key in ("inference", "tuning")]
        if all(value is None for value in both):
            seen = "is not stated, and neither is tuning"
            yield refuse("inference", seen, "write inference.preset.name", _PRESET)
        elif all(value is not None and unknown_in(value) is None for value in both):
            seen = "is given together with inference, and a Workspace has only one of the two"
            yield refuse("tuning", seen, "remove one", _PRESET)
    release = known_version(view.object.context.versions.get("kaito", ""), "kaito")
    for model in view.models[:1] if view.kind == SEVERAL_ROLES else view.models:
        yield from _one_way(view, model)
        yield from _name(model, release)


@part_of_rule
def _one_way(view: View, model: Model) -> Iterator[Finding]:
    """Check that a model has either a preset or a template."""
    if view.kind == SEVERAL_ROLES or model.tuned:
        return
    preset, template = model.inference.get("preset"), model.inference.get("template")
    require_known(model.inference_path, preset, template)
    if preset is None and template is None:
        seen = "has neither a preset nor a template"
        yield refuse(model.inference_path, seen, "write preset.name", _PRESET)
    elif preset is not None and template is not None:
        seen = "has a preset and a template, and only one of them can define what runs"
        yield refuse(model.inference_path, seen, "remove one", _PRESET)


def _name(model: Model, release: str | None) -> Iterator[Finding]:
    """Check a preset's name: current, former, or the name of a model on Hugging Face."""
    name = model.preset
    stated = model.inference.get("preset") is not None or not model.inference
    if isinstance(name, Unknown):
        if stated and unknown_in(model.inference.get("preset")) is None:
            yield not_checked(model.preset_path, name)
    elif stated and not name:
        seen = "names no model"
        yield refuse(model.preset_path, seen, "write, for example, Qwen/Qwen3-32B", _PRESET)
    elif name and name in FORMER_NAMES:
        yield from _former(model, name, release)
    elif name and not is_preset(name):
        near = nearest(name, SHORT_NAMES)
        known = write(near) if near else "write the model's name on Hugging Face"
        yield Finding(
            path=model.preset_path,
            seen=f"is {display(name)}, which is neither organisation/name nor a short name "
            "of KAITO",
            remedy=known,
            level=Level.ADVISORY if model.tuned else Level.MANDATORY,
        )


def _former(model: Model, name: str, release: str | None) -> Iterator[Finding]:
    """Report a name that the newest KAITO has dropped, unless the stated release still has it."""
    last = FORMER_NAMES[name]
    if release and read_release(release) <= read_release(last):
        return
    elsewhere = "write the model's name on Hugging Face"
    stated = f"state your release with --release kaito={last}"
    yield Finding(
        path=model.preset_path,
        seen=f"is {display(name)}, which KAITO has only up to {last}",
        remedy=elsewhere if release else either(elsewhere, stated),
        level=Level.ADVISORY if model.tuned else Level.MANDATORY,
    )


def kaito_roles(view: View) -> Iterator[Finding]:
    """A MultiRoleInference has one prefill and one decode role, each with at least one replica.

    Either both have an instance type, or none: one setting decides for all roles whether KAITO
    creates nodes.

    Pass: prefill with 1 replica, decode with 2.
    Fail: 1 role; 2 prefill roles; replicas 0; an instance type for prefill alone.
    Level: mandatory.
    Source: kaito-project/kaito api/v1alpha1/multiroleinference_validation.go.
    """
    if view.kind != SEVERAL_ROLES:
        return
    roles, at = view.object.spec.get("roles"), "spec.roles"
    require_known(at, roles)
    items = [mapping(role) for role in (roles if isinstance(roles, list | tuple) else ())]
    kinds = [text(role.get("type")) for role in items]
    if gap := first_unknown(*kinds):
        yield not_checked(at, gap)
    elif sorted(map(str, kinds)) != ["decode", "prefill"]:
        given = ", ".join(display(kind) for kind in kinds[:3]) or "none"
        seen = f"has {count_of(len(kinds), 'role')} ({given}), but must have a prefill and a decode"
        yield refuse(at, seen, "write one role of type prefill and one of type decode", _ROLES)
    yield from _alike(items)
    for index, role in enumerate(items):
        replicas = whole(role.get("replicas"))
        path = f"{at}[{index}].replicas"
        if isinstance(replicas, Unknown):
            yield not_checked(path, replicas)
        elif replicas is not None and replicas < 1:
            seen = f"is {display(replicas)}, but must be at least 1"
            yield refuse(path, seen, "write 1 or more, or leave it to an autoscaler", _ROLES)


def _alike(roles: list[Mapping[str, Any]]) -> Iterator[Finding]:
    stated = [text(role.get("instanceType"), "") for role in roles]
    if not first_unknown(*stated) and "" in stated and any(stated):
        path = f"spec.roles[{stated.index('')}].instanceType"
        seen = "is missing, and another role states one"
        yield refuse(path, seen, "state it for both, or for neither", _ROLES)


def kaito_name(view: View) -> Iterator[Finding]:
    """The name of an object of KAITO is a DNS label, because other names contain it.

    Pass: llama-70b.
    Fail: llama.70b; Llama.
    Level: mandatory. KAITO's webhook rejects it.
    Source: kaito-project/kaito v0.12.0 api/v1beta1/workspace_validation.go and
    inferenceset_validation.go, api/v1alpha1/multiroleinference_validation.go, Validate.
    """
    name = view.object.name
    name = known(name, "metadata.name")
    if name and ("." in name or len(name) > DNS_LABEL or not is_dns_name(name)):
        seen = f"is {display(name)}, which is not a DNS label of at most {DNS_LABEL} characters"
        yield refuse("metadata.name", seen, "write a-z, 0-9 and dashes", _NAME)


_RULE = "kaito-selector"


def kaito_selector(view: View) -> Iterator[Finding]:
    """KAITO's objects select their nodes by a label of yours, and by terms that are labels.

    Labels that KAITO sets on its own nodes do not count. The only operator is In, with one value.
    The selector of a MultiRoleInference must not be empty.

    Pass: matchLabels apps llama.
    Fail: matchLabels kaito.sh/workspace llama alone; the operator Exists; an empty labelSelector
    of a MultiRoleInference.
    Level: mandatory. KAITO's webhook, or its CRD, rejects it; for an InferenceSet, it rejects each
    Workspace of it.
    Source: kaito-project/kaito v0.11.0 and v0.12.0 api/v1beta1/labels.go SanitizedMatchLabels,
    workspace_validation.go validateCreateWithInference;
    api/v1alpha1/multiroleinference_validation.go validateCreate.
    """
    several, own = view.kind == SEVERAL_ROLES, view.kind == WORKSPACE
    holder = mapping(view.object.body.get("resource")) if own else view.object.spec
    at = "resource.labelSelector" if own else "spec.labelSelector"
    if own and view.object.body.get("resource") is None:
        seen = "is missing, and KAITO's webhook fails without it"
        yield refuse("resource", seen, "write resource.labelSelector", _RULE)
    selector = holder.get("labelSelector")
    labels, terms = (mapping(selector).get(key) for key in ("matchLabels", "matchExpressions"))
    require_known(at, selector, labels, terms)
    if several and selector is not None and not labels and not terms:
        yield refuse(at, "selects nothing", "write, for example, matchLabels: {apps: llama}", _RULE)
    elif not several:
        if mapping(labels) and OWN_LABELS.issuperset(mapping(labels)):
            seen = f"has only {display(min(map(str, mapping(labels))))}, which KAITO ignores"
            yield refuse(f"{at}.matchLabels", seen, "add a label of your own", _RULE)
        yield from _terms(terms, f"{at}.matchExpressions")


def _terms(terms: Any, at: str) -> Iterator[Finding]:
    """Check expressions of a label selector: KAITO reads `In` with one value only."""
    for index, term in enumerate(terms if isinstance(terms, list | tuple) else ()):
        operator, values = (mapping(term).get(key) for key in ("operator", "values"))
        count = len(values) if isinstance(values, list | tuple) else 0
        if gap := unknown_inside(term):
            yield not_checked(f"{at}[{index}]", gap)
        elif operator != "In" or count != 1:
            given = f" with {count_of(count, 'value')}" if operator == "In" else ""
            seen = f"has operator {display(operator)}{given}, but KAITO accepts only In with one "
            yield refuse(
                f"{at}[{index}]", f"{seen}value", "write the label into matchLabels", _RULE
            )


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (
    kaito_preset,
    kaito_instance_type,
    kaito_capacity,
    kaito_config,
    kaito_parallelism,
    kaito_access_secret,
    kaito_adapters,
    kaito_runtime,
    kaito_annotations,
    kaito_roles,
    kaito_partition,
    kaito_selector,
    kaito_name,
)
