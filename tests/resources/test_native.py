"""What a ModelServing registers on the native backend."""

import cProfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import pulumi
import pytest

from tests.resources.build import serving
from tests.support.recorder import Recorded, record
from tests.support.specs import ENGINE_RAY, PREFILL_DECODE, changed, template


def run(args: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> Recorded:
    return record(lambda: serving(args, opts))


@pytest.fixture(scope="module", name="chat")
def registered_chat() -> Recorded:
    return run(ENGINE_RAY)


def test_objects_hang_below_their_role_and_group(chat: Recorded) -> None:
    entry = chat.named("chat-1-decode-0", "StatefulSet")
    assert chat.parents(entry) == ["chat-1-decode", "chat-1", "chat"]
    assert chat.parents(chat.named("chat-1", "PodGroup")) == ["chat-1", "chat"]
    assert chat.parents(chat.named("chat", "Service")) == ["chat"]


def test_every_component_says_when_it_is_complete(chat: Recorded) -> None:
    assert {r.urn for r in chat.resources if not r.request.custom} <= chat.finished


def test_type_tokens_are_those_of_the_kubernetes_provider(chat: Recorded) -> None:
    assert {r.type for r in chat.resources} == {
        "kthena:index:ModelServing",
        "kthena:index:ServingGroup",
        "kthena:index:Role",
        "kubernetes:core/v1:Service",
        "kubernetes:apps/v1:StatefulSet",
        "kubernetes:policy/v1:PodDisruptionBudget",
        "kubernetes:scheduling.volcano.sh/v1beta1:PodGroup",
    }


def test_pods_come_after_their_pod_group(chat: Recorded) -> None:
    for pods in chat.of_kind("StatefulSet"):
        group = "-".join(pods.name.split("-")[:2])
        assert f"PodGroup/{group}" in chat.waits_for(pods)


def test_entry_comes_after_workers_and_services(chat: Recorded) -> None:
    entry = chat.named("chat-0-decode-0", "StatefulSet")
    assert chat.waits_for(entry) == {
        "PodGroup/chat-0",
        "Service/chat-0-decode-0",
        "Service/chat-0-decode-0-0",
        "StatefulSet/chat-0-decode-0-w",
    }


def test_a_group_comes_after_the_batch_before_it(chat: Recorded) -> None:
    assert "StatefulSet/chat-0-decode-0" in chat.waits_for(chat.named("chat-1", "PodGroup"))


def test_only_the_nearest_dependencies_are_stated(chat: Recorded) -> None:
    entry = chat.named("chat-0-decode-0", "StatefulSet")
    workers = chat.named("chat-0-decode-0-w", "StatefulSet")
    assert list(entry.request.dependencies) == [workers.urn]


def test_a_changed_template_makes_the_pods_anew_under_the_same_name(chat: Recorded) -> None:
    request = chat.named("chat-0-decode-0", "StatefulSet").request
    assert list(request.replaceOnChanges) == ["spec.template"]
    assert request.deleteBeforeReplace
    assert request.deleteBeforeReplaceDefined


def test_a_partition_ignores_changes_of_the_first_groups() -> None:
    budget = {"rolling_update_configuration": {"partition": 1}}
    kept = run(changed(ENGINE_RAY, {"rollout_strategy": budget}))
    assert list(kept.named("chat-0-decode-0", "StatefulSet").request.ignoreChanges) == ["spec"]
    assert not kept.named("chat-1-decode-0", "StatefulSet").request.ignoreChanges


def test_what_is_awaited_has_the_timeout_of_the_serving() -> None:
    seen = run(changed(ENGINE_RAY, {"ready_timeout_seconds": 90}))
    timeouts = seen.named("chat-0-decode-0", "StatefulSet").request.customTimeouts
    assert (timeouts.create, timeouts.update, timeouts.delete) == ("90s", "90s", "")


def test_what_is_there_at_once_has_no_timeout(chat: Recorded) -> None:
    assert not chat.named("chat-0", "PodGroup").request.HasField("customTimeouts")


def test_timeouts_of_the_user_win_and_reach_every_object() -> None:
    stated = pulumi.CustomTimeouts(create="2h", delete="5m")
    seen = run(ENGINE_RAY, pulumi.ResourceOptions(custom_timeouts=stated))
    entry = seen.named("chat-0-decode-0", "StatefulSet").request.customTimeouts
    group = seen.named("chat-0", "PodGroup").request.customTimeouts
    assert (entry.create, entry.update, entry.delete) == ("2h", "3600s", "5m")
    assert (group.create, group.update, group.delete) == ("2h", "", "5m")
    assert stated.update is None


def test_every_object_asks_for_the_provider_of_the_installed_package(chat: Recorded) -> None:
    objects = [r.request.version for r in chat.resources if r.type.startswith("kubernetes:")]
    assert set(objects) == {version("pulumi-kubernetes")}


def test_a_provider_of_the_component_reaches_every_object() -> None:
    def program() -> None:
        provider = pulumi.ProviderResource("kubernetes", "cluster", {})
        serving(ENGINE_RAY, pulumi.ResourceOptions(provider=provider))

    seen = record(program)
    references = {r.request.provider for r in seen.resources if r.type.startswith("kubernetes:")}
    assert references == {f"{seen.named('cluster', 'kubernetes').urn}::cluster-id"}


def test_two_servings_share_no_urn() -> None:
    def program() -> None:
        serving(ENGINE_RAY, name="one")
        serving(changed(ENGINE_RAY, {"name": "other"}), name="two")

    assert len(record(program).of_kind("StatefulSet")) == 8


def test_pulumi_names_start_with_the_component_not_the_serving() -> None:
    seen = record(lambda: serving(ENGINE_RAY, name="blue"))
    assert seen.names_of("PodGroup") == ["blue-0", "blue-1"]
    assert seen.named("blue-0", "PodGroup").props["metadata"]["name"] == "chat-0"
    assert seen.names_of("ServingGroup") == ["blue-0", "blue-1"]
    assert seen.names_of("Role") == ["blue-0-decode", "blue-1-decode"]


def test_the_name_of_the_component_is_the_name_of_the_serving_by_default() -> None:
    unnamed = {key: value for key, value in ENGINE_RAY.items() if key != "name"}
    seen = record(lambda: serving(unnamed, name="blue"))
    assert seen.named("blue-0", "PodGroup").props["metadata"]["name"] == "blue-0"


def test_names_of_other_roles_stay_when_a_role_is_added() -> None:
    one = changed(PREFILL_DECODE, {"roles": PREFILL_DECODE["roles"][1:], "gang_policy": {}})
    before = {r.urn for r in record(lambda: serving(one)).resources}
    after = {r.urn for r in record(lambda: serving(PREFILL_DECODE)).resources}
    assert before <= after


def test_registrations_say_where_the_user_made_the_component(chat: Recorded) -> None:
    positions = {r.request.sourcePosition.uri for r in chat.resources if r.kind == "StatefulSet"}
    assert [position.rpartition("/")[2] for position in positions] == ["build.py"]


def test_a_preview_with_unknown_values_registers_the_same() -> None:
    preview = record(lambda: serving(ENGINE_RAY), preview=True)
    assert {r.urn for r in preview.resources} == {r.urn for r in run(ENGINE_RAY).resources}


def test_groups_that_wait_for_one_another_take_linear_work() -> None:
    def preview(groups: int) -> Recorded:
        roles = [{"name": "serve", "entry_template": template()}]
        one_at_a_time = {"name": "chat", "replicas": groups, "roles": roles}
        return record(lambda: serving(one_at_a_time), preview=True)

    preview(1)
    few, least = counted(lambda: preview(30))
    assert "PodGroup/chat-28" in few.waits_for(few.named("chat-29", "PodGroup"))
    many, most = counted(lambda: preview(300))
    assert len(many.of_kind("PodGroup")) == 300
    assert most < 13 * least


def counted(program: Callable[[], Recorded]) -> tuple[Recorded, int]:
    """Return the result and how many functions were called, Pulumi's own included."""
    profile = cProfile.Profile()
    seen = profile.runcall(program)
    return seen, sum(entry.callcount for entry in profile.getstats())
