"""What the validating webhook of ModelInfer refuses, put together from its source.

Source: volcano-sh/kthena 98380a67 and e4fb6663, pkg/infer-controller/webhook/validator.go; the two
are equal. The API server has filled in the defaults of the CRD before.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

_LABEL = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


def refusals(body: Mapping[str, Any]) -> list[str]:
    """Name the fields that the webhook refuses."""
    spec = body["spec"]
    roles = spec["template"]["roles"]
    found = [*_of_names(body["metadata"]["name"], spec["replicas"], roles)]
    found += [] if spec["schedulerName"] == "volcano" else ["schedulerName"]
    found += _of_images(roles)
    found += ["replicas"] if spec["replicas"] < 0 else []
    found += [f"{role['name']}.replicas" for role in roles if role["replicas"] < 0]
    found += [f"{role['name']}.workerReplicas" for role in roles if role["workerReplicas"] < 0]
    found += _of_minima(spec["template"].get("gangSchedule", {}).get("minRoleReplicas", {}), roles)
    rolling = spec.get("rolloutStrategy", {}).get("rollingUpdateConfiguration")
    return found + ([] if rolling is None else [*_of_budgets(rolling, spec["replicas"])])


def _of_names(serving: str, groups: int, roles: list[Any]) -> Iterator[str]:
    for role in roles:
        parts = (serving, groups, role["name"], role["replicas"], role["workerReplicas"])
        if not _LABEL.fullmatch("-".join(map(str, parts))):
            yield "metadata.name"


def _of_images(roles: list[Any]) -> Iterator[str]:
    for role in roles:
        for field in ("entryTemplate", "workerTemplate"):
            for container in role.get(field, {}).get("spec", {}).get("containers", []):
                if " " in container.get("image", ""):
                    yield f"{role['name']}.{field}.image"


def _of_minima(minima: Mapping[str, int], roles: list[Any]) -> Iterator[str]:
    most = {role["name"]: role["replicas"] + role["workerReplicas"] for role in roles}
    for name, minimum in minima.items():
        if not 0 <= minimum <= most.get(name, -1):
            yield f"minRoleReplicas.{name}"


def _of_budgets(rolling: Mapping[str, Any], groups: int) -> Iterator[str]:
    down, up = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)
    for name, budget in (("maxUnavailable", down), ("maxSurge", up)):
        number = int(budget[:-1]) if isinstance(budget, str) else budget
        if number < 0 or (isinstance(budget, str) and number > 100):
            yield name
    partition = rolling.get("partition")
    if partition is not None and not 0 <= partition < groups:
        yield "partition"
    if _scaled(down, groups, math.floor) == 0 and _scaled(up, groups, math.ceil) == 0:
        yield "maxUnavailable and maxSurge"


def _scaled(budget: int | str, groups: int, whole: Any) -> int:
    if isinstance(budget, int):
        return budget
    return int(whole(int(budget[:-1]) * groups / 100))
