"""Objects are checked for the release of their operator that other files install."""

from itertools import count

from tests.cli.conftest import Command, Write
from tests.support.for_each import for_each

JOB = """apiVersion: ray.io/v1
kind: RayJob
metadata: {name: a}
spec:
  entrypoint: "true"
  ttlSecondsAfterFinished: 60
  rayClusterSpec:
    headGroupSpec:
      rayStartParams: {}
      template: {spec: {containers: [{name: a, image: "rayproject/ray:2.46.0"}]}}
"""
RULE = "[ray-job]"
PIN = 'resource "helm_release" "%s" {\n  chart = "%s"\n  version = "%s"\n}\n'
KUBERAY = "kuberay-operator"
_NUMBER = count()
CASES: dict[str, tuple[str, dict[str, str], str, str]] = {
    "without a release": (JOB, {}, "mandatory", RULE),
    "a known release that has the rule": (
        JOB,
        {"main.tf": PIN % ("a", KUBERAY, "1.4.0")},
        "mandatory",
        RULE,
    ),
    "a release before those that are known": (
        JOB,
        {"infra/main.tf": PIN % ("a", KUBERAY, "1.1.1")},
        "not checked",
        "; a/infra/main.tf installs KubeRay 1.1.1, and only rules from 1.3 are known",
    ),
    "releases that differ, of which one is not known": (
        JOB,
        {"a.tf": PIN % ("a", KUBERAY, "1.1.1"), "b.tf": PIN % ("a", KUBERAY, "1.6.0")},
        "not checked",
        "; the files install KubeRay 1.1.1 (a/a.tf) and 1.6.0 (a/b.tf), which differ in this",
    ),
    "releases that differ, and agree in this": (
        JOB,
        {"a.tf": PIN % ("a", KUBERAY, "1.5.0"), "b.tf": PIN % ("a", KUBERAY, "1.6.0")},
        "mandatory",
        RULE,
    ),
    "the release of another operator": (
        JOB,
        {"a.tf": PIN % ("a", "lws", "0.6.0")},
        "mandatory",
        RULE,
    ),
}


@for_each("name", CASES)
def test_the_installed_release_decides(run: Command, write: Write, name: str) -> None:
    text, files, level, told = CASES[name]
    folder = f"a{next(_NUMBER)}"
    write(f"{folder}/job.yaml", text)
    for file, content in files.items():
        write(f"{folder}/{file}", content)
    done = run(folder, "--no-render")
    (line,) = [each for each in done.lines if RULE in each]
    assert f": {level}: RayJob a: spec.ttlSecondsAfterFinished:" in line
    assert told in line.replace(f"{folder}/", "a/")


LWS = """apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: a}
spec:
  replicas: 2
  NEW
  leaderWorkerTemplate:
    size: 1
    workerTemplate: {spec: {containers: [{name: a, image: busybox}]}}
"""


def test_what_only_the_installed_release_refuses_is_advice(run: Command, write: Write) -> None:
    new = "rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration: {partition: 1}}"
    write("b/lws.yaml", LWS.replace("NEW", new))
    write("b/main.tf", PIN % ("a", "lws", "0.6.2"))
    asked = run("b", "--release=lws=0.6")
    found = run("b")
    assert ": mandatory: " in asked.out
    assert ": mandatory: " not in found.out
    assert "b/main.tf installs LWS 0.6.2, and LWS 0.10 accepts it" in found.out
    assert "installs" not in run("b", "--release=lws=0.10").out
