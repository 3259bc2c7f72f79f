"""Rules about names in all kinds of Volcano. The rules of each kind are in other modules.

Volcano's admission checks little, and its scheduler silently drops what it cannot use, or waits
forever.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import POD_GROUP, Object
from kthena_components.core.values.read import object_name
from kthena_components.systems.volcano.view import name_problem


def volcano_name(found: Object) -> Iterator[Finding]:
    """The names of PodGroups, Queues, Jobs and the objects they refer to are DNS-1123 subdomains.

    Pass: queue research.
    Fail: queue Research_1.
    Level: mandatory.
    Source: Volcano v1.14 config/crd/volcano/bases, scheduling.volcano.sh_podgroups.yaml.
    """
    what = f"the name of a {found.kind}"
    name, path = object_name(found.metadata), "metadata.name"
    if name == "":
        seen = f"is missing, and {what} is not optional"
        yield Finding(path=path, seen=seen, remedy="add metadata.name")
    else:
        yield from name_problem(name, path, what)
    queue = found.spec.get("queue")
    if queue != "" or found.group_kind == POD_GROUP:
        yield from name_problem(queue, "spec.queue", "the name of a Queue")
