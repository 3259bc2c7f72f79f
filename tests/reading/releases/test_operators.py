"""The releases of operators that files install."""

from pathlib import Path

from kthena_components.core.facts.context import Pin
from kthena_components.reading.files import read_text
from kthena_components.reading.releases.operators import find_pins, near
from tests.support.for_each import for_each

RELEASE = 'resource "helm_release" "a" {\n  chart = "kuberay-operator"\n  version = %s\n}\n'
MODULE = 'module "a" {\n  kuberay_operator_helm_config = { version = "1.1.1" }\n  %s\n}\n'
APPLICATION = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: %s\n"
FLUX = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec: %s\n"
OCI = (
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: a}\n"
    "spec: {url: 'oci://registry.k8s.io/lws/charts/lws', ref: %s}\n"
)
KUBERAY = "repoURL: 'https://github.com/ray-project/kuberay.git', path: helm-chart/kuberay-operator"
HELMFILE = "repositories: [{name: k, url: 'https://kaito-project.github.io/kaito/charts/kaito'}]\n"
CHART = "apiVersion: v2\nname: a\nversion: 0.1.0\ndependencies: [%s]\n"
LWS = "https://github.com/kubernetes-sigs/lws"
STATED: dict[tuple[str, str], dict[str, str]] = {
    ("a.tf", RELEASE % '"1.1.1"'): {"ray": "1.1.1"},
    ("a.tf", RELEASE % '"v1.4.0 "'): {"ray": "1.4.0"},
    ("a.tf", RELEASE % '"~> 1.3.0"'): {"ray": "1.3"},
    ("a.tf", RELEASE % '"~> 1.3"'): {},
    ("a.tf", RELEASE % '">= 1.3.0"'): {},
    ("a.tf", RELEASE % "var.release"): {},
    ("a.tf", RELEASE % "var.r" + 'variable "r" {\n default = "1.3.2"\n}\n'): {"ray": "1.3.2"},
    ("a.tf", RELEASE % "local.r" + 'locals {\n r = "1.3.2"\n}\n'): {"ray": "1.3.2"},
    ("a.tf", RELEASE % "module.r.version"): {},
    ("a.tf", RELEASE.replace("kuberay", "x") % '"1.1.1"'): {},
    ("a.tf", RELEASE.replace("version", "count = 0\n  version") % '"1.1.1"'): {},
    ("a.tofu", RELEASE.replace("kuberay-operator", "lws") % '"0.7.0"'): {"lws": "0.7.0"},
    ("a.tf", RELEASE.replace("kuberay-operator", "workspace") % '"0.7.0"'): {},
    ("a.tf", MODULE % ""): {"ray": "1.1.1"},
    ("a.tf", MODULE % "enable_kuberay_operator = var.on"): {"ray": "1.1.1"},
    ("a.tf", MODULE % "enable_kuberay_operator = false"): {},
    (
        "a.tf",
        'module "a" {\n helm_releases = { l = { chart = "lws", chart_version = "0.6.1" } }\n}\n',
    ): {"lws": "0.6.1"},
    ("a.yaml", APPLICATION % "{source: {chart: lws, targetRevision: v0.7.0}}"): {"lws": "0.7.0"},
    ("a.yaml", APPLICATION % "{sources: [{chart: kserve-crd, targetRevision: 0.15.2}]}"): {
        "kserve": "0.15.2"
    },
    ("a.yaml", APPLICATION % "{source: {chart: lws, targetRevision: '*'}}"): {},
    ("a.yaml", APPLICATION % f"{{source: {{{KUBERAY}, targetRevision: v1.3.0}}}}"): {
        "ray": "1.3.0"
    },
    ("a.yaml", APPLICATION % "{source: {repoURL: x/y, path: lws, targetRevision: v0.7.0}}"): {},
    (
        "a.yaml",
        APPLICATION.replace("Application", "ApplicationSet")
        % "{template: {spec: {source: {chart: kuberay-operator, targetRevision: 1.4.x}}}}",
    ): {"ray": "1.4"},
    ("a.yaml", FLUX % "{chart: {spec: {chart: kthena, version: 0.3.0}}}"): {"kthena": "0.3.0"},
    ("a.yaml", FLUX % "{chart: {spec: {chart: ./charts/lws, version: 0.3.0}}}"): {},
    ("a.yaml", OCI % "{tag: 0.8.0}"): {"lws": "0.8.0"},
    ("a.yaml", OCI % "{semver: '>=0.8.0'}"): {},
    ("helmfile.yaml", "releases: [{name: a, chart: v/volcano, version: 1.14.1}]\n"): {
        "volcano": "1.14.1"
    },
    ("helmfile.yaml", HELMFILE + "releases: [{name: a, chart: k/workspace, version: 0.9.0}]\n"): {
        "kaito": "0.9.0"
    },
    ("helmfile.yaml", "releases: [{chart: v/lws, version: 0.8.0, installed: false}]\n"): {},
    ("fleet.yaml", "helm: {chart: lws, repo: 'oci://x', version: 0.8.0}\n"): {"lws": "0.8.0"},
    ("Chart.yaml", CHART % "{name: kuberay-operator, version: 1.3.2, repository: 'https://x'}"): {
        "ray": "1.3.2"
    },
    ("Chart.yaml", CHART % "{name: kuberay-operator, version: ~1.3.0}"): {"ray": "1.3"},
    ("Chart.yaml", CHART % "{name: kuberay-operator, version: '>=1.3.0'}"): {},
    ("Chart.yaml", CHART % "{name: redis, version: 1.3.0}"): {},
    ("a.sh", "helm install k kuberay/kuberay-operator --version 1.3.2\n"): {"ray": "1.3.2"},
    # Older than the first known release: it counts where it is surely installed.
    ("a.sh", "helm install k kuberay/kuberay-operator --version 1.2.2\n"): {},
    ("Chart.yaml", CHART % "{name: kuberay-operator, version: 1.2.2}"): {"ray": "1.2.2"},
    (
        "a.sh",
        "helm upgrade -i lws oci://registry.k8s.io/lws/charts/lws \\\n  --version=0.6.1 --wait",
    ): {"lws": "0.6.1"},
    ("a.sh", "V=${V:-1.3.0}\nhelm install k kuberay/kuberay-operator --version ${V} | tee log"): {
        "ray": "1.3.0"
    },
    ("a.sh", "helm install k kuberay/kuberay-operator --version $V"): {},
    ("a.sh", "V=1.3.0\nV=1.4.0\nhelm install k kuberay/kuberay-operator --version $V"): {},
    ("a.sh", "helm install k kuberay/kuberay-operator\nhelm install r r/redis --version 1.3.0"): {},
    ("a.sh", "helm template k kuberay/kuberay-operator --version 1.3.0"): {},
    ("a.sh", "# helm install k kuberay/kuberay-operator --version 1.3.0"): {},
    ("Makefile", "up:\n\t@helm upgrade --install v volcano-sh/volcano -n v --version 1.14.1\n"): {
        "volcano": "1.14.1"
    },
    ("a.sh", f"kubectl apply -f {LWS}/releases/download/v0.7.0/manifests.yaml"): {"lws": "0.7.0"},
    ("a.sh", f"V=v0.7.0\nkubectl apply -f {LWS}/releases/download/$V/manifests.yaml"): {
        "lws": "0.7.0"
    },
    ("a.sh", f"kubectl apply -f {LWS}/releases/latest/download/manifests.yaml"): {},
    (
        "kustomization.yaml",
        "resources: ['github.com/ray-project/kuberay/ray-operator/config/default?ref=v1.4.2']",
    ): {"ray": "1.4.2"},
    ("kustomization.yaml", "resources: ['github.com/me/kuberay/a?ref=v1.4.2']"): {},
}


@for_each("stated", STATED)
def test_the_release_of_an_operator_is_found(tmp_path: Path, stated: tuple[str, str]) -> None:
    name, text = stated
    file = tmp_path / name
    file.write_text(text)
    found = find_pins([str(file)], read_text)
    assert {system: [pin.release for pin in pins] for system, pins in found.items()} == {
        system: [release] for system, release in STATED[stated].items()
    }


def test_several_files_may_differ(tmp_path: Path) -> None:
    files = []
    for name, release in (("a.tf", "1.3.0"), ("b.tf", "1.4.0"), ("c.tf", "1.3.0")):
        (tmp_path / name).write_text(RELEASE % f'"{release}"')
        files.append(str(tmp_path / name))
    found = [Pin(r, file) for r, file in zip(("1.3.0", "1.4.0", "1.3.0"), files, strict=True)]
    assert find_pins(files, read_text) == {"ray": tuple(found)}


def test_the_releases_of_the_nearest_folder_hold() -> None:
    pins = {"ray": (Pin("1.3.0", "x/a/main.tf"), Pin("1.4.0", "x/b/ops/main.tf"))}
    held = {file: [pin.release for pin in near(pins, file)["ray"]] for file in NEAR}
    assert held == NEAR


NEAR = {
    "x/a/apps/job.yaml": ["1.3.0"],
    "x/b/job.yaml": ["1.4.0"],
    "x/c/job.yaml": ["1.3.0", "1.4.0"],
    "y/job.yaml": ["1.3.0", "1.4.0"],
}
"""Files, and the releases that hold for each."""
