"""The pods of a ModelServing's roles."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core import naming
from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.objects.object import PodSet, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.systems.kthena.view import Role, Serving

_ANY = re.compile(".*")
_HASHES = (naming.REVISION, naming.ROLE_TEMPLATE_HASH)
_LWS = "leaderworkerset.sigs.k8s.io/"
_LWS_LABELS = ("name", "group-index", "group-key", "worker-index")


def pods(view: Serving) -> Iterator[PodSet]:
    """Return the entry pods and the worker pods of each role."""
    groups = copies_in(view.spec.get("replicas"), 1)
    for role in view.roles:
        engines = product(groups, copies_in(role.fields.get("replicas"), 1))
        each = copies_in(role.fields.get("workerReplicas"), 0)
        workers = product(engines, each)
        for name, number in (("entryTemplate", engines), ("workerTemplate", workers)):
            template = role.fields.get(name)
            if template is not None:
                made = pod_set(
                    view.object,
                    f"{role.path}.{name}",
                    template,
                    number,
                    by_controller=True,
                    spread=each != 0,
                )
                yield replace(made, added=_added(view, role, is_entry=name == "entryTemplate"))


def _added(view: Serving, role: Role, *, is_entry: bool) -> Mapping[str, object] | None:
    """Return the labels that Kthena adds to those of a template; those of the template win.

    Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go createBasePod, and
    plugins/lws_labels_plugin.go.
    """
    if view.object.group_kind != MODEL_SERVING:
        return None  # a ModelInfer, whose controller adds others
    added: dict[str, object] = {naming.NAME: view.name, naming.ROLE: role.name}
    for key, name in ((naming.GROUP_NAME, view.name), (naming.ROLE_ID, role.name)):
        known = isinstance(name, str)
        added[key] = re.compile(rf"{re.escape(str(name))}-[0-9]+") if known else name
    if is_entry:
        added[naming.ENTRY] = "true"
    added |= dict.fromkeys(_HASHES, _ANY)
    if view.spec.get("plugins"):
        added |= {f"{_LWS}{name}": _ANY for name in _LWS_LABELS}
    return added
