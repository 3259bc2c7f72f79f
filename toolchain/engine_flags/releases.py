"""Lists the published releases of an engine, and downloads their sources."""

import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.version import Version
from pypi_simple import DistributionPackage, PyPISimple

from toolchain.engine_flags.tables import Source

_KEPT = (".py", ".json")
_KINDS = ("sdist", "wheel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine, and the releases in its table."""

    name: str
    """The name of the project on the Python Package Index, and of the table's file."""
    first: str
    """The oldest release in the table."""
    package: str
    """The folder of its Python package."""
    only_minors: bool = False
    """Whether to read only the newest patch of each minor release."""


def published(engine: Engine, index: PyPISimple) -> Mapping[str, DistributionPackage]:
    """Return one distribution per release, oldest first: the source, or a wheel."""
    found: dict[Version, DistributionPackage] = {}
    for kind in _KINDS:
        for package in index.get_project_page(engine.name).packages:
            if package.package_type != kind or not package.version or package.is_yanked:
                continue
            version = Version(package.version)
            if version >= Version(engine.first) and not version.is_prerelease:
                found.setdefault(version, package)
    newest = {version.release[:2]: version for version in sorted(found)}
    kept = newest.values() if engine.only_minors else sorted(found)
    return {str(version): found[version] for version in kept}


def fetch(engine: Engine, package: DistributionPackage, index: PyPISimple, folder: Path) -> Source:
    """Download a distribution, verify it, and unpack its Python package into a folder.

    This builds and runs nothing, and unpacks only text files of the package.
    """
    file = folder / package.filename
    index.download_package(package, file, verify=True)
    for path, content in _members(file):
        parts = PurePosixPath(path).parts
        if engine.package in parts and ".." not in parts:
            target = folder.joinpath(*parts[parts.index(engine.package) :])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    file.unlink()
    digest = package.digests["sha256"]
    return Source(version=str(package.version), file=package.filename, sha256=digest)


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            yield from (
                (name, wheel.read(name)) for name in wheel.namelist() if name.endswith(_KEPT)
            )
        return
    with tarfile.open(file) as archive:
        for member in archive:
            wanted = member.isfile() and member.name.endswith(_KEPT)
            content = archive.extractfile(member) if wanted else None
            if content is not None:
                yield member.name, content.read()
