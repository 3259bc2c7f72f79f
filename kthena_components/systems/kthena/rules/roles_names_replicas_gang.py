"""Checks the roles of a ModelServing: names, counts and gang minima.

Each function is one rule of RULES in entry_names_version_image_template.py.
"""

import re
from collections.abc import Iterator, Mapping

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    count_of,
    each_of,
    join_path,
    not_checked,
    part_of_rule,
    suggest_name,
)
from kthena_components.core.remedies import or_more
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import mapping, require_known, unknown_in, whole
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, known
from kthena_components.systems.kthena.view import Role, Serving

_ROLES, _ROLE_NAME = 4, 12
_CUT = 253
"""Maximum length of a name in Kubernetes; the rest of a longer one is only counted."""
_DNS_1035 = "a DNS-1035 label: lower-case letters, digits and dashes, a letter first, no dash last"
_CRD_NAME = regex(r"[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?")
_MINIMUM = "spec.template.gangPolicy.minRoleReplicas"


def each_role(view: Serving) -> Iterator[tuple[Serving, Role]]:
    """Yield each role, with the serving."""
    yield from ((view, role) for role in view.roles)


def kthena_generated_name(view: Serving) -> Iterator[Finding]:
    """Every name that Kthena generates is a DNS label of at most 63 characters.

    Its webhook checks `<name>-<replicas>-<role>-<role replicas>-<worker replicas>`, with the counts
    instead of the highest ordinals; a missing count is 1.

    Pass: llama-1-serve-1-1, 17 characters.
    Fail: 64 characters; the name Llama_1.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go
    validGeneratedNameLength.
    """
    path = "metadata.name"
    if not view.name:
        if isinstance(view.body.get("metadata"), Mapping) and view.name == "":
            seen = "is missing, and every name that Kthena generates starts with it"
            yield Finding(path=path, seen=seen, remedy="add metadata.name")
        return
    if isinstance(view.name, str) and not naming.DNS_1035.fullmatch(view.name):
        begins = "every name that Kthena generates starts with it"
        seen = f"is {display(view.name)}, and {begins}, but it is not {_DNS_1035}"
        remedy = f"write, for example, '{_label(view.name, _CUT)}'"
        yield Finding(path=path, seen=seen, remedy=remedy)
    for role in view.roles:
        yield from _generated(view, role)


@part_of_rule
def _generated(view: Serving, role: Role) -> Iterator[Finding]:
    """Check the longest name that Kthena generates for a pod: 63 characters of a DNS label."""
    path = "metadata.name"
    stated = (view.name, view.replicas, role.name, role.replicas, role.workers)
    require_known(path, *stated)
    if None in stated:
        return
    parts = [str(part) for part in stated]
    name = "-".join(part[:_CUT] for part in parts)
    over = sum(map(naming.least_length, parts)) + len(parts) - 1 - naming.DNS_LABEL
    seen = f"with role {display(role.name)} the generated name is {display(name, 2 * _CUT)}"
    if over > 0:
        long = f"{naming.DNS_LABEL + over} characters, and Kubernetes allows {naming.DNS_LABEL}"
        remedy = f"shorten metadata.name or the role's name by {over}"
        yield Finding(path=path, seen=f"{seen}, {long}", remedy=remedy)
    # Since 0.3 role names have their own rule, and one mistake gives one finding.
    if not view.since("0.3") and not naming.DNS_1035.fullmatch(f"r-{parts[2]}-0"):
        remedy = f"name the role for example '{_label(parts[2], _ROLE_NAME)}'"
        yield Finding(path=path, seen=f"{seen}, which is not {_DNS_1035}", remedy=remedy)


@each_of(each_role)
def kthena_role_name(view: Serving, role: Role) -> Iterator[Finding]:
    """A role's name has at most 12 characters and is a DNS-1035 label (before 0.3: also 405b).

    Pass: llama-405b, 10 characters.
    Fail: 405b; a name of 13 characters.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateRoleNames;
    pkg/apis/workload/v1alpha1/servinggroup_types.go Role.Name.
    """
    path = f"{role.path}.name"
    name = known(role.name, path)
    if name is None:
        return
    over = len(name) - _ROLE_NAME
    if over > 0:
        seen = f"is {display(name)}, {len(name)} characters, but may have {_ROLE_NAME}"
        yield Finding(path=path, seen=seen, remedy=f"shorten it by {over}")
    legal, what = naming.DNS_1035, _DNS_1035
    if not view.since("0.3"):
        legal, what = _CRD_NAME, "made of letters, digits and dashes, with no dash first or last"
    if not legal.fullmatch(name):
        seen = f"is {display(name)}, which is not {what}"
        remedy = f"write, for example, '{_label(name, _ROLE_NAME)}'"
        yield Finding(path=path, seen=seen, remedy=remedy)


def kthena_role_count(view: Serving) -> Iterator[Finding]:
    """A ModelServing has 1 to 4 roles.

    Pass: 4 roles.
    Fail: 5 roles; none.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/servinggroup_types.go ServingGroup.Roles.
    """
    path, roles = "spec.template.roles", view.template.get("roles")
    require_known(path, roles)
    if isinstance(roles, list | tuple) and not roles:
        yield Finding(path=path, seen="is empty, so nothing would run", remedy="add a role")
    elif isinstance(roles, list | tuple) and len(roles) > _ROLES:
        seen = f"has {count_of(len(roles), 'role')}, but Kthena accepts at most {_ROLES}"
        yield Finding(path=path, seen=seen, remedy=f"remove {len(roles) - _ROLES}")


def kthena_role_names_unique(view: Serving) -> Iterator[Finding]:
    """Role names are unique.

    Pass: prefill and decode.
    Fail: 2 roles named serve.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/servinggroup_types.go, the CEL rule of
    ServingGroup.Roles.
    """
    first: dict[str, Role] = {}
    for role in view.roles:
        path = f"{role.path}.name"
        if gap := unknown_in(role.name):
            yield not_checked(path, gap)
        elif isinstance(role.name, str) and first.setdefault(role.name, role) is not role:
            seen = f"is {display(role.name)}, already the name of {first[role.name].path}"
            yield Finding(path=path, seen=seen, remedy="rename one of them")


def kthena_replicas(view: Serving) -> Iterator[Finding]:
    """Counts of groups, of roles and of workers are not negative.

    Pass: replicas 0.
    Fail: replicas -1; workerReplicas -2.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validatorReplicas and
    validateWorkerReplicas.
    """
    counts: list[tuple[str, MaybeInt | None]] = [("spec.replicas", view.replicas)]
    for role in view.roles:
        counts += [(f"{role.path}.replicas", role.replicas)]
        counts += [(f"{role.path}.workerReplicas", role.workers)]
    for path, number in counts:
        if gap := unknown_in(number):
            yield not_checked(path, gap)
        elif isinstance(number, int) and number < 0:
            seen = f"is {number}, but must be at least 0"
            yield Finding(path=path, seen=seen, remedy=or_more(0))


def kthena_gang_minimum(view: Serving) -> Iterator[Finding]:
    """A gang minimum names an existing role, and is from 0 to that role's replicas.

    Before 0.3 the workers of one instance also counted: replicas + workerReplicas.

    Pass: minRoleReplicas serve 2, role serve with 2 replicas.
    Fail: serve 3 of 2 replicas; -1; serv, where the role is serve.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateGangPolicy.
    """
    roles = {role.name: role for role in view.roles}
    unsure = next((name for name in roles if isinstance(name, Unknown)), None)
    minimums = mapping(mapping(view.template.get("gangPolicy")).get("minRoleReplicas"))
    for name, stated in minimums.items():
        path, role = join_path(_MINIMUM, key_text(name)), roles.get(name)
        if stated is None or (role is None and (None in roles or not roles)):
            continue
        if gap := unknown_in(name) or (unsure if role is None else None):
            yield not_checked(path, gap)
        elif role is None:
            near = (n for n in list(roles)[:_ROLES] if isinstance(n, str) and len(n) < _CUT)
            seen = f"there is no role {display(name)}"
            remedy = suggest_name(key_text(name), near, minimums)
            yield Finding(path=path, seen=seen, remedy=remedy)
        else:
            yield from _minimum(view, role, path, whole(stated))


@part_of_rule
def _minimum(view: Serving, role: Role, path: str, least: MaybeInt | None) -> Iterator[Finding]:
    """Check a role's gang minimum against its replicas, and before 0.3 its workers as well."""
    what = "replicas"
    counted: tuple[MaybeInt | None, ...] = (role.replicas,)
    if not view.since("0.3"):
        counted, what = (role.replicas, role.workers), "replicas and workers"
    require_known(path, least, *counted)
    most = sum(number for number in counted if isinstance(number, int))
    if not isinstance(least, int) or None in counted:
        return
    if least < 0:
        seen = f"is {display(least)}, but must be at least 0"
        yield Finding(path=path, seen=seen, remedy=or_more(0))
    elif least > most:
        seen = f"is {display(least)}, but role {display(role.name)} has {most} {what}"
        yield Finding(path=path, seen=seen, remedy=f"write at most {max(most, 0)}")


def _label(name: str, longest: int) -> str:
    """Turn a name into a similar DNS-1035 label."""
    plain = re.sub(r"[^a-z0-9]+", "-", name[:_CUT].lower()).strip("-")
    return (plain if plain[:1].isalpha() else f"r{plain}")[:longest].rstrip("-")
