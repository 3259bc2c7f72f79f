"""`kthena-components rights`: prints the RBAC role that a deployer needs."""

import argparse
import sys

import yaml

from kthena_components.cli.main import SUCCESS
from kthena_components.cluster.requirements import INVENTORY
from kthena_components.core.plan.manifest import roles
from kthena_components.core.values.regex import regex
from kthena_components.systems import EMITTERS, extras, resources_of

_NAMESPACE = regex(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "rights",
        help=help_text,
        description="Print the minimal RBAC permissions of the user that runs Pulumi, as YAML for "
        "kubectl apply: a ClusterRole, or with --namespace a Role and, for cluster-scoped "
        "resources, a ClusterRole. Bind them to your user.",
    )
    parser.add_argument(
        "--backend",
        choices=[*EMITTERS, "all"],
        default="all",
        help="the backend of the servings; default: all",
    )
    parser.add_argument(
        "--with",
        dest="extras",
        choices=sorted(extras()),
        action="append",
        default=[],
        help="other objects in the stack; can be repeated",
    )
    parser.add_argument(
        "--namespace",
        metavar="N",
        type=_namespace,
        help="the namespace of the servings; default: all namespaces",
    )
    parser.add_argument(
        "--inventory",
        action="store_true",
        help="print the role for reading an inventory instead: it lists, and changes nothing",
    )
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the roles to standard output and return the exit status."""
    if asked.inventory and asked.namespace:
        parser.error("--inventory reads the whole cluster: leave out --namespace")
    if asked.inventory:
        written = roles(INVENTORY, name="kthena-components-inventory")
        sys.stdout.write(yaml.safe_dump_all(written, sort_keys=False))
        return SUCCESS
    backends = EMITTERS if asked.backend == "all" else (asked.backend,)
    written = roles(resources_of(backends, dict.fromkeys(asked.extras)), asked.namespace)
    sys.stdout.write(yaml.safe_dump_all(written, sort_keys=False))
    return SUCCESS


def _namespace(text: str) -> str:
    if not _NAMESPACE.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text[:80]!r} is not a valid namespace: use at most 63 lower-case letters, digits "
            "and dashes"
        )
    return text
