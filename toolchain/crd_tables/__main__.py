"""`python -m toolchain.crd_tables`: bring the tables of custom resources' fields up to date.

Clones the repository of each system, reads the CRDs of its minor releases, and writes the table of
the system anew. The kinds of Kubernetes are read from its OpenAPI documents (openapi.py).
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from toolchain.crd_tables import openapi, published
from toolchain.crd_tables.releases import Release, Repository
from toolchain.crd_tables.sources import SOURCES, Source
from toolchain.crd_tables.tables import Table

SYSTEMS = Path(__file__).parents[2] / "kthena_components" / "systems"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_GITHUB = "https://github.com/{}.git"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables of the systems that are named, or of all."""
    known = [openapi.SYSTEM, *(source.system for source in SOURCES)]
    parser = argparse.ArgumentParser(prog="python -m toolchain.crd_tables", description=__doc__)
    parser.add_argument("systems", nargs="*", choices=[[], *known], metavar="SYSTEM")
    parser.add_argument(
        "--from",
        dest="url",
        default=_GITHUB,
        help="where to clone from, with {} for owner/name; default: %(default)s",
    )
    options = parser.parse_args(arguments)
    if not options.systems or openapi.SYSTEM in options.systems:
        path_of(openapi.SYSTEM).write_text(openapi.make().write())
    for source in SOURCES:
        if not options.systems or source.system in options.systems:
            with tempfile.TemporaryDirectory() as folder:
                repository = Repository.clone(
                    options.url.format(source.repository), Path(folder) / "clone"
                )
                table = make(source, repository, keep=True)
            path_of(source.system).write_text(table.write())
    return 0


def path_of(system: str) -> Path:
    """Return the path of a system's table: in its folder, or beside its module."""
    folder = SYSTEMS / system
    return folder / "crds.json" if folder.is_dir() else SYSTEMS / f"{system}.crds.json"


def make(source: Source, repository: Repository, *, keep: bool = False) -> Table:
    """Read the CRDs of every release of a system.

    Args:
        source: The system.
        repository: A clone of its repository.
        keep: Whether to keep those of the newest release in the cache.

    Raises:
        ValueError: No release has any of them: they have moved.
    """
    table = Table(source.title, source.repository, source.filled, source.unsigned)
    texts: list[bytes] = []
    for release in repository.releases(source.first, previews=source.previews):
        files, texts = _texts(source, repository, release)
        crds = [yaml.load(text, _LOADER) for text in texts]  # noqa: S506 - a safe one
        if crds:
            table.add(release, files, crds)
            said = f"{source.title} {release.version}: {len(crds)} kinds, {len(table.types)} types"
            print(said, file=sys.stderr, flush=True)
    if not table.releases:
        raise ValueError(f"no release of {source.title} has its CRDs: they have moved")
    for text in texts if keep else ():
        published.keep(text)
    return table


def _texts(
    source: Source, repository: Repository, release: Release
) -> tuple[dict[str, str], list[bytes]]:
    """Return the SHA-256 of each CRD of a release, and what the files hold."""
    files: dict[str, str] = {}
    texts = []
    for name in source.files:
        found = repository.read(release, (f"{at}/{name}.yaml" for at in source.folders))
        if found is not None:
            path, text = found
            files[path] = published.digest_of(text)
            texts.append(text)
    return files, texts


if __name__ == "__main__":
    sys.exit(main())
