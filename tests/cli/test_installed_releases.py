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


SERVING = """apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelServing
metadata: {name: llama, namespace: serving}
spec: {}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llama, namespace: serving}
spec:
  maxReplicas: 2
  scaleTargetRef:
    {apiVersion: workload.serving.volcano.sh/v1alpha1, kind: ModelServing, name: llama}
"""
NO_SCALE = "has no scale subresource in"


def test_objects_are_compared_by_the_installed_release(run: Command, write: Write) -> None:
    write("c/llama.yaml", SERVING)
    assert NO_SCALE not in run("c").out
    write("c/main.tf", PIN % ("a", "kthena", "0.2.0"))
    (line,) = [each for each in run("c").lines if NO_SCALE in each]
    assert ": advisory: " in line
    assert "c/main.tf installs Kthena 0.2.0, and Kthena 1.0 accepts it" in line
    assert NO_SCALE not in run("c", "--release=kthena=1.0").out
    (line,) = [each for each in run("c", "--release=kthena=0.2").lines if NO_SCALE in each]
    assert ": mandatory: " in line


def test_objects_compared_by_releases_that_differ_are_left_open(run: Command, write: Write) -> None:
    write("d/llama.yaml", SERVING)
    write("d/a.tf", PIN % ("a", "kthena", "0.2.0"))
    write("d/install.sh", "helm install k oci://ghcr.io/volcano-sh/charts/kthena --version v0.4.0")
    (line,) = [each for each in run("d", "--whole").lines if NO_SCALE in each]
    assert ": not checked: " in line
    assert "install Kthena 0.2.0 (d/a.tf) and 0.4.0 (d/install.sh), which differ in this" in line


def test_each_folder_has_the_release_that_it_installs(run: Command, write: Write) -> None:
    for folder, release in (("one", "0.6.2"), ("two", "0.10.0")):
        new = "rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration: {partition: 1}}"
        write(
            f"e/{folder}/lws.yaml", LWS.replace("NEW", new).replace("name: a}", f"name: {folder}}}")
        )
        write(f"e/{folder}/install.sh", f"helm install lws x/lws --version {release}\n")
    lines = [each for each in run("e").lines if "installs LWS" in each]
    assert lines
    assert all("e/one/lws.yaml" in each for each in lines)
