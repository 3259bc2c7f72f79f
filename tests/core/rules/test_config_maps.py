"""Keys that a pod takes from ConfigMaps."""

from typing import Any

import pytest

from kthena_components.core.facts.context import Context, gather
from kthena_components.core.findings import Level
from kthena_components.core.rules.config_maps import config_map_key_exists
from kthena_components.judge.manifest import judge_manifest
from tests.rules.cases import documents
from tests.toughness.corpus import put

DEPLOYMENT, CONFIG_MAP = documents("config-map")
AT = "spec.template.spec.containers[0]"
RULE = config_map_key_exists.__name__.replace("_", "-")


def told(body: dict[str, Any], **data: str) -> list[str]:
    around = Context(config_maps=gather([{**CONFIG_MAP, "data": data}]))
    found = [f for f in judge_manifest(body, context=around) if f.rule == RULE]
    assert {finding.level for finding in found} <= {Level.ADVISORY}
    return [f"{finding.path}: {finding.seen}" for finding in found]


def test_a_file_that_is_not_there_is_told_at_the_command() -> None:
    (sentence,) = told(DEPLOYMENT, **{"level": "INFO", "config.yml": ""})
    assert sentence == (
        f"{AT}.command: engine 'llama' does not start as it is written, because ConfigMap "
        "'engine' has no key that becomes /etc/vllm/config.yaml"
    )


def test_a_variable_whose_key_is_not_there_is_told_where_it_is_named() -> None:
    assert told(DEPLOYMENT, **{"config.yaml": ""}) == [
        (
            f"{AT}.env[0].valueFrom.configMapKeyRef.key: engine 'llama' does not start as it is "
            "written, because ConfigMap 'engine' has no key 'level'"
        )
    ]


def test_all_that_is_there_is_silent() -> None:
    assert told(DEPLOYMENT, **{"level": "INFO", "config.yaml": ""}) == []


@pytest.mark.parametrize("name", ["other", "\ue0007\ue001"])
def test_a_config_map_that_is_not_here_is_not_judged(name: str) -> None:
    volume = ("spec", "template", "spec", "volumes", 1, "configMap", "name")
    reference = ("spec", "template", "spec", "containers", 0, "env", 0, "valueFrom")
    body = put(put(DEPLOYMENT, volume, name), (*reference, "configMapKeyRef", "name"), name)
    assert told(body) == []
