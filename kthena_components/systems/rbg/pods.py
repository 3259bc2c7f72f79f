"""The pods of a RoleBasedGroup's roles, and the part of it that is kept to read them again."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.facts.engine_grouping import engines_of
from kthena_components.core.facts.workload import is_serving
from kthena_components.core.objects.object import PodSet, copies_in, pod_set, read_object
from kthena_components.core.objects.retained_fields import kept_pods, kept_spec
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import mapping, sequence, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.contract import Body
from kthena_components.systems.rbg.facts import parts_of
from kthena_components.systems.rbg.places import places_of
from kthena_components.systems.rbg.view import (
    COMPONENTS,
    LEADER_WORKER,
    RbgRole,
    RbgTemplate,
    RbgView,
    components_of,
    read_rbg,
    template_of,
)

_ROLES = Unknown("the roles are not known yet")
_CONTAINERS = Unknown("the containers are not known yet")


def pods_of_roles(view: RbgView) -> Iterator[PodSet]:
    """Return the pods of each role, from templates as the controller creates them."""
    found, groups = view.object, copies_in(view.replicas, 1)
    if view.gap:
        number = product(groups, _ROLES)
        yield pod_set(found, f"{view.path}.roles", _ROLES, number, by_controller=True)
    for role in view.roles:
        instances = product(groups, copies_in(role.fields.get("replicas"), 1))
        made = zip(_templates_of(view, role), _spread(view, role), strict=False)
        for (template, each), spread in made:
            number, written = product(instances, each), places_of(template)
            path, body = template.path, _CONTAINERS if unknown_in(template.body) else template.body
            if body is not None:
                made_of = pod_set(
                    found, path, body, number, by_controller=True, spread=spread, written=written
                )
                yield replace(made_of, name=role.name if isinstance(role.name, str) else "")


def _templates_of(view: RbgView, role: RbgRole) -> Iterator[tuple[RbgTemplate, MaybeInt]]:
    """Return the templates of a role, and the pods of each in an instance."""
    if role.pattern == LEADER_WORKER:
        rest = role.pods if isinstance(role.pods, Unknown) else role.pods - 1
        yield template_of(view, role, "leaderTemplatePatch"), 1
        if rest != 0:
            yield template_of(view, role, "workerTemplatePatch"), rest
    elif role.pattern == COMPONENTS:
        for component in components_of(role):
            yield component.template, copies_in(component.size, 1)
    else:
        yield template_of(view, role), 1


def _spread(view: RbgView, role: RbgRole) -> list[bool]:
    """Return for each template of a role whether its pods form engines of several pods."""
    if role.pattern == LEADER_WORKER:
        return [role.pods != 1] * 2
    parts = list(parts_of(view, role))
    engines = engines_of(parts)
    wide = {e.path for e in engines if isinstance(e.pods, int) and e.pods > 1}
    joined = bool(wide) and len(engines) == 1
    return [part.path in wide or (joined and is_serving(part.pod)) for part in parts]


def kept_roles(body: Body) -> Body:
    """Keep what the rules over a stack compare; everything if the pods need more than that.

    A patch is merged by names and directives outside of it, and whether the pods that share a claim
    are one engine depends on their command lines.
    """
    view = read_rbg(read_object(body))
    templates = (made for role in view.roles for made, _ in _templates_of(view, role))
    return kept_spec(body) if any(map(_needs_all, templates)) else kept_pods(body)


def _needs_all(template: RbgTemplate) -> bool:
    volumes = sequence(mapping(mapping(template.body).get("spec")).get("volumes"))
    shared = any("persistentVolumeClaim" in mapping(volume) for volume in volumes)
    return shared or any(patch is not None for _, patch in template.patches)
