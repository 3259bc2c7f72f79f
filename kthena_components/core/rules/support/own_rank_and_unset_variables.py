"""What the pods of a template write for their ranks, and variables which nothing sets."""

from collections.abc import Iterable, Sequence

from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.placeholders import (
    LATE_VARIABLES,
    follows_env,
    is_of_none,
    misspelled,
)
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.naming import POD_INDEX, label_field
from kthena_components.core.remedies import Remedy, fixes_of, set_option, together
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.images import read_image
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    CommandSubstitution,
    NotSet,
    OfController,
    SetLater,
    Varying,
)

_START = "--data-parallel-start-rank"
RANKS = frozenset({"--node-rank", "--data-parallel-rank", _START})
_OF_ENGINE = ("WORKER_INDEX", "LWS_WORKER_INDEX", "RBG_LWP_WORKER_INDEX", "POD_GROUP_INDEX")
"""Variables of controllers with the number of a pod in its engine."""
_OF_TEMPLATE = (
    *("GROVE_PCLQ_POD_INDEX", "VC_TASK_INDEX", "JOB_COMPLETION_INDEX"),
    "RBG_ROLE_INDEX",
)
"""Variables of controllers with the number of a pod among those of its template."""
_NUMBERS = (*_OF_ENGINE, *_OF_TEMPLATE)
_POD_INDEX = "POD_INDEX"
_REFERENCE = regex(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")


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
    alone: bool = False
    """Whether they have no leader with workers, whose pods alone are numbered in an engine."""


def set_by(controller_env: Sequence[str] | None, names: Sequence[str]) -> str:
    """Return the variable that a controller sets first of some; empty if it sets none."""
    stated = [own for own in controller_env or () if own in names]
    begun = [
        name
        for name in names
        for own in controller_env or ()
        if own[-1:] == "_" and name.startswith(own)
    ]
    return next(iter((*stated, *begun)), "")


def own_rank(pods: Ranked, facts: ServingFacts) -> str:
    """Say how each pod of a template gets its rank.

    Args:
        facts: They say how the controller of the pods numbers them.
    """
    of_template = set_by(facts.controller_env, _OF_TEMPLATE)
    of_engine = "" if pods.alone and of_template else number_in_engine(facts)
    if of_engine:
        return _from(pods, of_engine, 0 if pods.first == 0 else 1)
    if pods.count == 1:
        return set_option(pods.option, pods.first)
    if of_template:
        return _from(pods, of_template, 0)
    how, variable = facts.numbered_with
    if variable:
        own = _from(pods, variable, 0)
        return together(Remedy(how, fixes_of(how)), Remedy(own, fixes_of(own)))
    if not how and not _by_label(facts):
        return f"give each pod its own {pods.option}, from {pods.first}"
    taken = f"{_from(pods, _POD_INDEX, 0)}, and set {_POD_INDEX} in env from the label {POD_INDEX}"
    return f"{how}: {taken}" if how else taken


def number_in_engine(facts: ServingFacts) -> str:
    """Return the variable with the number of a pod in its engine; empty if nothing sets one."""
    return set_by(facts.controller_env, _OF_ENGINE)


def number_in_shell(facts: ServingFacts) -> str:
    """Return how a shell reads the number of a pod; empty if its controller tells it none."""
    if name := set_by(facts.controller_env, _NUMBERS):
        return f"${name}"
    return "${HOSTNAME##*-}" if _by_label(facts) else ""


def numbers_pods(facts: ServingFacts) -> bool:
    """Return whether the controller of an object tells its pods their numbers."""
    return bool(set_by(facts.controller_env, _NUMBERS)) or _by_label(facts)


def _by_label(facts: ServingFacts) -> bool:
    """Return whether pods have the label with their number. A component's StatefulSets have it."""
    added = facts.added_fields
    has_label = added is None or label_field(POD_INDEX) in added
    return has_label and facts.controller_env is not None and not any(facts.numbered_with)


def _from(pods: Ranked, name: str, begin: int) -> str:
    """Take a rank from the number of a pod. Kubernetes computes nothing, but a shell does.

    Args:
        name: The variable with the number of each.
        begin: The number of the first of them.
    """
    rest = pods.first - begin * pods.step
    if rest == 0 and pods.step == 1:
        return set_option(pods.option, f"$({name})")
    term = name if pods.step == 1 else f"{name} * {pods.step}"
    term += f" {'+' if rest > 0 else '-'} {abs(rest)}" if rest else ""
    return f"start the engine in a shell with {pods.option} $(({term}))"


def first_and_other(engine: EngineFacts) -> EngineFacts:
    """Return an engine with one command line for its first pod, and one for the others.

    They differ in pods of one template if its script tests the number of the pod.
    """
    entry, worker, siblings = engine.entry, engine.worker, engine.siblings
    behind = None if siblings is None else _behind_first(siblings.commands)
    if not siblings or not behind or (worker and worker.command_path != entry.command_path):
        return engine
    read = siblings.commands
    is_one = _meets_at(read[0]) == _meets_at(behind) is not None
    pods = len(read) if is_one and engine.pods == 1 else engine.pods
    worker = replace(worker or entry, command=behind)
    return replace(engine, entry=replace(entry, command=read[0]), worker=worker, pods=pods)


def _behind_first(read: Sequence[CommandFacts]) -> CommandFacts | None:
    """Return the command line of a pod behind the first one of some; None if no pod surely is.

    One template may have the pods of several engines, whose first pods meet theirs elsewhere.
    """
    if not read:
        return None
    own = _meets_at(read[0])
    others = {_meets_at(each) for each in read[1:] if _begins(each)} - {own, None}
    return next((c for c in read[1:] if not _begins(c) and _meets_at(c) not in others), None)


def _begins(command: CommandFacts) -> bool:
    """Return whether a pod surely has the first rank of an engine."""
    if command.ray_role is not None or command.headless is True:
        return command.ray_role == "head"
    nodes = command.nnodes
    if isinstance(nodes, int) and nodes > 1:
        return command.node_rank in {0, None}
    return 0 in {command.data_rank, command.data_start_rank}


def _meets_at(command: CommandFacts) -> str | None:
    """Return the host at which a pod meets the others of its engine; None if it is not known."""
    stated = next((v for key in _MEETING if (v := command.options.get(key))), command.ray_address)
    return stated.partition(":")[0] if isinstance(stated, str) else None


_MEETING = ("--master-addr", "--dist-init-addr", "--data-parallel-address")


def workers_of(
    engine: EngineFacts, option: str, command: CommandFacts, first: int | None = None
) -> Ranked:
    """Return the workers of an engine, whose ranks begin behind those of the entry.

    Args:
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


def no_value(controller_env: Iterable[str] | None, pod: PodFacts, value: object) -> str:
    """Explain which variable of a value is not set in a pod; empty if it is, or if that is unclear.

    Args:
        controller_env: Variables that the controller of the pod sets, and beginnings of them.
            None: unknown.
        value: The value, from the pod's command line.
    """
    name = getattr(value, "name", "") if isinstance(value, NotSet | OfController | Varying) else ""
    if isinstance(value, SetLater):
        return f"and {name} follows in env, so the reference to it stays as it is"
    if isinstance(value, CommandSubstitution):
        return (
            f"where the shell runs a command {name}, so it is empty: Kubernetes replaces $({name}) "
            "in command, args and env, and not in files"
        )
    if controller_env is None or not name or name in pod.stated:
        return ""
    if _sets(controller_env, name):
        stays = f"adds {name} behind env, so the reference to it there stays as it is"
        return f"and {LATE_VARIABLES[name]} {stays}" if _is_too_early(value) else ""
    if isinstance(value, NotSet):
        then = "is empty" if value.in_shell else "stays as it is"
        own = misspelled(name, controller_env)
        other = f": the controller sets {own}" if own else ""
        if not own and (near := misspelled(name, sorted(pod.stated))):
            other = f": the container's env has {near}"
        return f"and nothing sets {name}, so it {then}{other}"
    hidden = isinstance(value, OfController | Varying) and value.elsewhere
    return "" if hidden else _by_controller(controller_env, name)


def no_part(controller_env: Iterable[str] | None, pod: PodFacts, value: object, shown: str) -> str:
    """Explain which variable in a part of a value its controller does not set; empty if none.

    Args:
        controller_env: Variables that the controller of the pod sets, and beginnings of them.
            None: unknown.
        value: The value, of which one variable is known to be the controller's.
        shown: All of it, as it is written.
    """
    if controller_env is None or not isinstance(value, OfController | Varying) or value.elsewhere:
        return ""
    own = tuple(controller_env)
    wrong = (name for name in _newer(shown) if name not in pod.stated)
    by = {LATE_VARIABLES.get(each) for each in own} - {None}
    begun = (name for name in wrong if LATE_VARIABLES.get(name) in by)
    return next((_by_controller(own, name) for name in begun), "")


def may_be_newer(shown: str) -> bool:
    """Return whether a value names a variable that a newer release of a controller may set."""
    return any(misspelled(name) is None for name in _newer(shown))


def _newer(shown: str) -> list[str]:
    names = (found[1] or found[2] or found[3] for found in _REFERENCE.finditer(shown))
    return [name for name in names if is_of_none(name)]


def _by_controller(controller_env: Iterable[str], name: str) -> str:
    by, own = LATE_VARIABLES[name], misspelled(name)
    if by in {LATE_VARIABLES.get(each) for each in controller_env}:
        return f"and {by} does not set {name} in these pods" + (f", but {own}" if own else "")
    if own:
        return f"and nothing sets {name}: {by} sets {own}, in the pods that it creates"
    if is_of_none(name):
        return f"and nothing sets {name}: it is none of the variables of {by}"
    return f"but only {by} sets {name}, in the pods that it creates"


def _sets(controller_env: Iterable[str], name: str) -> bool:
    """Return whether a controller sets a variable; it sets no misspelling of its own names."""
    names = tuple(controller_env)
    if is_of_none(name) or misspelled(name, names) is not None:
        return False
    return any(name.startswith(own) for own in names)


def _is_too_early(value: object) -> bool:
    """Return whether a variable in env refers to one that a controller adds behind it."""
    late = isinstance(value, OfController | Varying) and value.in_env and not value.elsewhere
    return late and follows_env(str(getattr(value, "name", "")))


def in_order(value: object) -> str:
    """Say how a reference in an env gets its value; empty if the order is not what is wrong."""
    if isinstance(value, CommandSubstitution):
        return f"write ${value.name} in the script"
    if isinstance(value, OfController | Varying) and _is_too_early(value):
        return f"refer to {value.name} in the command line or the script, and not in env"
    if not isinstance(value, SetLater):
        return ""
    return f"move {value.name} in front of the variable in env that refers to it"


def may_be_of_image(pod: PodFacts, value: object) -> bool:
    """Return whether an image that is not an engine's own may set the variable of a value."""
    image = pod.own.image if pod.own is not None else None
    if not isinstance(value, NotSet) or isinstance(value, CommandSubstitution):
        return False
    if not value.in_shell:
        return False
    return not isinstance(image, str) or read_image(image).engine is None
