"""`kthena-components check`: its options. The modules that check are imported when it runs."""

import argparse

from kthena_components.cli.check.reports import FORMATS
from kthena_components.cli.shared_options import number_of
from kthena_components.core.schema.versions import NAMED, TITLES, VERSIONS

_EXITS = """exit status:
  0  no mandatory findings
  1  at least one mandatory finding
  2  wrong usage, a file that you named and that cannot be read, or a rule that failed
     (rule-fault); everything else is still checked, and 2 takes precedence over 1"""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "check",
        help=help_text,
        description="Check Kubernetes manifests: each engine must start as many ranks as its pods "
        "request GPUs, and each object must satisfy its CRD and the admission rules that --rules "
        "lists.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="a YAML or JSON file, a folder of such files, or - for standard input",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="output format; default: text"
    )
    parser.add_argument(
        "--level",
        metavar="dev|staging|prod|FILE",
        help="how severe each rule is: as in an environment, or as in FILE, a JSON file that maps "
        "rules (* for all others) to mandatory, advisory or disabled, or a config of the policy "
        "pack",
    )
    _releases(parser)
    _together(parser)
    _models_and_rules(parser)
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=number_of("processes", least=1),
        help="check files in N processes; default: one for each processor, if there are enough "
        "files",
    )
    parser.set_defaults(run=lambda asked: _run(asked, parser))


def _run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from kthena_components.cli.check.command import run  # noqa: PLC0415

    return run(asked, parser)


def _releases(parser: argparse.ArgumentParser) -> None:
    """Add the options that state the releases of systems."""
    for system in NAMED:
        known = VERSIONS[system]
        parser.add_argument(
            f"--{system}-version",
            metavar="VERSION",
            help=f"the {TITLES[system]} release to check its objects against, such as {known[-2]}; "
            f"default: the one in FILE, or {known[-1]}",
        )
    parser.add_argument(
        "--release",
        metavar="SYSTEM=VERSION",
        action="append",
        default=[],
        help="the release of another system to check its objects against, such as lws=0.9; can be "
        f"repeated; default: the newest that is known ({_newest()})",
    )


def _models_and_rules(parser: argparse.ArgumentParser) -> None:
    """Add the options about models, GPUs and the rules themselves."""
    parser.add_argument(
        "--model-config",
        metavar="MODEL=PATH",
        action="append",
        default=[],
        help="the config.json of a model that is not in the built-in table, or its folder; can be "
        "repeated",
    )
    parser.add_argument(
        "--gpu",
        metavar="[POOL=]GPU",
        action="append",
        default=[],
        help="the GPU of the pods whose manifests name none, to check their memory: a name (h200), "
        "a node label, an instance type (p5.48xlarge) or a resource; with POOL=, of those with "
        "this value in their node selector; can be repeated; default: the one in FILE",
    )
    parser.add_argument("--rules", action="store_true", help="list all rules and exit")
    parser.add_argument("--explain", metavar="RULE", help="print a rule's documentation and exit")


def _reading(parser: argparse.ArgumentParser) -> None:
    """Add the options about rendering, and about files that cannot be read."""
    parser.add_argument(
        "--render",
        action=argparse.BooleanOptionalAction,
        help="render Helm charts and kustomizations in folders, with helm, kustomize or kubectl on "
        "PATH, and check the result; default: as far as possible; with --render, it is an error "
        "if something is not rendered",
    )
    parser.add_argument(
        "--strict-read",
        action="store_true",
        help="exit with status 2 if anything in the folders cannot be read or rendered",
    )


def _newest() -> str:
    others = (system for system in VERSIONS if system not in NAMED)
    return ", ".join(f"{system} {VERSIONS[system][-1]}" for system in others)


def _together(parser: argparse.ArgumentParser) -> None:
    """Add the options for all files and for all objects together."""
    _reading(parser)
    parser.add_argument(
        "--whole",
        action="store_true",
        help="the paths contain all objects of one cluster: report missing objects, and count an "
        "object in two files twice",
    )
    parser.add_argument(
        "--gpu-budget",
        metavar="N",
        type=number_of("GPUs"),
        help="the maximum number of GPUs that all pods together may request",
    )
    parser.add_argument(
        "--gpu-types",
        metavar="NAME,NAME",
        default="",
        help="the GPU resources (nvidia.com/gpu) and products (NVIDIA-H100-80GB-HBM3) that pods "
        "may request",
    )
