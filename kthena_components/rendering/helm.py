"""Renders a copy of a Helm chart with helm.

It is a copy because helm follows all links, and renders nothing if a dependency is missing in
charts/. Dependencies in the same checkout are copied there. Others are left out, and named in a
note. Helm fetches nothing and asks no cluster. It skips the chart's JSON schema, which may contain
addresses.
Source: helm v3.19.0, pkg/chart/loader/directory.go, pkg/action/install.go and dependency.go.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import yaml

from kthena_components.core.naming import HELM_RELEASE
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import MOST_BYTES, Unreadable
from kthena_components.reading.folders import CHART, is_of_git
from kthena_components.reading.layout import Chart
from kthena_components.reading.settings import parse_kube_map, read_below
from kthena_components.rendering.isolation import Cage

PROGRAMS = ("helm",)
KUBERNETES = "1.34.0"
"""The release of Kubernetes for templates; pod templates are checked against the same one."""
_SERVED = {
    "apps/v1": "DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "StorageClass",
}
"""Kinds that every cluster of that release has. Without a cluster, Helm knows no kinds of versions,
so `.Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget"` would be false.
Source: helm v3.19 pkg/chartutil/capabilities.go allKnownVersions; pkg/action/action.go
GetVersionSet, which asks a cluster for the kinds, too."""
_OPTIONS = (
    *("--kube-version", KUBERNETES, "--skip-schema-validation", "--include-crds"),
    *(
        f"--api-versions={group}/{kind}"
        for group, kinds in _SERVED.items()
        for kind in kinds.split()
    ),
)
RELEASE = HELM_RELEASE
_MOST_FILES, _DEEPEST = 20_000, 8
_LOCAL = "file://"
_NULL = "\0"
_SUBCHARTS = "charts"
_HINT = " Use --debug flag to render out invalid YAML"
_SOURCE = regex(r"# Source: ([^/\s]+)/(\S.*)")
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Valid names of a dependency: the name becomes a folder."""
_SKIPPED = frozenset({".git"})


class CopyError(ValueError):
    """A chart cannot be copied. The text is the reason."""


@dataclass(slots=True)
class Copied:
    """A copy of a chart, outside the checkout."""

    chart: Chart
    folder: Path
    left_out: list[str] = field(default_factory=list)
    """Names of missing dependencies."""
    _placed: dict[str, str] = field(default_factory=dict)
    """The original folder of each folder in the copy."""
    _files: int = 0
    _bytes: int = 0

    def make(self) -> None:
        """Copy the chart and its dependencies.

        Raises:
            CopyError: The chart is too large, or has a link that leads out of the checkout.
        """
        try:
            self._copy(os.path.realpath(self.chart.folder), Path(), 0)
        except OSError as error:
            raise CopyError(f"it cannot be copied: {error.strerror}") from error

    def render(self, program: str, values: str, cage: Cage, output: Path) -> str:
        """Render the copy. Returns the error; empty if helm succeeded.

        Args:
            program: Path of helm.
            values: A file with other values, or an empty string.
            output: The file for the objects.
        """
        named = ("--values", self.at(values)) if values else ()
        return self.render_with(program, named, cage, output)

    def at(self, file: str) -> str:
        """Return the path of the copy of a file in the chart."""
        return str(self.folder / os.path.relpath(file, self.chart.folder))

    def render_with(
        self, program: str, options: Iterable[str], cage: Cage, output: Path, name: str = ""
    ) -> str:
        """Render the copy with options. Returns the error; empty if helm succeeded.

        Args:
            program: Path of helm.
            options: Further options, each with its value in the same word where a file states it.
            output: The file for the objects.
            name: A valid name of a release, or an empty string.
        """
        words = ("template", name or RELEASE, str(self.folder))
        command = [program, *words, *_OPTIONS, *options]
        return cage.run(command, output).removesuffix(_HINT)

    def source_of(self, comment: str) -> str | None:
        """Return the real path of the template that a comment by helm names, or else None."""
        match = _SOURCE.fullmatch(comment)
        if match is None:
            return None
        path = Path(match[2])
        for above in path.parents:
            if (origin := self._placed.get(str(above))) is not None:
                return os.path.realpath(Path(origin, path.relative_to(above)))
        return None

    def _copy(self, source: str, inside: Path, depth: int) -> None:
        """Copy the files of one chart, and its dependencies into charts/."""
        self._placed[str(inside)] = source
        target = self.folder / inside
        for file, at in self._files_of(source):
            place = target / at
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        text = read_below(target / CHART, self.folder)
        content = text if isinstance(text, Unreadable) else parse_kube_map(text, CHART)
        if not isinstance(content, Unreadable):  # else helm reports the error
            self._depend(content, source, inside, depth)

    def _files_of(self, source: str) -> Iterator[tuple[str, Path]]:
        """Yield the files of a folder with the paths of their copies. Follows links."""
        waiting = [(source, Path(), frozenset({source}))]
        while waiting:
            folder, at, above = waiting.pop()
            with os.scandir(folder) as scanned:
                entries = list(scanned)
            for entry in entries:
                real = os.path.realpath(entry.path)
                if entry.is_symlink() and not Path(real).is_relative_to(self.chart.boundary):
                    raise CopyError(f"{at / entry.name} is a link that leads out of the checkout")
                if is_of_git(real, str(self.chart.boundary)) and entry.name not in _SKIPPED:
                    raise CopyError(f"{at / entry.name} is a link to the data of git")
                if Path(real).is_dir():
                    self._count(0)
                    if entry.name not in _SKIPPED and real not in above:
                        waiting.append((real, at / entry.name, above | {real}))
                elif Path(real).is_file():
                    self._count(Path(real).stat().st_size)
                    yield real, at / entry.name

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > _MOST_FILES or self._bytes > MOST_BYTES:
            limit = f"{_MOST_FILES:,} files and {MOST_BYTES // 2**20} MiB"
            raise CopyError(f"the chart is larger than {limit}")

    def _depend(self, content: Mapping[str, Any], source: str, inside: Path, depth: int) -> None:
        """Copy dependencies in the checkout into charts/, and delete the others in Chart.yaml."""
        stated = sequence(content.get("dependencies"))
        kept: list[Any] = []
        for item in stated:
            name, where = mapping(item).get("name"), mapping(item).get("repository")
            if not isinstance(name, str) or self._is_there(name, inside):
                kept.append(item)
                continue
            local = self._local(where, source) if _NAME.fullmatch(name) else None
            if local is None or depth >= _DEEPEST:
                self.left_out.append(name)
                continue
            self._copy(local, inside / _SUBCHARTS / name, depth + 1)
            alias = mapping(item).get("alias")
            if isinstance(alias, str):
                self._placed[str(inside / _SUBCHARTS / alias)] = local
            kept.append(item)
        if len(kept) < len(stated):
            less = yaml.safe_dump({**content, "dependencies": kept}, sort_keys=False)
            (self.folder / inside / CHART).write_text(less)

    def _is_there(self, name: str, inside: Path) -> bool:
        folder = self.folder / inside / _SUBCHARTS
        archives = folder.glob("*.tgz")
        return (folder / name / CHART).is_file() or any(
            archive.name.startswith(f"{name}-") for archive in archives
        )

    def _local(self, where: object, source: str) -> str | None:
        """Return the folder of a dependency in the checkout, or else None."""
        if not isinstance(where, str) or not where.startswith(_LOCAL) or _NULL in where:
            return None
        real = os.path.realpath(Path(source, where.removeprefix(_LOCAL)))
        inside = Path(real).is_relative_to(self.chart.boundary)
        return real if inside and Path(real, CHART).is_file() else None
