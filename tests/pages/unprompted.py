"""Commands on the pages without a prompt: why their block is not run from the page.

For most, another module does the same in its own folder and cluster: it is named. The others say
why nothing of this project runs them.
"""

from collections.abc import Mapping

_README = "tests/pulumi/test_readme_commands.py"
_NO_INDEX = "the wheel is in no package index"
_GPUS = "the pods of a sandbox run no engine that would answer"
_CLUSTER = "reads a cluster of the user, by its context or with kubectl"
UNPROMPTED: Mapping[str, Mapping[str, str]] = {
    "CONTRIBUTING.md": {"make lint": "the workflows of CI run these targets"},
    "README.md": {
        "make sandbox RACKS=2": "conformance/sandbox/readme.py",
        "make up": _README,
        "make wheel": "tests/support/wheel.py",
        'eval "$(make -s env)"': _README,
        "pulumi preview --stack staging": _README,
    },
    "docs/check.md": {"pip install": _NO_INDEX},
    "docs/convert.md": {
        "kthena-components convert --from-cluster": "conformance/pulumi/adoption.py",
        "pulumi import": "conformance/pulumi/adoption.py",
    },
    "docs/engines.md": {"make engine-tables": "downloads the releases of the engines"},
    "docs/faults.md": {
        "pulumi cancel": "conformance/pulumi/process_faults.py",
        "pulumi refresh --clear-pending-creates": "conformance/pulumi/fault_stack.py",
        "kubectl get statefulset": _CLUSTER,
        "kubectl taint node": "conformance/volcano/lost_nodes.py",
    },
    "docs/fit.md": {"pip install": _NO_INDEX},
    "docs/from-lws.md": {"cp same/Pulumi.converted.yaml": "tests/test_lws_guide.py"},
    "docs/how-to/first-request.md": {
        "kubectl port-forward service/chat": _GPUS,
        "kubectl port-forward --namespace kthena-system": _GPUS,
    },
    "docs/how-to/manifests-in-ci.md": {
        "python3 -I -m venv judge": "tests/pulumi/test_ci_manifests.py"
    },
    "docs/how-to/new-project.md": {
        "python3 -m venv .venv": "downloads the packages",
        "pulumi preview --stack prod": "tests/pulumi/test_templates.py",
        "make wheel": "tests/pulumi/test_templates.py",
    },
    "docs/how-to/secrets.md": {"pulumi config set --secret": "asks for the token"},
    "docs/inventory.md": {
        "kthena-components inventory --context": _CLUSTER,
        "kubectl get nodes,hypernodes": _CLUSTER,
    },
    "docs/languages.md": {
        "pip install dist/": "tests/support/wheel.py",
        "pulumi package add kthena": "tests/pulumi/test_languages.py",
        "pulumi package add ../kthena_components/plugin": "tests/pulumi/test_package_folder.py",
        "cd examples/languages/typescript": "tests/pulumi/test_languages.py",
        'eval "$(make -s env)"': "tests/pulumi/test_registry.py",
    },
    "docs/monitoring.md": {"kubectl get configmap": _CLUSTER},
    "docs/performance.md": {"make bench": "takes many minutes"},
    "docs/production.md": {"kubectl patch podgroup": _CLUSTER},
    "docs/review.md": {
        "kthena-components review --branch main": "tests/pulumi/test_wheel_review.py",
        "cd platform/serving": "tests/pulumi/test_wheel_review.py",
        "pulumi preview --stack prod": "tests/pulumi/test_wheel_review.py",
    },
    "docs/rights.md": {"kthena-components rights": "conformance/pulumi/privilege.py"},
    "docs/stacks.md": {'eval "$(make -s env)"': _README},
    "examples/README.md": {"cd examples/ten-lines": "tests/pulumi/lives.py"},
}
"""By page: how a block of commands begins, and its reason or the module that does the same."""
