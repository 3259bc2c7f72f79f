"""The rule ray-serve-placement."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.values.display import display
from kthena_components.core.values.images import Version, parse_version, read_image
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, is_unresolved
from kthena_components.systems.ray.rules.worker_groups_gpus_params import counted_in_pod
from kthena_components.systems.ray.serve_config import CONFIG, Reserved, Served, read_reserved
from kthena_components.systems.ray.view import Group, RayView

_AT = f"spec.{CONFIG}"
_SPREADS = (2, 51, 0)
"""The first Ray whose Serve LLM places the ranks of one pipeline stage in several pods."""
_RAY = regex(r"(?:^|/)rayproject/ray(?:-llm|-ml)?$")
_NUMBER = regex(r"([0-9]+\.[0-9]+\.[0-9]+)(?:-|$)")
_WAITS = "so Ray waits for them forever"


def ray_serve_placement(view: RayView) -> Iterator[Finding]:
    """What Ray Serve places together fits into one pod of the cluster.

    An actor and a bundle of a placement group are in one pod, and so are all bundles with the
    strategy STRICT_PACK. Ray Serve LLM up to 2.50 packs the ranks of an engine with one pipeline
    stage in this way, unless placement_group_config or resources_per_bundle decides what it
    reserves. Not checked are clusters whose pods may get GPUs in another way than by limits.

    Pass: ray_actor_options.num_gpus 2 on workers of 8 GPUs; tensor 16 on workers of 8 GPUs in Ray
    2.51; tensor 8 and pipeline 2.
    Fail: ray_actor_options.num_gpus 2 on workers of 1 GPU; tensor 16 on workers of 8 GPUs in Ray
    2.46.
    Level: mandatory; advisory for Ray Serve LLM if only rayVersion states the release.
    Source: ray python/ray/llm/_internal/serve/deployments/llm/vllm/vllm_models.py
    placement_strategy (ray-project/ray#56980); python/ray/serve/schema.py DeploymentSchema;
    src/ray/raylet/scheduling/policy/bundle_scheduling_policy.cc; ray-project/kuberay#2354.
    """
    most = _largest(view)
    if most is None:
        return
    for one in read_reserved(view.object.spec.get(CONFIG)):
        yield from _deployment(one, most)
    for model in view.served if isinstance(view.served, tuple) else ():
        yield from _packed(view, model, most)


def _largest(view: RayView) -> int | None:
    """Return the GPUs of the largest pod; None if it is not known, or if no pod has one."""
    groups = [group for group in view.groups if group.high != 0]
    counts: list[MaybeInt] = [counted_in_pod(group) for group in groups]
    known = [count for count in counts if isinstance(count, int)]
    late = view.cluster is None or len(view.cluster.workers) != len(view.workers)
    if late or len(known) != len(counts) or any(map(_may_have_more, groups)):
        return None
    return max(known, default=0) or None


def _may_have_more(group: Group) -> bool:
    pod = group.pod
    if any(is_unresolved(group.fields.get(field)) for field in ("rayStartParams", "resources")):
        return True
    return pod.claimed is not None or pod.gap is not None or pod.sliced is not None


def _deployment(one: Reserved, most: int) -> Iterator[Finding]:
    if one.actor is not None and one.actor > most:
        seen = f"gives each replica of {display(one.name)} {one.actor:g} GPUs"
        remedy = f"write num_gpus {most} or less, or give the pods {one.actor:g} GPUs"
    elif one.bundles and (sum(one.bundles) if one.together else max(one.bundles)) > most:
        amount = sum(one.bundles) if one.together else max(one.bundles)
        what = "the bundles of a replica, which are STRICT_PACK," if one.together else "a bundle"
        seen = f"gives {what} of {display(one.name)} {amount:g} GPUs"
        remedy = f"make them smaller, or give the pods {amount:g} GPUs"
    else:
        return
    yield Finding(
        path=_AT, seen=f"{seen}, but no pod has more than {most}, {_WAITS}", remedy=remedy
    )


def _packed(view: RayView, model: Served, most: int) -> Iterator[Finding]:
    command, (release, sure) = model.command, _release(view)
    ranks = command.tensor
    packs = model.gap is None and command.pipeline == 1
    if release is None or release >= _SPREADS or not packs or not isinstance(ranks, int):
        return
    if ranks <= most:
        return
    seen = (
        f"starts {display(model.name)} with tensor {ranks}, and Ray Serve LLM before 2.51 places "
        "the ranks of one stage in one pod (STRICT_PACK), but no pod has more than "
        f"{count_of(most, 'GPU')}"
    )
    smaller = (
        f"set tensor to {most} and pipeline to {ranks // most}, or " if not ranks % most else ""
    )
    yield Finding(
        path=_AT,
        seen=f"{seen}, {_WAITS}",
        remedy=f"{smaller}use Ray 2.51 or later",
        level=Level.MANDATORY if sure else Level.ADVISORY,
    )


def _release(view: RayView) -> tuple[Version | None, bool]:
    """Return the release of Ray, and whether the head's image states it."""
    image = read_image(str(view.head.container.get("image") or ""))
    if _RAY.search(image.repository) and (found := _NUMBER.match(image.tag or "")):
        return parse_version(found[1]), True
    stated = mapping(view.fields).get("rayVersion")
    return (parse_version(stated) if isinstance(stated, str) else None), False
