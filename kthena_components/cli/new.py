"""`kthena-components new`: writes a Pulumi project from a folder of `templates`."""

import argparse
import json
import re
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

from kthena_components import __version__
from kthena_components.cli.main import ERROR, SUCCESS
from kthena_components.cli.policy_pack import MISSING, can_run, write_pack
from kthena_components.core.values.display import visible
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import unwritten

TEMPLATES = Path(str(files("kthena_components"))) / "templates"
LANGUAGES = ("python", "typescript", "yaml")
PROGRAMS = {"typescript": ("node", "npm")}
"""The programs besides Pulumi and Python that a language needs."""
NAME = regex(r"[A-Za-z0-9_.-]{1,100}")
"""Source: pulumi 3.259 sdk/go/common/tokens/project.go."""
IGNORED = frozenset({".git", ".venv"})
"""A folder that has only these counts as empty."""
UNPINNED = f"kthena-components[cluster,policy]=={__version__}"
PLUGIN = f"pulumi plugin install resource kthena {__version__} --file "
_ABOUT_TEMPLATE = regex(r"^template:\n(?:  .*\n)*", re.MULTILINE)
_DESCRIPTION = regex(r"^  description: (.*)$", re.MULTILINE)


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "new",
        help=help_text,
        description="Write a Pulumi project with one serving and the stacks dev, staging and prod. "
        "The stack dev renders manifests, so it needs no cluster.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new or an empty folder")
    parser.add_argument(
        "--language", choices=LANGUAGES, default="python", help="of the program; default: python"
    )
    parser.add_argument(
        "--with", dest="extent", choices=("minimal", "ci"), default="minimal",
        help="ci adds a policy pack and a GitHub workflow that reviews pull requests",
    )  # fmt: skip
    parser.add_argument("--name", help="of the project; default: the name of the folder")
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the project, and print the commands that deploy it."""
    folder, name = asked.folder, asked.name
    name = Path(folder).absolute().name if name is None else name
    with_ci = asked.extent == "ci"
    try:
        problem = _obstacle(folder, name, asked.language, with_ci=with_ci)
        if not problem:
            write_project(folder, name, asked.language, with_ci=with_ci)
    except OSError as error:
        problem = unwritten(folder, error)
    if problem:
        parser.exit(ERROR, f"{parser.prog}: {visible(problem)}\n")
    sys.stdout.write(_next_steps(folder, asked.language, with_ci=with_ci))
    return SUCCESS


def write_project(folder: Path, name: str, language: str, *, with_ci: bool) -> None:
    """Write the files of a template.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # pip compiles the program of the template into a folder beside it.
    for source in filter(Path.is_file, (TEMPLATES / language).iterdir()):
        text = source.read_text(encoding="utf-8")
        if source.name == "Pulumi.yaml":
            text = _filled_in(text, name)
        elif source.name == "requirements.txt":
            text = text.replace(UNPINNED, requirement())
        (folder / source.name).write_text(text, encoding="utf-8")
    if with_ci:
        workflows = folder / ".github" / "workflows"
        workflows.mkdir(parents=True)
        shutil.copyfile(TEMPLATES / "ci" / "github-actions.yml", workflows / "review.yml")
        write_pack(folder / "policies", "../.venv")


def requirement() -> str:
    """Return the line of requirements.txt for this package: the address that pip installed.

    Without an address, it is the version.
    """
    try:
        recorded = distribution("kthena-components").read_text("direct_url.json")
    except PackageNotFoundError:
        recorded = None
    address = json.loads(recorded)["url"] if recorded else ""
    return f"kthena-components[cluster,policy] @ {address}" if address else UNPINNED


def _obstacle(folder: Path, name: str, language: str, *, with_ci: bool) -> str:
    """Say why the project cannot be written, and what to do; empty if it can."""
    if not NAME.fullmatch(name):
        return (
            f"'{name}' cannot be the name of a Pulumi project: write --name with at most 100 "
            "letters, digits, '-', '_' and '.'"
        )
    if folder.exists() and not folder.is_dir():
        return f"{folder} is a file: name a folder that is empty or does not exist"
    if folder.is_dir() and {path.name for path in folder.iterdir()} - IGNORED:
        return f"{folder} is not empty: name a folder that is empty or does not exist"
    missing = [program for program in PROGRAMS.get(language, ()) if shutil.which(program) is None]
    if missing:
        return (
            f"{language} needs {' and '.join(missing)} on PATH: install Node.js "
            "(https://nodejs.org), or write --language python"
        )
    return MISSING if with_ci and not can_run() else ""


def _filled_in(text: str, name: str) -> str:
    """Fill in Pulumi.yaml as `pulumi new` does: without the section about the template."""
    about = _ABOUT_TEMPLATE.search(text)
    described = _DESCRIPTION.search(about[0]) if about else None
    text = _ABOUT_TEMPLATE.sub("", text).replace("${PROJECT}", json.dumps(name))
    return text.replace("${DESCRIPTION}", described[1] if described else "")


def _next_steps(folder: Path, language: str, *, with_ci: bool) -> str:
    """Write the commands that deploy the new project, by its language."""
    is_here = folder.resolve() == Path.cwd()
    steps = [] if is_here else [f"cd {shlex.quote(str(folder))}"]
    if language != "python":
        program = '"$(which pulumi-resource-kthena)"'
        if with_ci:
            install = ".venv/bin/python -m pip install --requirement requirements.txt"
            steps.append(f"python3 -m venv .venv && {install}")
            program = ".venv/bin/pulumi-resource-kthena"
        steps.append(PLUGIN + program)
    steps += ["pulumi install", "pulumi stack init dev", "pulumi up"]
    name = folder.resolve().name if is_here else folder
    lines = [
        f"wrote {name}. To deploy its stack dev, which only writes manifests to rendered/:",
        *(f"  {step}" for step in steps),
    ]
    if with_ci:
        lines.append("Before you commit, write an address that CI can reach into requirements.txt.")
    return "".join(f"{visible(line)}\n" for line in lines)
