"""What the pods of a template write for their ranks, so that each has its own."""

from collections.abc import Sequence

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.remedies import set_option
from kthena_components.core.values.dataclass import dataclass

_START = "--data-parallel-start-rank"
RANKS = frozenset({"--node-rank", "--data-parallel-rank", _START})
_OF_ENGINE = ("WORKER_INDEX", "LWS_WORKER_INDEX", "RBG_LWP_WORKER_INDEX", "POD_GROUP_INDEX")
"""Variables of controllers with the number of a pod in its engine."""
_OF_TEMPLATE = ("GROVE_PCLQ_POD_INDEX", "VC_TASK_INDEX", "JOB_COMPLETION_INDEX")
"""Variables of controllers with the number of a pod among those of its template."""
_POD_INDEX = "POD_INDEX"
_LABEL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The pods of one template, which need ranks of their own."""

    option: str
    first: int
    """The rank of the first of them."""
    count: int | None
    """How many there are. None: not known."""
    step: int = 1
    """Ranks in a pod."""


def set_by(told: Sequence[str] | None, names: Sequence[str]) -> str:
    """Return the variable that a controller sets first of some; empty if it sets none."""
    stated = [own for own in told or () if own in names]
    begun = [
        name for name in names for own in told or () if own[-1:] == "_" and name.startswith(own)
    ]
    return next(iter((*stated, *begun)), "")


def own_rank(pods: Ranked, told: Sequence[str] | None) -> str:
    """Say how each pod of a template gets its rank.

    Args:
        pods: The pods.
        told: Variables that their controller sets, and beginnings of them. None: not known.
    """
    of_engine, of_template = set_by(told, _OF_ENGINE), set_by(told, _OF_TEMPLATE)
    if of_engine:
        return _from(pods, of_engine, 0 if pods.first == 0 else 1)
    if pods.count == 1:
        return set_option(pods.option, pods.first)
    if of_template:
        return _from(pods, of_template, 0)
    if told is None:
        return f"give each pod its own {pods.option}, from {pods.first}"
    taken = _from(pods, _POD_INDEX, 0)
    return f"{taken}, and set {_POD_INDEX} in env from the label {_LABEL} of a StatefulSet's pods"


def _from(pods: Ranked, name: str, begin: int) -> str:
    """Take a rank from the number of a pod. Kubernetes computes nothing, but a shell does.

    Args:
        pods: The pods.
        name: The variable with the number of each.
        begin: The number of the first of them.
    """
    rest = pods.first - begin * pods.step
    if rest == 0 and pods.step == 1:
        return set_option(pods.option, f"$({name})")
    term = name if pods.step == 1 else f"{name} * {pods.step}"
    term += f" {'+' if rest > 0 else '-'} {abs(rest)}" if rest else ""
    return f"start it in a shell with {pods.option} $(({term}))"


def workers_of(
    engine: EngineFacts, option: str, command: CommandFacts, first: int | None = None
) -> Ranked:
    """Return the workers of an engine, whose ranks begin behind those of the entry.

    Args:
        engine: The engine.
        option: The option with their ranks.
        command: Their command line.
        first: Their first rank, if the entry has not as many as each of them.
    """
    step = total_of(option, command)[1]
    count = engine.pods - 1 if isinstance(engine.pods, int) else None
    return Ranked(option=option, first=first or step, count=count, step=step)


def total_of(option: str, command: CommandFacts) -> tuple[int | None, int]:
    """Return how many ranks a command line counts, if that is known, and how many a pod has."""
    total = command.nnodes if option == "--node-rank" else command.data
    local = command.data_local if option == _START else 1
    step = local if isinstance(local, int) and local > 0 else 1
    return (total if isinstance(total, int) else None), step
