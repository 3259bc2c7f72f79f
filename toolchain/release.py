"""`python -m toolchain.release [--tag TAG]`: build all files of a release into dist/release.

Nothing is published. The build stops before it begins if two places state different versions.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from kthena_components import __version__
from toolchain.locate import language_folders, rendering_programs
from toolchain.site.__main__ import build as build_site

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "dist/release"
LANGUAGES = ("nodejs", "go", "dotnet", "java")
"""The SDKs that are generated. A Python program uses the wheel itself."""
SCHEMA = ROOT / "kthena_components/provider/schema.json"
NAMING = ("docs/**/*.md", "examples/languages/*/Pulumi.yaml", "kthena_components/templates/*/*")
"""Files that name the package with its version."""
_NAMED = re.compile(
    r"\bkthena(?:[_-]components)?(?:/plugin)?(?:\[[a-z,]+\])?(?:@v?|==|-| )"
    r"(?P<version>\d+(?:\.\w+)+)"
)
_HEADING = re.compile(r"^## (?P<version>\S+)(?: .*)?$", re.MULTILINE)


def stated_versions(root: Path = ROOT) -> list[tuple[str, str]]:
    """List the versions that other files state, each with the path of its file."""
    schema, policies = SCHEMA.relative_to(ROOT).as_posix(), "policies/PulumiPolicy.yaml"
    found = [
        (schema, str(json.loads((root / schema).read_text())["version"])),
        (policies, str(yaml.safe_load((root / policies).read_text())["version"])),
    ]
    for path in sorted(path for pattern in NAMING for path in root.glob(pattern)):
        named = {one["version"] for one in _NAMED.finditer(path.read_text())}
        found += [(path.relative_to(root).as_posix(), version) for version in sorted(named)]
    return found


def disagreements(version: str, tag: str | None, root: Path = ROOT) -> Iterator[str]:
    """Say which places state another version than the package, or have none."""
    for path, stated in stated_versions(root):
        if stated != version:
            yield f"{path} states {stated}, but the package is {version}"
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, but the package is {version}: tag v{version}"
    if tag is not None and not notes(version, root):
        yield f"CHANGELOG.md has no section '## {version}': rename '## Unreleased'"
    elif tag is not None and notes("Unreleased", root):
        yield (
            f"CHANGELOG.md has changes below '## Unreleased', which the notes of {version} lack: "
            "state the next version, or move them"
        )


def notes(version: str, root: Path = ROOT) -> str:
    """Return what CHANGELOG.md says about a version; empty if there is no such section."""
    text = (root / "CHANGELOG.md").read_text()
    headings = list(_HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=False):
        if heading["version"].strip("[]") == version:
            return text[heading.end() : end].strip()
    return ""


def main() -> int:
    """Check the versions, build everything, and list it."""
    parser = argparse.ArgumentParser(prog="python -m toolchain.release", description=__doc__)
    parser.add_argument("--tag", help="the tag of the release; without it, this is a dry run")
    tag = parser.parse_args().tag or None
    wrong = list(disagreements(__version__, tag))
    if wrong:
        sys.stderr.write("\n".join([*wrong, ""]))
        return 1
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    _wheel()
    missing = list(_sdks())
    build_site(ROOT / ".site")
    _pack(ROOT / ".site/html", f"kthena-components-site-{__version__}")
    _packages()
    text = notes(__version__) if tag else notes("Unreleased") or notes(__version__)
    (TARGET / "notes.md").write_text(f"{text}\n")
    for made in sorted(TARGET.iterdir()):
        sys.stdout.write(f"{made.relative_to(ROOT)}  {made.stat().st_size:,} bytes\n")
    sys.stderr.write("".join(f"{line}\n" for line in missing))
    return int(bool(missing and tag))


def _run(*command: str) -> None:
    generators = rendering_programs(os.environ, "generators").values()
    built = [*language_folders(os.environ), *(program.parent for program in generators)]
    folders = map(str, built)
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "PATH": path})


def _wheel() -> None:
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps")
    _run(*pip, "--wheel-dir", str(TARGET), ".")


def _sdks() -> Iterator[str]:
    """Generate the SDK of each language from the schema, and say which could not be.

    The generator of .NET downloads Pulumi's logo, so it fails without a network.
    """
    _run("pulumi", "schema", "check", str(SCHEMA))
    folder = ROOT / "dist/sdk"
    shutil.rmtree(folder, ignore_errors=True)
    for language in LANGUAGES:
        try:
            _run(
                "pulumi", "package", "gen-sdk", str(SCHEMA), "--language", language,
                "--out", str(folder),
            )  # fmt: skip
        except subprocess.CalledProcessError:
            yield f"the SDK for {language} was not generated: see the error above"
        else:
            _pack(folder / language, f"kthena-sdk-{language}-{__version__}")


def _packages() -> None:
    """List the wheel's packages as CycloneDX: those of a new environment that holds the wheel.

    The program that lists them has an environment of its own, so that it does not list itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        holding, listing = Path(folder) / "wheel", Path(folder) / "program"
        (wheel,) = TARGET.glob("*.whl")
        for at, wanted in (
            (holding, [f"{wheel}[cluster,exact,policy,terminal]"]),
            (listing, ["--require-hashes", "--requirement", "toolchain/sbom.lock"]),
        ):
            _run(sys.executable, "-m", "venv", str(at))
            _run(str(at / "bin/python"), "-m", "pip", "install", "--quiet", *wanted)
        _run(
            str(listing / "bin/cyclonedx-py"), "environment", str(holding / "bin/python"),
            "--output-format", "JSON", "--output-file", str(TARGET / "sbom.cdx.json"),
        )  # fmt: skip


def _pack(folder: Path, name: str) -> None:
    with tarfile.open(TARGET / f"{name}.tar.gz", "w:gz") as packed:
        packed.add(folder, arcname=name)


if __name__ == "__main__":
    sys.exit(main())
