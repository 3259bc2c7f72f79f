"""Reads a RoleBasedGroup, or the one in a RoleBasedGroupSet; never raises.

The two versions are written differently and mean the same: v1alpha2 has a pattern in each role,
v1alpha1 has the template in the role itself, next to `leaderWorkerSet` or `components`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kthena_components.core.findings import join_path, path_of
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.templates import HIDDEN, MERGE_KEYS, patched
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count, mapping, sequence, text, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown

GROUP = "workloads.x-k8s.io"
RBG: GroupKind = (GROUP, "RoleBasedGroup")
RBG_SET: GroupKind = (GROUP, "RoleBasedGroupSet")
PREFIX = "rbg.workloads.x-k8s.io/"
STANDALONE, LEADER_WORKER, COMPONENTS = (
    "standalonePattern",
    "leaderWorkerPattern",
    "customComponentsPattern",
)
PATTERNS = (STANDALONE, LEADER_WORKER, COMPONENTS)
PLAIN = ""
"""The pattern of a v1alpha1 role that only has a template."""
_SIZED = frozenset({"LeaderWorkerSet", "InstanceSet", "RoleInstanceSet"})
"""Workloads of v1alpha1 that use the size of `leaderWorkerSet`."""
_IGNORED = Unknown("its workload is of a kind that may ignore leaderWorkerSet")
_SHAPELESS = Unknown("the size of the instance is not a count of 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class RbgRole:
    """One role."""

    path: str
    fields: Mapping[str, Any]
    name: MaybeText | None
    replicas: MaybeInt | None
    pattern: str
    """One of PATTERNS, or PLAIN."""
    held: Mapping[str, Any]
    """The map with the template: the pattern, or in v1alpha1 the role."""
    at: str
    """Path of that map."""
    legacy: bool
    """Whether it has the form of v1alpha1."""

    @property
    def size(self) -> MaybeInt | None:
        """Pods of one instance; None if invalid."""
        if self.pattern != LEADER_WORKER:
            return 1
        if not self.legacy:
            return count(self.held.get("size"), 1)
        kind = text(mapping(self.fields.get("workload")).get("kind"), "StatefulSet")
        if isinstance(kind, Unknown) or kind not in _SIZED:
            return kind if isinstance(kind, Unknown) else _IGNORED
        return count(mapping(self.fields.get("leaderWorkerSet")).get("size"), 1)

    @property
    def pods(self) -> MaybeInt:
        """Pods of one instance, for a role with one template."""
        size = self.size
        if isinstance(size, Unknown):
            return size
        return _SHAPELESS if size is None or size < 1 else size

    @property
    def reference(self) -> Mapping[str, Any] | None:
        """The reference to a template of spec.roleTemplates; None without one."""
        ref = self.held.get("templateRef")
        return None if ref is None or self.pattern == COMPONENTS else mapping(ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class RbgView:
    """The group, and its roles and shared templates."""

    object: Object
    path: str
    """Path of the group's spec, in the object."""
    spec: Mapping[str, Any]
    annotations: Mapping[str, Any]
    annotations_path: str
    roles: tuple[RbgRole, ...]
    shared: Mapping[str, tuple[str, Any]]
    """The shared templates by name, each with its path and content."""

    @property
    def gap(self) -> Unknown | None:
        """Why the roles are unknown; None if they are known."""
        return unknown_in(self.spec.get("roles"))

    @property
    def replicas(self) -> Any:
        """Number of such groups, as a set states it."""
        return self.object.spec.get("replicas") if self.object.group_kind == RBG_SET else 1


def read_rbg(found: Object) -> RbgView:
    """Read a RoleBasedGroup, or the template that a RoleBasedGroupSet copies."""
    path, spec = "spec", found.spec
    at, annotations = "metadata.annotations", mapping(found.metadata.get("annotations"))
    if found.group_kind == RBG_SET:
        held = "groupTemplate" if spec.get("groupTemplate") is not None else "template"
        group = mapping(spec.get(held))
        path, spec = f"spec.{held}", group
        if held == "groupTemplate":
            annotations, at = mapping(group.get("annotations")), f"{path}.annotations"
            path, spec = f"{path}.spec", mapping(group.get("spec"))
    return RbgView(
        object=found,
        path=path,
        spec=spec,
        annotations=annotations,
        annotations_path=at,
        roles=tuple(_roles(spec, path)),
        shared=_shared(spec, path),
    )


def _shared(spec: Mapping[str, Any], path: str) -> dict[str, tuple[str, object]]:
    """Return the path and the template of each shared role template, by name."""
    found: dict[str, tuple[str, object]] = {}
    for index, item in enumerate(sequence(spec.get("roleTemplates"))):
        name, at = text(mapping(item).get("name")), f"{path}.roleTemplates[{index}].template"
        if isinstance(name, str):
            found.setdefault(name, (at, mapping(item).get("template")))
    return found


def _roles(spec: Mapping[str, Any], path: str) -> Iterator[RbgRole]:
    """Read the roles; in older versions the fields of the pattern stand in the role itself."""
    for index, item in enumerate(sequence(spec.get("roles"))):
        fields, at = mapping(item), f"{path}.roles[{index}]"
        pattern, legacy = _pattern(fields)
        held = fields if legacy else mapping(fields.get(pattern))
        yield RbgRole(
            path=at,
            fields=fields,
            name=text(fields.get("name")),
            replicas=count(fields.get("replicas"), 1),
            pattern=pattern,
            held=held,
            at=at if legacy else f"{at}.{pattern}",
            legacy=legacy,
        )


def _pattern(fields: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the pattern of a role, and whether the older fields of a role state it."""
    stated = next((name for name in PATTERNS if fields.get(name) is not None), None)
    if stated is not None:
        return stated, False
    if fields.get("leaderWorkerSet") is not None:
        return LEADER_WORKER, True
    return (COMPONENTS if sequence(fields.get("components")) else PLAIN), True


@dataclass(frozen=True, slots=True, kw_only=True)
class RbgTemplate:
    """A pod template as the controller would create it, and where its parts are written."""

    body: object
    path: str
    """Path of the base template."""
    patches: tuple[tuple[str, object], ...] = ()
    """Paths and patches, in the order in which they are applied."""


def template_of(view: RbgView, role: RbgRole, field: str = "") -> RbgTemplate:
    """Return a role's pod template, with the patch in a field for the leader or the workers."""
    path, body = f"{role.at}.template", role.held.get("template")
    patches: list[tuple[str, object]] = []
    if role.reference is not None:
        path, body = _referred(view, role.reference, path)
        key, at = ("templatePatch", role.at) if role.legacy else ("patch", f"{role.at}.templateRef")
        held = role.held if role.legacy else role.reference
        patches.append((f"{at}.{key}", held.get(key)))
    if field and role.legacy:
        inner = mapping(role.fields.get("leaderWorkerSet"))
        legacy = "patchLeaderTemplate" if field == "leaderTemplatePatch" else "patchWorkerTemplate"
        patches.append((f"{role.at}.leaderWorkerSet.{legacy}", inner.get(legacy)))
    elif field:
        patches.append((f"{role.at}.{field}", role.held.get(field)))
    given = [(at, HIDDEN if unknown_in(patch) else patch) for at, patch in patches]
    body = HIDDEN if unknown_in(body) else body
    made = patched(body, *(patch for _, patch in given))
    return RbgTemplate(body=made, path=path, patches=tuple(given))


def _referred(view: RbgView, reference: Mapping[str, Any], path: str) -> tuple[str, object]:
    """Find the template that a role names. A missing one is unknown, not empty."""
    name = text(reference.get("name"))
    hidden = path, HIDDEN
    return view.shared.get(name, hidden) if isinstance(name, str) else hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class RbgComponent:
    """One of the components that form an instance together."""

    path: str
    name: MaybeText | None
    size: Any
    """Its pods in one instance, as stated."""
    template: RbgTemplate


def components_of(role: RbgRole) -> Iterator[RbgComponent]:
    """Read the components of a role."""
    for index, item in enumerate(sequence(role.held.get("components"))):
        fields, at = mapping(item), f"{role.at}.components[{index}]"
        body = HIDDEN if unknown_in(item) else fields.get("template")
        yield RbgComponent(
            path=at,
            name=text(fields.get("name")),
            size=fields.get("size"),
            template=RbgTemplate(body=body, path=f"{at}.template"),
        )


_STEP = regex(r"\[(\d+)\]|([^.\[\]]+)")


def places_of(template: RbgTemplate) -> Callable[[str], str] | None:
    """Return a function that maps template paths to written paths; None without patches."""
    if all(patch is None for _, patch in template.patches):
        return None
    return partial(_written, template)


def _written(template: RbgTemplate, path: str) -> str:
    """Return the path where a part of a template is written: in the last patch that sets it."""
    steps = [int(index) if index else key for index, key in _STEP.findall(path)]
    for at, patch in reversed(template.patches):
        place = _place(patch, template.body, steps)
        if place is not None:
            return join_path(at, place)
    return join_path(template.path, path)


def _place(patch: object, made: object, steps: list[int | str]) -> str | None:
    """Follow a path in a patch, whose lists have other indices; None if it leads nowhere."""
    found: list[int | str] = []
    field = ""
    for step in steps:
        if isinstance(step, str):
            if step not in mapping(patch):
                return None
            field, patch, made = step, mapping(patch)[step], mapping(made).get(step)
            found.append(step)
            continue
        index = _index(sequence(patch), sequence(made)[step : step + 1], field, step)
        if index is None:
            return None
        patch, made = sequence(patch)[index], next(iter(sequence(made)[step : step + 1]), None)
        found.append(index)
    return path_of(found)


def _index(listed: Sequence[object], wanted: Sequence[object], field: str, step: int) -> int | None:
    """Find an item in a patch: by name if lists are merged, else by index."""
    key = MERGE_KEYS.get(field)
    if key is None or not wanted:
        return step if step < len(listed) else None
    name = mapping(wanted[0]).get(key)
    return next((i for i, one in enumerate(listed) if mapping(one).get(key) == name), None)
