"""`python -m toolchain.engine_metrics`: read which metrics releases of the engines publish.

Downloads the oldest and the newest release in the tables of options, and some between them, and
finds the metrics that they define. Nothing is run. Tests read the file: each query of a dashboard
finds a metric in each of these releases.
"""

import ast
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pypi_simple import PyPISimple

from toolchain.engine_flags.releases import Engine, fetch, published
from toolchain.programs import ROOT

FILE = ROOT / "tests" / "systems" / "prometheus" / "engine_metrics.json"
TABLES = ROOT / "kthena_components" / "core" / "engines" / "tables"
BETWEEN: Mapping[str, tuple[str, ...]] = {
    "vllm": ("0.8.5", "0.9.2", "0.10.2", "0.11.0", "0.12.0"),
    "sglang": ("0.5.5",),
}
"""Releases near which names have changed, and one in the middle."""
_KINDS = ("counter", "gauge", "histogram")


def main() -> int:
    """Write the file anew."""
    found: dict[str, Any] = {}
    with PyPISimple() as index, tempfile.TemporaryDirectory() as folder:
        for name in BETWEEN:
            versions = releases_of(name)
            engine = Engine(name=name, package=name, first=versions[0])
            offered = published(engine, index)
            for version in versions:
                root = Path(folder) / f"{name}-{version}"
                root.mkdir()
                source = fetch(engine, offered[version], index, root)
                metrics = metrics_in(root, f"{name}:")
                print(f"{name} {version}: {len(metrics)} metrics", file=sys.stderr, flush=True)
                release = {"file": source.file, "sha256": source.sha256, "metrics": metrics}
                found.setdefault(name, {})[version] = release
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def releases_of(engine: str) -> tuple[str, ...]:
    """Return the releases to read, oldest first."""
    table = json.loads((TABLES / f"{engine}.json").read_text())
    known = [str(release["version"]) for release in table["releases"]]
    return (known[0], *BETWEEN[engine], known[-1])


def metrics_in(root: Path, prefix: str) -> dict[str, str]:
    """Find the metrics that a source defines, as Prometheus shows them, each with its kind."""
    files = (path for path in sorted(root.rglob("*.py")) if prefix in path.read_text("utf-8"))
    return dict(sorted(metric for path in files for metric in _defined(path, prefix)))


def _defined(path: Path, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the metrics that are made by calls such as `Counter(name="vllm:…")`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        made = ast.unparse(node.func).lower()
        kind = next((kind for kind in _KINDS if kind in made), None)
        stated = [word.value for word in node.keywords if word.arg == "name"] or node.args[:1]
        name = stated[0].value if stated and isinstance(stated[0], ast.Constant) else None
        if kind and isinstance(name, str) and name.startswith(prefix):
            # The client of Prometheus adds the end that each counter has.
            yield f"{name.removesuffix('_total')}_total" if kind == "counter" else name, kind


if __name__ == "__main__":
    sys.exit(main())
