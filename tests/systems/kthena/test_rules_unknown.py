"""A ModelServing of which a part is known only after the deployment."""

from typing import Any

import pytest

from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import Unknown
from tests.systems.kthena.test_rules_examples import chat, check_serving, told

LATE = "\ue0007\ue001"
LATER = "not checked, because the value is known only after the deployment."
ROLE = "spec.template.roles.0"
POD = f"{ROLE}.entryTemplate.spec"
ENGINE, ENGINE_AT = f"{POD}.containers.0", "spec.template.roles[0].entryTemplate.spec.containers[0]"


@pytest.mark.parametrize(
    "path",
    ["spec", "spec.template", f"{ROLE}.entryTemplate", f"{POD}.containers", "spec.recoveryPolicy"],
)
@pytest.mark.parametrize(
    ("value", "because"),
    [(LATE, LATER), (Unknown("it is computed"), "not checked, because it is computed.")],
)
def test_what_is_not_known_yet_is_not_checked(path: str, value: Any, because: str) -> None:
    at = path.replace(".0", "[0]")
    found = check_serving(chat({path: value}))
    assert [str(f) for f in found if f.path == at] == [f"{at}: {because} [kthena-schema]"]
    assert {f.level for f in found} == {Level.UNKNOWN}


def test_free_text_may_be_late() -> None:
    env = [{"name": "MODEL", "value": LATE}]
    assert told(chat({f"{ENGINE}.env": env, "spec.schedulerName": LATE})) == []


def test_a_late_key_is_not_compared() -> None:
    assert told(chat({f"{ENGINE}.env": [{"name": LATE}, {"name": "A"}]})) == [
        f"{ENGINE_AT}.env[0]: {LATER} [kthena-schema]"
    ]
