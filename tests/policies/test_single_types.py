"""The pack checks the types of fields of kinds that have no rules of their own, as `check` does."""

from typing import Any

from kthena_components.policies.resource_checks import check_resource
from tests.support.for_each import for_each

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RIGHT = {"core/v1:PersistentVolumeClaim": CLAIM}
"""What the API server requires of a spec; of others nothing."""
WRONG: dict[str, dict[str, Any]] = {
    "core/v1:Service": {"spec": {"selector": 3}},
    "core/v1:PersistentVolumeClaim": {"spec": "hi"},
    "policy/v1:PodDisruptionBudget": {"spec": []},
}


@for_each(("token", "fields"), WRONG.items())
def test_a_field_of_another_type_is_refused(token: str, fields: dict[str, Any]) -> None:
    version, _, kind = token.removeprefix("core/").partition(":")
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
    found = check_resource(f"kubernetes:{token}", {**body, **fields})
    assert [one.rule for one in found] == ["crd-schema"], token
    assert not check_resource(f"kubernetes:{token}", {**body, "spec": RIGHT.get(token, {})}), token
