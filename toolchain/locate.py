"""Decides which programs to build, and which shell variables put them on PATH.

Pulumi comes from PATH or else from the cache. The provider is an installed plugin, or else the one
that an installed Pulumi downloads, or else comes from the cache.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from toolchain.build import Report, ensure_built
from toolchain.programs import (
    CLI,
    PROVIDER,
    ROOT,
    VERSIONS,
    Program,
    ToolchainError,
    cache_root,
    known_programs,
    minutes_of,
)


def ensure(environ: Mapping[str, str], report: Report) -> None:
    """Build the missing programs."""
    for program in needed(environ, report):
        ensure_built(program, cache_root(environ), report)


def ensure_sandbox(
    environ: Mapping[str, str], report: Report, purpose: str = "sandbox"
) -> dict[str, Program]:
    """Build the missing programs of the sandbox, and return all of them by name.

    Args:
        environ: The variables that state the cache.
        report: Called with each line of progress.
        purpose: A conformance part instead, for the programs that only this part needs.
    """
    missing = unbuilt(purpose, environ)
    if missing:
        minutes = sum(program.minutes for program in missing)
        programs_of = "1 program" if len(missing) == 1 else f"{len(missing)} programs"
        time = f"about {minutes_of(minutes)}, once per machine"
        report(f"the {_title(purpose)} needs {programs_of} that must be built: {time}")
    for program in missing:
        ensure_built(program, cache_root(environ), report)
    return known_programs(purpose)


def unbuilt(purpose: str, environ: Mapping[str, str]) -> list[Program]:
    """Return the programs of a purpose that are not in the cache."""
    cache = cache_root(environ)
    return [one for one in known_programs(purpose).values() if not one.entry(cache).is_dir()]


def _title(purpose: str) -> str:
    return purpose if purpose == "sandbox" else f"part {purpose}"


def ensure_rendering(
    environ: Mapping[str, str], report: Report, purpose: str = "rendering"
) -> dict[str, Path]:
    """Find the programs that render manifests, or build them, and give them by name.

    Args:
        environ: The variables that state PATH and the cache.
        report: Called with each line of progress.
        purpose: `alerts` for the program that checks alerts, `generators` for those that make the
            SDKs of .NET and Java.
    """
    for program in known_programs(purpose).values():
        if rendering_program(program, environ) is None:
            ensure_built(program, cache_root(environ), report)
    return rendering_programs(environ, purpose)


def rendering_programs(environ: Mapping[str, str], purpose: str = "rendering") -> dict[str, Path]:
    """Give the programs that render manifests, as far as they are installed or built, by name."""
    known = known_programs(purpose)
    found = {name: rendering_program(program, environ) for name, program in known.items()}
    return {name: path for name, path in found.items() if path is not None}


def rendering_program(program: Program, environ: Mapping[str, str]) -> Path | None:
    """Find one on PATH, or else in the cache."""
    installed = shutil.which(program.name, path=environ.get("PATH", os.defpath))
    built = program.binary(cache_root(environ))
    return Path(installed) if installed else built if built.exists() else None


def ensure_languages(environ: Mapping[str, str], report: Report) -> None:
    """Build the language hosts of YAML, TypeScript and Go, which an installed Pulumi has."""
    if installed_pulumi(environ, report) is None:
        for program in known_programs("languages").values():
            ensure_built(program, cache_root(environ), report)


def language_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of the language hosts that are built."""
    found = (one.binary(cache_root(environ)) for one in known_programs("languages").values())
    return [binary.parent for binary in found if binary.exists()]


def needed(environ: Mapping[str, str], report: Report) -> list[Program]:
    """Return the programs that must come from the cache."""
    programs = known_programs()
    if installed_pulumi(environ, report) is None:
        return [programs[CLI], programs[PROVIDER]]
    if _plugin_installed(environ, programs[PROVIDER]) or _plugins_download(environ):
        return []
    return [programs[PROVIDER]]


def installed_pulumi(environ: Mapping[str, str], report: Report) -> Path | None:
    """Return a usable `pulumi` on PATH that is not from our cache."""
    cache = cache_root(environ)
    folders = [
        folder
        for folder in environ.get("PATH", os.defpath).split(os.pathsep)
        if folder and not Path(folder).is_relative_to(cache)
    ]
    found = shutil.which("pulumi", path=os.pathsep.join(folders))
    if found is None:
        return None
    version = _version_of(found, environ)
    if version is None or not _version(VERSIONS["oldest_pulumi"]) <= version < (4,):
        oldest = VERSIONS["oldest_pulumi"]
        report(f"{found} is not used: Pulumi {oldest} or later (3.x) is required")
        return None
    return Path(found)


def exports(environ: Mapping[str, str], report: Report) -> dict[str, str]:
    """Return the variables to set. Empty if the machine has everything installed."""
    programs = {program.name: program for program in needed(environ, report)}
    cache = cache_root(environ)
    for program in programs.values():
        if not program.binary(cache).exists():
            raise ToolchainError(
                f"{program.title} is neither installed nor built yet. Run `make toolchain`."
            )
    variables: dict[str, str] = {}
    if CLI in programs:
        variables |= _cli_variables(programs[CLI].binary(cache).parent, environ)
    if PROVIDER in programs:
        variables["PULUMI_HOME"] = str(_home_with_plugin(programs[PROVIDER], cache))
    return variables


def _cli_variables(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    path = environ.get("PATH", os.defpath).split(os.pathsep)
    own = list(map(str, [folder, *language_folders(environ)]))
    variables = {
        "PATH": os.pathsep.join([*own, *(other for other in path if other not in own)]),
        # Both need Pulumi's own sites, and would wait seconds before they fail.
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }
    interpreter = ROOT / ".venv" / "bin" / "python"
    if interpreter.exists():
        variables["PULUMI_PYTHON_CMD"] = str(interpreter)
    return variables


def _home_with_plugin(provider: Program, cache: Path) -> Path:
    """Return a PULUMI_HOME in the cache with the provider, so that ~/.pulumi is never changed.

    The engine ignores links to folders, so the folder is real and only the program is a link.
    """
    home = cache / "home"
    plugin = home / _plugin_path(provider)
    target = provider.binary(cache)
    plugin.parent.mkdir(parents=True, exist_ok=True)
    if not plugin.is_symlink() or plugin.readlink() != target:
        fresh = plugin.with_name(f"{plugin.name}.{os.getpid()}")
        fresh.symlink_to(target)
        fresh.replace(plugin)
    return home


def _plugin_installed(environ: Mapping[str, str], provider: Program) -> bool:
    home = environ.get("PULUMI_HOME") or "~/.pulumi"
    return (Path(home).expanduser() / _plugin_path(provider)).exists()


def _plugin_path(provider: Program) -> Path:
    kind_and_name = provider.name.removeprefix("pulumi-")
    return Path("plugins", f"{kind_and_name}-v{provider.version}", provider.name)


def _plugins_download(environ: Mapping[str, str]) -> bool:
    switched_off = environ.get("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "")
    return switched_off.lower() not in {"1", "true"}


def _version_of(pulumi: str, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    quiet = {**environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        answer = subprocess.run(
            [pulumi, "version"], env=quiet, check=False, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v?(\d+\.\d+\.\d+)", answer.stdout)
    return _version(found.group(1)) if found else None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
