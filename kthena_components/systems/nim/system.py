"""NVIDIA's NIM operator: NIMService, and the NIMServices of a NIMPipeline."""

from kthena_components.systems.contract import Kind, Restart, System
from kthena_components.systems.nim.facts import facts
from kthena_components.systems.nim.view import GROUP, PIPELINE, SERVICE, read_nims

_MADE = "the operator writes the pods of a NIM"

SYSTEM = System(
    name="nim",
    title="NIM operator",
    kinds=tuple(
        Kind(
            group=GROUP,
            name=name,
            view=read_nims,
            facts=facts,
            not_whole="its image starts a program of NVIDIA's own, for which the package writes no "
            "command line",
            restarts=Restart(
                paths=r"spec\b.*\b(?:args|command|env|image|resources)\b",
                how="the operator changes the Deployment or LeaderWorkerSet, and pods restart",
            ),
            without={"pods": _MADE, "templates": _MADE},
        )
        for name in (SERVICE, PIPELINE)
    ),
)
