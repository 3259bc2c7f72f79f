"""What a controller tells its pods, rewritten: real shells say the same before and after."""

import os
import shutil
import subprocess
from typing import Any

import pytest

from kthena_components.core.plan.controller_variables import PodVariables, Rewritten, rewrite
from tests.support.for_each import for_each
from tests.support.specs import template

TOLD = PodVariables(
    size=("THEIR_SIZE",),
    leader=("THEIR_LEADER",),
    rank=("THEIR_RANK",),
    ordinal=("THEIR_INDEX",),
    fields=("metadata.labels['apps.kubernetes.io/pod-index']",),
    numbered_names=True,
    addresses=(r"chat-0\.chat\b",),
    others=("THEIR_",),
)
SHELLS = [shell for shell in ("bash", "dash", "sh") if shutil.which(shell)]
SCRIPTS = [
    "echo $THEIR_INDEX",
    "echo ${THEIR_INDEX}",
    "echo $((THEIR_INDEX + 1))",
    "echo $(($THEIR_INDEX + 1))",
    "echo $(( ${THEIR_INDEX} * 2 + 1 )) of $THEIR_SIZE",
    'echo "rank $((1 + THEIR_INDEX)) at $THEIR_LEADER:29500"',
    "echo ${HOSTNAME##*-}",
    "echo $((${HOSTNAME##*-} + 1))",
    'if [ "${HOSTNAME##*-}" = 0 ]; then echo first; else echo "rank ${HOSTNAME##*-}"; fi',
    "for n in 1 2; do echo $THEIR_RANK $n; done",
]


def made(script: str, *, after: int = 0, pods: int = 3, **more: Any) -> Rewritten:
    pod = template(command=["sh", "-c", script], **more)
    return rewrite(pod, TOLD, after=after, pods=pods)


def script_of(result: Rewritten) -> str:
    text: str = result.template["spec"]["containers"][0]["command"][-1]
    return text


def said(shell: str, script: str, env: dict[str, str]) -> str:
    known = {"PATH": os.environ["PATH"], **env}
    words = [shell, "-c", script]
    ran = subprocess.run(words, env=known, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@for_each("shell", SHELLS)
@for_each("after", [0, 1])
@for_each("script", SCRIPTS)
def test_a_script_says_the_same_under_the_other_controller(
    script: str, after: int, shell: str
) -> None:
    result = made(script, after=after)
    assert result.unset == []
    for index in range(3 - after):
        theirs = {
            "THEIR_SIZE": "3",
            "THEIR_LEADER": "leader",
            "THEIR_RANK": str(index + after),
            "THEIR_INDEX": str(index),
            "HOSTNAME": f"chat-{index}",
        }
        ours = {
            "GROUP_SIZE": "3",
            "ENTRY_ADDRESS": "leader",
            "WORKER_INDEX": str(index + after),
            "HOSTNAME": "another-9-name",
        }
        assert said(shell, script_of(result), ours) == said(shell, script, theirs)


def test_an_address_of_the_first_pod_becomes_that_of_the_entry() -> None:
    result = made("torchrun --master-addr chat-0.chat --port 1")
    assert script_of(result) == "torchrun --master-addr $(ENTRY_ADDRESS) --port 1"
    assert result.notes == ["chat-0.chat to ENTRY_ADDRESS in spec.containers[0]"]


def test_a_variable_from_the_number_of_a_pod_is_replaced_and_removed() -> None:
    field = {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}
    env = [{"name": "RANK", "valueFrom": {"fieldRef": field}}, {"name": "TZ", "value": "UTC"}]
    result = made("serve --rank $(RANK)", env=env)
    assert script_of(result) == "serve --rank $(WORKER_INDEX)"
    assert result.template["spec"]["containers"][0]["env"] == env[1:]
    assert result.unset == []


def test_values_of_env_get_the_variables_that_come_first() -> None:
    env = [{"name": "MASTER_ADDR", "value": "chat-0.chat"}, {"name": "N", "value": "$(THEIR_SIZE)"}]
    result = made("serve", env=env)
    values = [entry["value"] for entry in result.template["spec"]["containers"][0]["env"]]
    assert values == ["$(LWS_LEADER_ADDRESS)", "$(LWS_GROUP_SIZE)"]


@pytest.mark.parametrize(
    ("script", "after", "pods", "unset"),
    [
        ("echo $THEIR_OTHER", 0, 3, "THEIR_OTHER"),
        ("serve --rank $(THEIR_INDEX)", 1, 3, "THEIR_INDEX"),
        ("python -c 'import os; os.environ[\"THEIR_INDEX\"]'", 1, 3, "THEIR_INDEX"),
        ("echo $THEIR_INDEX", 0, 1, "THEIR_INDEX"),
        ("echo $(hostname)", 0, 3, "$(hostname"),
        ("echo $HOSTNAME", 0, 3, "HOSTNAME"),
    ],
)
def test_what_has_no_counterpart_is_named(script: str, after: int, pods: int, unset: str) -> None:
    result = made(script, after=after, pods=pods)
    assert result.unset == [("spec.containers[0]", unset)]


def test_variables_that_the_container_sets_itself_are_left_as_they_are() -> None:
    env = [{"name": "THEIR_SIZE", "value": "3"}]
    result = made("echo $THEIR_SIZE", env=env)
    assert (script_of(result), result.notes, result.unset) == ("echo $THEIR_SIZE", [], [])


def test_labels_that_only_a_controller_gives_are_named() -> None:
    path = "metadata.labels['team.example.com/slot']"
    env = [{"name": "SLOT", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    pod = template(command=["serve"], env=env)
    assert rewrite(pod, TOLD, after=0, pods=1).unset == [("spec.containers[0]", path)]
    pod["metadata"] = {"labels": {"team.example.com/slot": "1"}}
    assert rewrite(pod, TOLD, after=0, pods=1).unset == []


def test_the_host_name_of_an_engine_of_one_pod_is_its_own_affair() -> None:
    assert made("echo $HOSTNAME", pods=1).unset == []
