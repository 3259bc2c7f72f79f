"""Variables that controllers add to containers, beside the env of a template.

The one list of them. A test compares it with what the systems say that their controllers tell
the pods (`tells` of a Kind).
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from kthena_components.core.values.regex import regex

_OF_LWS = ("LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX")
_OF_TPU = ("TPU_NAME", "TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID")
_SET_BY: Mapping[str, tuple[str, ...]] = {
    "the ModelServing controller": ("ENTRY_ADDRESS", "GROUP_SIZE", "WORKER_INDEX"),
    "LeaderWorkerSet": _OF_LWS,
    "LeaderWorkerSet on TPUs": _OF_TPU,
    "KServe": (
        *("PIPELINE_PARALLEL_SIZE", "RAY_NODE_COUNT", "REQUEST_GPU_COUNT", "TENSOR_PARALLEL_SIZE"),
        *("HEAD_SVC", "MODEL_DIR", "MODEL_NAME", "WORKER_SVC"),
    ),
    "llm-d": ("DP_SIZE", "DP_SIZE_LOCAL", "TP_SIZE"),
    "RoleBasedGroup": (
        *("RBG_LWP_GROUP_SIZE", "RBG_LWP_LEADER_ADDRESS", "RBG_LWP_WORKER_INDEX"),
        "RBG_ROLE_INDEX",
    ),
    "Grove": ("GROVE_PCLQ_POD_INDEX", "GROVE_PCSG_TEMPLATE_NUM_PODS"),
    "AIBrix": (
        *("POD_GROUP_INDEX", "POD_GROUP_SIZE", "STORM_SERVICE_NAME"),
        *("ROLE_NAME", "ROLE_REPLICA_INDEX"),
    ),
    "KAITO": ("POD_INDEX",),
    "a plugin of a Volcano Job": ("VC_TASK_INDEX", "VK_TASK_INDEX"),
    "a Job": ("JOB_COMPLETION_INDEX",),
}
"""Controllers with the names of their variables.

Not RANK, MASTER_ADDR and the like: a PyTorchJob and the plugin pytorch of a Volcano Job set them,
and so do scripts and images of pods that no such controller creates.
"""
_PREFIXES: Mapping[str, str] = {
    "GROVE_": "Grove",
    "JOBSET_": "JobSet",
    "LWS_": "LeaderWorkerSet",
    "PET_": "a training Job",
    "PODSET_NAME": "AIBrix",
    "RBG_": "RoleBasedGroup",
    "ROLESET_": "AIBrix",
    "VC_": "a plugin of a Volcano Job",
    "VK_": "a plugin of a Volcano Job",
}
"""Beginnings of names, some of which contain those of tasks."""
_BEGINNINGS = tuple(_PREFIXES)
_COMPLETE: Mapping[str, frozenset[str]] = {
    "LWS_": frozenset(_OF_LWS),
    "GROVE_": frozenset(
        {
            *("GROVE_PCS_NAME", "GROVE_PCS_INDEX", "GROVE_PCSG_NAME", "GROVE_PCSG_INDEX"),
            *("GROVE_PCLQ_NAME", "GROVE_PCLQ_POD_INDEX", "GROVE_PCSG_TEMPLATE_NUM_PODS"),
            "GROVE_HEADLESS_SERVICE",
        }
    ),
}
"""Beginnings of which all names are known: lws api/leaderworkerset/v1/leaderworkerset_types.go, and
grove operator/api/common/constants/constants.go."""
_APPENDED = frozenset({"the ModelServing controller", "a plugin of a Volcano Job", "a Job"})
"""Controllers that add their variables behind those of the template: kthena
pkg/model-serving-controller/utils/utils.go addEnvVars; volcano pkg/controllers/job/plugins/svc and
env, OnPodCreate; kubernetes pkg/controller/job/indexed_job_utils.go
addCompletionIndexEnvVariable."""
_NUMBER = regex(r"INDEX|TPU_WORKER_ID")
"""Names of variables that number the pods."""


_NAMED = {name: by for by, names in _SET_BY.items() for name in names}
_ALIKE = 0.84


def misspelled(name: str, known: Iterable[str] = tuple(_NAMED)) -> str | None:
    """Return the variable that a name has with a letter or two wrong, missing or too many.

    The first words of both are the same, because NODE_INDEX is not POD_INDEX.
    """
    return None if name in _NAMED else _nearest(name, tuple(known))


@cache
def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    own = name.partition("_")[0]
    like = [k for k in known if k.partition("_")[0] == own and abs(len(k) - len(name)) <= 1]
    near = [] if name in known else get_close_matches(name, like, n=1, cutoff=_ALIKE)
    return near[0] if near else None


def is_of_none(name: str) -> bool:
    """Return whether a name has the beginning of a controller's variables, and is none of them."""
    return any(name.startswith(begin) and name not in own for begin, own in _COMPLETE.items())


def follows_env(name: str) -> bool:
    """Return whether a controller adds a variable behind the env of the template.

    Kubernetes then leaves a reference in that env as it is.
    """
    return name in LATE_VARIABLES and LATE_VARIABLES[name] in _APPENDED


class _Late(Mapping[str, str]):
    """Each variable with its controller. Iteration gives those that are known by their names."""

    def __getitem__(self, name: str) -> str:
        if name not in self:
            raise KeyError(name)
        begun = (by for prefix, by in _PREFIXES.items() if name.startswith(prefix))
        return _NAMED.get(name) or next(begun)

    def __contains__(self, name: object) -> bool:
        return name in _NAMED or (isinstance(name, str) and name.startswith(_BEGINNINGS))

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMED)

    def __len__(self) -> int:
        return len(_NAMED)


LATE_VARIABLES: Mapping[str, str] = _Late()
"""Variables that a controller adds to the container, with its name. Never in a template's env."""


def numbers_pods(name: str) -> bool:
    """Return whether a variable of a controller has another value in each pod."""
    return _NUMBER.search(name) is not None
