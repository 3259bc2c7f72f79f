"""The examples and stacks as projects, with changeable sizes and backend.

It edits a copy of the project as a user would: the stack file, or the program's text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pulumi.lives import NEW_IMAGE, OWN, TOKEN, replace_images
from tests.support.engine import ROOT, Stack

_SERVING = re.compile(r"(ModelServing\(\s*(?:\"chat\"|manifest\[\S+),\s*\{)")
_PARTS = re.compile(r"((?:ServingGroup|Role)\(\"\w+\", \{)")
GPUS = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The properties of a project, and its expected number of pods."""

    name: str
    backends: tuple[str, ...] = ("native", "kthena")
    groups: int = 2
    """Initial number of groups. More than one lets an update keep one available."""
    scaled: bool = True
    """Whether the number of groups can change."""
    engines: int = 1
    """Engines per group of the role that is scaled."""
    pods: int = 2
    """Pods per engine."""
    others: int = 0
    """Pods of other roles in each group."""
    role: str = '"name": "serve",'
    """The program's text at the scaled role, where the number of engines is inserted."""
    budget: int = 1
    """Groups that may be unavailable during an update."""
    by_role: bool = False
    """Whether it is updated role by role. Kthena then ignores the budget of groups."""
    stated: tuple[str, ...] = ()
    """The program's text for what each run sets itself."""
    racks: dict[str, str] = field(default_factory=dict)
    """Rack by node, if each group must stay in one rack. The cluster has only these nodes."""

    @property
    def source(self) -> Path:
        """The folder of the program."""
        example = ROOT / "examples" / self.name
        return example if example.exists() else ROOT

    @property
    def is_stack(self) -> bool:
        """Whether it is a stack file, not a program."""
        return self.source == ROOT


PROJECTS = (
    Project(name="dev"),
    Project(name="staging", backends=("kthena",), engines=2),
    Project(name="ten-lines", groups=3, budget=2),
    Project(name="kthena-templates", engines=2, role='role["replicas"]'),
    Project(name="prefill-decode", others=5, role='"name": "decode",', by_role=True),
    Project(name="leader-worker-set", backends=("lws",),
            stated=('"backend": "lws",', '"replicas": 2,', '"rollout_strategy": rollout,')),
    Project(name="secret-token", pods=1),
    Project(name="single-role", backends=("native",), groups=1, scaled=False, others=1),
    Project(name="prod", racks={f"gpu-{r}-{n}": f"rack-{r}" for r in (1, 2) for n in range(1, 5)}),
    Project(name="hypernodes-and-queue", groups=1, scaled=False,
            racks={f"gpu-{n}": f"r{(n + 1) // 2}" for n in range(1, 5)}),
)  # fmt: skip
"""staging has restart_grace_period_seconds, and single-role has parts of a native serving."""


@dataclass(slots=True, kw_only=True)
class Copy:
    """A copied project with one namespace and one backend."""

    project: Project
    backend: str
    namespace: str
    stack: Stack
    text: str = ""
    """The text of a program, with the current image."""
    tier: str = "rack"
    """Name of the tier for a stack's groups and engines, if its nodes have racks."""

    @classmethod
    def make(
        cls, project: Project, backend: str, namespace: str, folder: Path, kubeconfig: Path
    ) -> "Copy":
        """Copy a project, with a kubeconfig for its cluster."""
        name = project.name if project.is_stack else "dev"
        folder.mkdir()
        stack = Stack.make(project.source, name, folder, {"KUBECONFIG": str(kubeconfig)})
        copy = cls(project=project, backend=backend, namespace=namespace, stack=stack)
        copy.text = copy._program.read_text()
        if project.is_stack:
            stack.change(lambda config: config.update({f"{OWN}output": "cluster"}))
        else:
            stack.change(lambda config: config.update({"kubernetes:namespace": namespace}))
        if project.name in {"prod", "secret-token"}:
            stack.set_secret("hf_token", TOKEN)
        return copy

    @property
    def _program(self) -> Path:
        return self.stack.project / "__main__.py"

    def write(self, groups: int, engines: int) -> None:
        """Write the sizes into the copy."""
        if self.project.is_stack:
            self.stack.change(self._settings(groups, engines))
        else:
            self._program.write_text(self._changed(groups, engines))

    def renew(self) -> None:
        """Write another image into the copy."""
        replace_images(self.stack)
        for old, new in NEW_IMAGE.items():
            self.text = self.text.replace(old, new)

    @property
    def _rollout(self) -> dict[str, Any]:
        if self.project.by_role:
            return {"type": "RoleRollingUpdate"}
        return {"rolling_update_configuration": {"max_unavailable": self.project.budget}}

    def _settings(self, groups: int, engines: int) -> Callable[[dict[str, Any]], None]:
        def edit(config: dict[str, Any]) -> None:
            (serving,) = config[f"{OWN}servings"]
            serving |= {"namespace": self.namespace, "backend": self.backend, "replicas": groups}
            serving["rollout_strategy"] = self._rollout
            if self.project.racks:
                policy = {"mode": "hard", "highest_tier_name": self.tier}
                serving["network_topology"] = {"group_policy": policy, "role_policy": dict(policy)}
            serving["roles"][0]["replicas"] = engines
            for secret in config.get(f"{OWN}secrets", []):
                secret["namespace"] = self.namespace
            for queue in config.get(f"{OWN}queues", []):
                queue["capability"] = {GPUS: 64}  # room for a third group

        return edit

    def _changed(self, groups: int, engines: int) -> str:
        place = f'"namespace": "{self.namespace}", '
        sizes = f'"backend": "{self.backend}", "replicas": {groups}, '
        sizes += f'"rollout_strategy": {self._rollout!r}'
        text = self.text.replace('"backend": "kthena", ', "")
        for stated in self.project.stated:
            text = text.replace(stated, "")
        text = _SERVING.sub(rf"\1{place}{sizes}, ", text)
        text = _PARTS.sub(rf"\1{place}", text)
        role = self.project.role
        stated = f'{role} "replicas": {engines},' if role.endswith(",") else str(engines)
        return text.replace(role, stated)
