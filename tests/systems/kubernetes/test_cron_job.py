"""A CronJob is read as the Jobs that it makes."""

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from tests.rules.cases import documents
from tests.support.peers import LATE

DEPLOYMENT = documents("deployment")[0]


def cron_job(args: object) -> dict[str, object]:
    template = {**DEPLOYMENT["spec"]["template"]}
    (container,) = template["spec"]["containers"]
    containers = [{**container, "args": args}]
    spec = {**template["spec"], "containers": containers, "restartPolicy": "Never"}
    job = {"spec": {"template": {"spec": spec}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": job},
    }


def test_a_cron_job_is_checked_where_its_template_stands() -> None:
    assert [f for f in check_manifest(cron_job(["-tp=8"])) if f.level is Level.MANDATORY] == []
    (found,) = [f for f in check_manifest(cron_job(["-tp=4"]), "[1]") if f.level is Level.MANDATORY]
    assert str(found).startswith(
        "[1].spec.jobTemplate.spec.template.spec.containers[0].args: engine 'nightly' starts "
        "tensor 4 × pipeline 1 = 4 ranks, but its pod has 8 GPUs."
    )


def test_what_is_not_known_is_said() -> None:
    body = cron_job(["-tp=8"])
    assert isinstance(body["spec"], dict)
    daily = {"schedule": "@daily"}
    for spec in (LATE, {**daily, "jobTemplate": LATE}, {**daily, "jobTemplate": {"spec": LATE}}):
        (found,) = check_manifest({**body, "spec": spec})
        assert found.level is Level.UNKNOWN
    (missing,) = check_manifest({**body, "spec": None})
    assert (missing.path, missing.rule) == ("spec", "crd-schema")
