"""Draws what a serving consists of, with the numbers of the serving in stacks/Pulumi.prod.yaml."""

from collections.abc import Iterator
from pathlib import Path

from kthena_components.cluster.stack_servings import read_stack_file
from kthena_components.core.findings import count_of
from kthena_components.core.naming import entry_name, group_name, role_id, worker_set_name
from kthena_components.core.plan.report import shape
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from toolchain.pages.figures.sheet import LINE, MARGIN, WIDTH, Box, begin, draw_box, end, height_of

ROOT = Path(__file__).parents[3]
STACK = "prod"


def draw() -> str:
    """Return the figure."""
    plan = read_plan()
    box, top = serving_box(plan), MARGIN + 2 * LINE
    root = begin("From a ModelServing to its pods", top + height_of(box) + MARGIN)
    draw_box(root, box, MARGIN, top, WIDTH - 2 * MARGIN)
    return end(root)


def read_plan() -> ServingPlan:
    """Compile the first serving of the stack."""
    return read_stack_file(ROOT, STACK).need.plans[0]


def in_words(plan: ServingPlan) -> str:
    """Return what the figure shows, as one sentence for the page."""
    row = shape(plan)[0]
    gpus = sum(one["gpus"] for one in shape(plan))
    return (
        f"has {plan.groups} groups, {plan.pods} pods and {gpus} GPUs. Each engine has "
        f"{row['world_size']} ranks: {plan.roles[0].pods} pods with {row['gpus_per_pod']} GPUs each"
    )


def serving_box(plan: ServingPlan) -> Box:
    """Return a serving with its groups, roles, engines and pods."""
    gpus = sum(row["gpus"] for row in shape(plan))
    groups = count_of(plan.groups, "group")
    told = f"{groups}, {count_of(plan.pods, 'pod')}, {count_of(gpus, 'GPU')}"
    inside = [_group(plan, group, gpus // plan.groups) for group in plan.group_numbers()]
    return Box([f"ModelServing {plan.name}", told], inside, "c0")


def _group(plan: ServingPlan, group: int, gpus: int) -> Box:
    name = group_name(plan.name, group)
    gang = "placed together" if plan.gang else "placed one by one"
    told = f"{count_of(plan.pods_per_group, 'pod')}, {count_of(gpus, 'GPU')}, {gang}"
    roles = zip(plan.roles, shape(plan), strict=True)
    inside = [_role(plan, group, role, row) for role, row in roles]
    return Box([f"ServingGroup {name}", told], inside, "c4")


def _role(plan: ServingPlan, group: int, role: RolePlan, row: dict[str, object]) -> Box:
    sizes = [(name, row[name]) for name in ("tensor", "pipeline", "data")]
    product = " × ".join(f"{name} {size}" for name, size in sizes if size != 1) or "tensor 1"
    engines = [
        Box(
            [f"engine {role_id(role.name, number)}", f"{product} = {row['world_size']} ranks"],
            list(_pods(plan, group, role, number, row["gpus_per_pod"])),
            "c5",
        )
        for number in range(role.replicas)
    ]
    return Box([f"Role {role.name}: {count_of(role.replicas, 'engine')}"], engines, "c2")


def _pods(
    plan: ServingPlan, group: int, role: RolePlan, engine: int, gpus: object
) -> Iterator[Box]:
    told = f"{gpus} GPUs"
    at = (plan.name, group, role.name, engine)
    yield Box([f"pod {entry_name(*at)}", f"entry, {told}"])
    for number in range(1, role.pods):
        yield Box([f"pod {worker_set_name(*at)}-{number}", f"worker, {told}"])
