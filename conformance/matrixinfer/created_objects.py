"""Compares what MatrixInfer's controllers create with the plan, from creation to deletion.

Without MatrixInfer's programs, only Kthena's controller, which it became, gets the same objects
under their later names.
"""

import json
import os
import random

from conformance.__main__ import Context
from conformance.kthena.emission import namespace
from conformance.matrixinfer import cluster
from conformance.matrixinfer.pods import Controller, compared
from conformance.matrixinfer.webhook import agree
from conformance.support import random_servings
from conformance.support.serving_lives import Body, Life, live_all
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.systems.matrixinfer.emit import ApiGroup
from kthena_components.systems.volcano.emit import SCHEDULING
from sandbox.cluster import Size
from tests.support.successor import as_model_serving

SPECIFICATIONS = 30
"""For each controller."""
ROOM = Size(racks=4, nodes=16, gpus=8)
_PRIORITY = "system-cluster-critical"
"""A PriorityClass of every cluster."""
_SIZES = (2, 3, 4)
"""Sizes of the gang, one after the other until the controller follows. On a loaded machine Kthena
has been seen to leave out one change in some hundreds."""
_FOLLOWS = 60
"""Seconds until a change of a gang counts as left out. Others take less than one."""


def _as_kthena(body: Body) -> Body:
    """Rename a ModelInfer. Since Kthena 0.2, a topology is for the group or for the roles."""
    if body["kind"] != "ModelInfer":
        return body
    made: Body = as_model_serving(body)
    template = made["spec"]["template"]
    if "networkTopology" in template:
        template["networkTopology"] = {"groupPolicy": template["networkTopology"]}
    return made


_SUCCESSOR = Controller(
    name="kthena",
    group=ApiGroup.MATRIXINFER,
    labels="modelserving.volcano.sh/",
    written=_as_kthena,
    may_stall=False,
    has_tasks=False,
)


def run(context: Context) -> None:
    """Create servings, compare them, update and scale them, and delete them."""
    folders = cluster.given(os.environ)
    if not folders:
        context.part.leave_out(
            "MatrixInfer's own controllers, which have no release: set "
            f"{cluster.VARIABLE} to a folder with them (docs/conformance.md)"
        )
    sandbox = context.sandbox(ROOM)
    try:
        _try(context, sandbox.api, _SUCCESSOR)
        for group, folder in folders.items():
            cluster.start(sandbox, group, folder)
            _try(context, sandbox.api, _own(group))
            cluster.stop(sandbox, group)
        sandbox.processes.check()
    finally:
        sandbox.processes.stop_all()


def _own(group: ApiGroup) -> Controller:
    name = group.value.partition(".")[2]
    return Controller(name=name, group=group, labels=f"modelinfer.{name}/")


def _try(context: Context, api: Cluster, controller: Controller) -> None:
    _refuses(context, api, controller)
    _keeps_priority(context, api, controller)
    rng = random.Random(f"matrixinfer {controller.name} {context.seed}")  # noqa: S311 - to repeat
    servings = draw(rng, context.many(SPECIFICATIONS), controller.group)
    if controller is not _SUCCESSOR:
        agree(context.part, api, rng, servings)
    space = controller.name.replace(".", "-")
    lives = [
        Life(
            api=api,
            space=f"{space}-{number}",
            args=args,
            written=controller.written,
            may_stall=controller.may_stall,
        )
        for number, args in enumerate(servings)
    ]
    live_all(context, lives, lambda life: compared(life, controller))
    stalled, name = sum(life.stalled for life in lives), controller.name
    context.part.count(f"servings of {name}", len(lives))
    context.part.count(f"updates that {name} left unfinished", stalled)
    context.part.check("most updates finish", holds=2 * stalled <= len(lives), seen=stalled)


def draw(rng: random.Random, number: int, group: ApiGroup) -> list[random_servings.Args]:
    """Generate servings that the backend accepts."""
    found: dict[str, random_servings.Args] = {}
    while len(found) < number:
        args = {**random_servings.serving(rng), "backend": "matrixinfer"}
        for name in ("queue", "rollout_strategy", "scheduler_name"):
            args.pop(name, None)
        topology = args.get("network_topology", {})
        topology.pop("role_policy", None)
        topology.get("group_policy", {}).pop("highest_tier_name", None)
        for role in args["roles"]:
            for field in ("entry_template", "worker_template", "overlay"):
                role.get(field, {}).get("metadata", {}).pop("annotations", None)
        args["backend_options"] = {"api_group": group.value}
        args["recovery_policy"] = rng.choice(("ServingGroupRecreate", "RoleRecreate"))
        try:
            compile_serving(args)
        except SpecError:
            continue
        found[json.dumps(args, sort_keys=True)] = args
    return list(found.values())


def _refuses(context: Context, api: Cluster, controller: Controller) -> None:
    """Begin with an object that the webhook must reject: else it is not asked."""
    rng = random.Random(context.seed)  # noqa: S311 - to repeat
    (args,) = draw(rng, 1, controller.group)
    body = json.loads(
        json.dumps(compile_serving({**args, "namespace": "serving"}).manifests[0].body)
    )
    body["spec"]["template"]["gangSchedule"] = {"minRoleReplicas": {"nobody": 1}}
    try:
        api.create(controller.written(body))
        said = ""
    except ClusterError as error:
        said = str(error)
    context.part.check("a wrong object is rejected", holds="nobody" in said, seen=said)


def _keeps_priority(context: Context, api: Cluster, controller: Controller) -> None:
    """Give a gang a priority, which no controller does, and let the controller update the gang."""
    role: random_servings.Args = {
        "name": "a",
        "entry_template": {"spec": {"containers": [{"name": "a", "image": "a"}]}},
    }
    life = Life(
        api=api,
        space=f"{controller.name.replace('.', '-')}-priority",
        args={
            "name": "p",
            "backend": "matrixinfer",
            "backend_options": {"api_group": controller.group.value},
            "priority_class": _PRIORITY,
            "roles": [role],
        },
        written=controller.written,
    )
    namespace(api, life.space)
    life.becomes("with a priority")
    gang = {"apiVersion": SCHEDULING, "kind": "PodGroup",
            "metadata": {"name": "p-0", "namespace": life.space}}  # fmt: skip
    before = api.get(gang)["spec"].get("priorityClassName")
    context.part.check("the gang has no priority by itself", holds=not before, seen=before)
    api.patch(gang, {"spec": {"priorityClassName": _PRIORITY}})
    for size in _SIZES:
        grew = _grows(life, role, gang, size)
        if grew:
            break
        context.part.count(f"changes of a gang that {controller.name} left out")
    spec = api.get(gang)["spec"]
    stays = grew and spec.get("priorityClassName") == _PRIORITY
    context.part.check("a priority that is given to a gang stays", holds=stays, seen=spec)
    for what, holds, seen in life.seen:
        context.part.check(what, holds=holds, seen=seen)
    api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": life.space}})


def _grows(life: Life, role: random_servings.Args, gang: Body, size: int) -> bool:
    """Give the role more engines. Return whether the controller changes the gang, too."""
    role["replicas"] = size
    life.becomes(f"of {size} engines")
    return wait(lambda: life.api.get(gang)["spec"].get("minMember") == size, _FOLLOWS)
