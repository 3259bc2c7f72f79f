"""Blocks of the pages that are neither commands nor programs: which module compares each of them.

By page: how a block begins, and the module. The others say why nothing compares them.
"""

from collections.abc import Mapping

_HERE = "tests/pages/test_compared.py"
_OWN = "tests/pulumi/test_own_program.py"
_README = "tests/pulumi/test_readme_commands.py"
_PODS = "tests/resources/test_pods_page.py"
_BOOSTER = "tests/systems/booster/test_page.py"
_MONITORING = "tests/systems/prometheus/test_page.py"
_LWS = "tests/test_lws_guide.py"
_PICTURES = "tests/toolchain/pages/test_pictures.py"
_CONFLICT = "the API server's answer: conformance/pulumi/cluster_faults.py expects it"
_TREE = "shows folders and files: tests/test_page_paths.py checks that they exist"

COMPARED: Mapping[str, Mapping[str, str]] = {
    "README.md": {
        "1 serving, 2 pods": _README,
        "error: stack 'dev'": _README,
        "import pulumi": "tests/test_readme.py",
        "verdict ": "conformance/sandbox/readme.py",
    },
    "docs/architecture.md": {"flowchart TD": "tests/toolchain/pages/test_house.py"},
    "docs/backends/booster.md": {
        "queue: is given": _BOOSTER,
        "name: chat": _BOOSTER,
        "apiVersion: ": _BOOSTER,
    },
    "docs/backends/kaito.md": {"roles[0].engine.parallelism: ": _HERE},
    "docs/backends/kthena.md": {
        "backend_options:": _HERE,
        "import pulumi": "tests/systems/kthena/test_beside.py",
    },
    "docs/check.md": {
        '"remedy": ': _HERE,
        "# .pre-commit-config.yaml": "tests/test_pre_commit.py",
        "service.yaml:20: ": _HERE,
    },
    "docs/convert.md": {"apiVersion: v1\nkind: Service": "tests/cli/test_convert_page.py"},
    "docs/engines.md": {"engine: EngineArgs": _HERE, "mpirun ": _HERE},
    "docs/faults.md": {"warning: Service default/chat: ": "tests/resources/test_rivals.py"},
    "docs/from-lws.md": {"serving    role": _LWS, "roles[0].entry_template": _LWS},
    "docs/how-to/transforms.md": {"import pulumi": "tests/pages/test_programs.py"},
    "docs/how-to/unit-tests.md": {"from kthena": "tests/test_testing.py"},
    "docs/inventory.md": dict.fromkeys(
        (
            f"apiVersion: kthena-components/v1\nkind: Inventory\n{field}"
            for field in ("racks", "gpus")
        ),
        "tests/placement/test_inventory.py",
    ),
    "docs/languages.md": {
        "// Serve one model": _HERE,
        "resources:": _HERE,
        " +  kthena:index": "tests/pulumi/test_languages.py",
        "error: kthena:index:ModelServing": "tests/provider/test_host.py",
        "error: PULUMI_ACCESS_TOKEN": "tests/pulumi/test_registry.py",
        "error: failed to get": "tests/pulumi/test_registry.py",
    },
    "docs/how-to/two-clusters.md": {"name: chat": "tests/pulumi/test_languages.py"},
    "docs/levels.md": {
        '{\n  "serving-rules"': "tests/test_readme.py",
        "metadata:": "tests/test_readme.py",
    },
    "docs/limits.md": {"job.yaml:4: ": _HERE},
    "docs/monitoring.md": {
        "name: chat": _MONITORING,
        "fail  monitoring": _MONITORING,
        "apiVersion: ": _MONITORING,
    },
    "docs/own-program.md": {
        "ModelServing 'chat' is refused: 1 problem\n  roles": _OWN,
        "ModelServing 'chat' is refused: 1 problem\n  opts": _OWN,
        "ModelServing 'other' is refused": _OWN,
        "import sys": _OWN,
        "def keep_pods(": "tests/pulumi/test_options.py",
        "pulumi-kubernetes 4.34.2 is": "tests/resources/test_provider_release.py",
    },
    "docs/pictures.md": {"rack-0 ": _PICTURES, "%%{init": _PICTURES},
    "docs/pods.md": {
        "roles:\n- name: serve": _PODS,
        "overlay = {": _PODS,
        "containers:": _PODS,
        "roles[0].overlay": _PODS,
        "from pulumi_kubernetes": _PODS,
        "replicas: is an Output": _PODS,
    },
    "docs/production.md": {
        "spread_over: ": _HERE,
        "overlay:": _HERE,
        "cache: ": _HERE,
        "network:": _HERE,
    },
    "docs/resource-claims.md": {"name: chat": "tests/core/plan/test_resource_claims.py"},
    "docs/review.md": {"- uses: ": _HERE, "- [mandatory] ": "tests/test_readme.py"},
    "docs/sandbox.md": {
        "organization/kthena-components/sandbox was": "tests/sandbox/test_folder.py",
        "warning: PodDisruptionBudget": "tests/resources/test_other_cluster.py",
        "serving/big-0: ": "tests/cluster/test_status.py",
    },
}
NOT_COMPARED: Mapping[str, Mapping[str, str]] = {
    "docs/architecture.md": {
        "kthena_components/\n": _TREE,
        "stacks/*.yaml or a program": _TREE,
        "object ──►": _TREE,
    },
    "docs/conformance.md": {"matrixinfer/": "shows where a user puts programs of his own"},
    "docs/faults.md": {
        f'Apply failed with 1 conflict: conflict with "{manager}': _CONFLICT
        for manager in ("pulumi-kubernetes-", "autoscaler")
    },
    "docs/how-to/secrets.md": {"environment:": "names an environment of Pulumi ESC, an account's"},
    "docs/memory.md": {"KV cache = ": "a formula"},
}
