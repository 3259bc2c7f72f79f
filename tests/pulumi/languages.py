"""Programs in other languages on the real engine, with the provider as a user installs it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kthena_components import __version__
from tests.support.engine import ROOT, Run, Stack, environment
from tests.support.shared import Shared
from toolchain.locate import language_folders
from toolchain.programs import PROVIDER, known_programs

EXAMPLES = ROOT / "examples" / "languages"
PROGRAMS = {"yaml": [], "typescript": ["node", "npm"], "go": ["go"]}
"""The programs that each language needs besides its host."""
HOSTS = {"yaml": "yaml", "typescript": "nodejs", "go": "go"}
_SCRIPT = "from kthena_components.provider.host import run\n\nrun()\n"


def missing(language: str) -> str:
    """Say what keeps a language from running on this machine; empty if nothing does."""
    path = variables()["PATH"]
    wanted = [f"pulumi-language-{HOSTS[language]}", *PROGRAMS[language]]
    lacking = [name for name in wanted if shutil.which(name, path=path) is None]
    hint = ": run `make languages`" if any("language" in name for name in lacking) else ""
    return f"not found: {', '.join(lacking)}{hint}" if lacking else ""


def variables() -> dict[str, str]:
    """Return the variables with which the engine finds language hosts."""
    path = environment().get("PATH", os.environ["PATH"])
    folders = [*map(str, language_folders(os.environ)), path]
    return {
        "PATH": os.pathsep.join(folders),
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "false",
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def install(home: Path) -> dict[str, str]:
    """Put the provider into a PULUMI_HOME of its own, as docs/languages.md says."""
    found = without_provider(home)
    script = home / "pulumi-resource-kthena"
    script.write_text(f"#!{sys.executable}\n{_SCRIPT}")
    script.chmod(0o755)
    stack = Stack(home, "", {**environment(), **found, "PYTHONPATH": str(ROOT)}, home)
    words = ("plugin", "install", "resource", "kthena", __version__, "--file", str(script))
    stack.pulumi(*words).require()
    return found


def without_provider(home: Path) -> dict[str, str]:
    """Make a PULUMI_HOME whose Kubernetes provider is the one of the tests' own."""
    known = known_programs()[PROVIDER]
    folder = f"plugins/{known.name.removeprefix('pulumi-')}-v{known.version}"
    usual = Path(environment().get("PULUMI_HOME") or "~/.pulumi").expanduser()
    (home / folder).mkdir(parents=True)
    (home / folder / known.name).symlink_to(usual / folder / known.name)
    return {**variables(), "PULUMI_HOME": str(home)}


def example(
    language: str, folder: Path, found: Mapping[str, str], shared: Shared | None = None
) -> Stack:
    """Copy an example, with what `pulumi install` makes in it: once where it can be shared."""
    stack = Stack.make(EXAMPLES / language, "dev", folder, found)
    if language == "yaml":
        return stack
    if shared is None:
        stack.pulumi("install").require()
        return stack
    made = shared(f"{language}-example", lambda own: example(language, own, found))
    for path in (made / "project").iterdir():
        if path.is_dir():  # packages, which nobody writes to
            shutil.copytree(
                path, stack.project / path.name, symlinks=True, copy_function=os.link,
                dirs_exist_ok=True,
            )  # fmt: skip
        elif not path.match("Pulumi.*.yaml"):  # that has the key of another stack
            shutil.copy(path, stack.project / path.name)
    return stack


def compiled(stack: Stack) -> str:
    """Return what TypeScript's compiler says about a program: nothing if it is right."""
    command = ["node", "node_modules/typescript/lib/tsc.js", "-p", ".", "--noEmit"]
    done = subprocess.run(
        command, cwd=stack.project, env=stack.variables, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def in_yaml(folder: Path, found: Mapping[str, str], resources: Mapping[str, Any]) -> Stack:
    """Make a stack of a program in YAML that renders its manifests."""
    source = folder / "source"
    source.mkdir()
    program = {
        "name": "ten-lines",
        "runtime": "yaml",
        "config": {
            "kubernetes:renderYamlToDirectory": {"value": "rendered"},
            "word": {"type": "string", "secret": True},
        },
        "resources": resources,
    }
    (source / "Pulumi.yaml").write_text(yaml.safe_dump(program, sort_keys=False))
    stack = Stack.make(source, "dev", folder, found)
    stack.set_secret("word", SECRET)
    return stack


SECRET = "not-for-everyone"  # noqa: S105 - what must not be shown


def serving(**more: Any) -> dict[str, Any]:
    """Return a ModelServing in YAML: the one of the examples, and more fields."""
    program = yaml.safe_load((EXAMPLES / "yaml" / "Pulumi.yaml").read_text())
    made: dict[str, Any] = program["resources"]["chat"]
    made["properties"] |= more
    return made


def files_of(stack: Stack) -> dict[str, bytes]:
    """Return the rendered manifests as they lie on disk."""
    return {path.name: path.read_bytes() for path in stack.project.glob("rendered/**/*.yaml")}


def told(run: Run) -> list[str]:
    """Return what the user reads, without the notes of where a plugin was found."""
    return [text for text in run.messages if not text.startswith("using pulumi-")]
