"""Checks the workers of a ModelBooster, from which Kthena creates a ModelServing.

Source: volcano-sh/kthena pkg/model-booster-controller, pkg/apis/workload/v1alpha1.
"""

from collections.abc import Iterator

from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    count_of,
    each_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import mapping, require_known, text, unknown_in, whole
from kthena_components.core.values.unknown import known
from kthena_components.systems.kthena.rules.entry_names_version_image_template import check_image
from kthena_components.systems.kthena.view import Backend, Booster, Worker
from kthena_components.systems.system import Rule

_PLAIN, _SPLIT = "vLLM", "vLLMDisaggregated"
_PORT = 8000
"""The port of the probes and of the ModelServer that Kthena creates."""
_SHORTEST = 10**6
"""From this number on Go writes a float with an exponent."""


def _backends(view: Booster) -> Iterator[tuple[Backend]]:
    yield from ((backend,) for backend in view.backends)


def _workers(view: Booster) -> Iterator[tuple[Worker]]:
    yield from ((worker,) for backend in view.backends for worker in backend.workers)


@each_of(_backends)
def booster_workers(backend: Backend) -> Iterator[Finding]:
    """A ModelBooster has the workers of its type, each with 1 or more pods.

    A vLLM backend has exactly one worker, of type server; a vLLMDisaggregated one has prefill and
    decode, each with one pod: more pods are ignored there. Kthena 1.0 creates a role with -1
    workers if pods is left out.

    Pass: type vLLM with 1 worker server of 2 pods; vLLMDisaggregated with prefill and decode.
    Fail: type vLLM with 2 workers; type SGLang; pods 2 of a prefill worker (advisory).
    Level: mandatory; advisory for pods.
    Source: volcano-sh/kthena pkg/model-booster-controller/webhook/model_validator.go
    validateBackendWorkerTypes, convert/model_serving.go; model_booster_types.go ModelBackendType.
    """
    at, kind = f"{backend.path}.type", backend.kind
    require_known(at, kind)
    if kind in (_PLAIN, _SPLIT):
        yield from _types(backend)
        for worker in backend.workers:
            yield from _pods(worker, split=kind == _SPLIT)
    else:
        seen = f"is {display(kind)}, and Kthena only supports {_PLAIN} and {_SPLIT}"
        yield refuse(at, seen, f"write {_PLAIN}, or use a ModelServing")


@part_of_rule
def _types(backend: Backend) -> Iterator[Finding]:
    """Check the number and the types of a backend's workers."""
    at = f"{backend.path}.workers"
    require_known(at, backend.fields.get("workers"))
    # The API server drops a null, and writes the default.
    stated = [(worker.path, worker.fields.get("type")) for worker in backend.workers]
    types = [(path, "server" if kind is None else kind) for path, kind in stated]
    gaps = [(path, gap) for path, kind in types if (gap := unknown_in(kind))]
    for path, gap in gaps:
        yield not_checked(f"{path}.type", gap)
    if backend.kind == _PLAIN and len(types) != 1:
        seen = f"has {count_of(len(types), 'worker')}, and a backend of type {_PLAIN} has exactly 1"
        yield refuse(at, seen, "write one worker, and its pods and replicas")
    wanted = ("server",) if backend.kind == _PLAIN else ("prefill", "decode")
    for path, kind in types:
        if not unknown_in(kind) and kind not in wanted:
            seen = f"is {display(kind)}, but workers of a {backend.kind} are {' and '.join(wanted)}"
            yield refuse(f"{path}.type", seen, f"write {' or '.join(wanted)}")
    if backend.kind == _SPLIT and not types:
        seen = f"has no workers, and {_SPLIT} needs prefill and decode"
        yield refuse(at, seen, "add a worker of each of these types")
        return
    for missing in wanted if backend.kind == _SPLIT and not gaps else ():
        if missing not in [kind for _, kind in types]:
            seen = f"has no worker of type {missing}, and {_SPLIT} needs prefill and decode"
            yield refuse(at, seen, f"add a worker of type {missing}")


@part_of_rule
def _pods(worker: Worker, *, split: bool) -> Iterator[Finding]:
    """Check `pods` of a worker: 1.0 creates pods - 1 workers, and ignores it in a split backend."""
    at, given = f"{worker.path}.pods", worker.fields.get("pods")
    pods = known(whole(given), at)
    if split and pods is not None and pods > 1:
        seen = f"is {display(pods)}, but Kthena creates 1 pod for each worker of a {_SPLIT}"
        yield advise(at, f"{seen}, and ignores it", write(1))
    elif not split and (given is None or pods == 0):
        seen = f"is {display(given)}, and Kthena 1.0 creates pods - 1 = -1 workers for it"
        yield advise(at, seen, "write 1, or as many pods as the engine has")


@each_of(_workers)
def booster_config(worker: Worker) -> Iterator[Finding]:
    """A worker's config becomes a valid command line of vLLM.

    Kthena writes `--key value`, and numbers as Go prints floats: from 1000000 on with an exponent,
    which vLLM does not read as an integer. The value of a switch is an empty string: true or false
    would become a word after the flag, with another meaning. The probes of the pods and the
    ModelServer that Kthena creates have port 8000, whatever the config says.

    Pass: max-model-len "1048576"; trust-remote-code ""; port 8000.
    Fail: max-model-len 1048576, written as 1.048576e+06; trust-remote-code true (advisory); port
    9000.
    Level: mandatory for numbers and ports; advisory for switches.
    Source: volcano-sh/kthena pkg/model-booster-controller/utils/template.go
    ConvertVLLMArgsFromJson; Go's fmt, verb %v; convert/templates/vllm.yaml and vllm-pd.yaml
    (readinessProbe), convert/model_server.go (WorkloadPort).
    """
    path, config = f"{worker.path}.config", worker.fields.get("config")
    require_known(path, config)
    for key, value in mapping(config).items():
        yield from _setting(f"{path}.{key_text(key)}", value)
        if key == "port":
            yield from _port(f"{path}.port", value)


@part_of_rule
def _setting(path: str, value: object) -> Iterator[Finding]:
    """Report a value of config that vLLM reads otherwise than it is written."""
    number = known(whole(value), path)
    if isinstance(value, bool):
        word = str(value).lower()
        yield Finding(
            path=path,
            seen=f"is {word}, so the command line has the word {word} after the flag, and vLLM's "
            "switches take no value",
            remedy='write ""'
            if value
            else either(remove(), "write its no- form with an empty string"),
            level=Level.ADVISORY,
        )
    elif number is not None and abs(number) >= _SHORTEST:
        shown = display(number)
        seen = (
            f"is {shown}, which Kthena writes with an exponent, and vLLM does not read it as an "
            "integer"
        )
        yield Finding(
            path=path, seen=seen, remedy=write(str(shown), f'write "{shown}", with quotes')
        )


@part_of_rule
def _port(path: str, value: object) -> Iterator[Finding]:
    number = known(whole(value), path)
    port = number if number is not None else known(text(value), path)
    if port is not None and str(port) != str(_PORT):
        seen = f"is {display(port)}, but Kthena probes the pods and sends requests at port {_PORT}"
        yield refuse(path, seen, remove())


@each_of(_workers)
def booster_image(worker: Worker) -> Iterator[Finding]:
    """A worker's image is not blank and contains no space.

    Pass: vllm/vllm-openai:v0.33.0; no image.
    Fail: a space before the tag, or after it.
    Level: mandatory. Kthena's webhook rejects it.
    Source: Kthena v1.0.0 pkg/model-booster-controller/webhook/model_validator.go
    validateWorkerImages, validateImageField.
    """
    yield from check_image(f"{worker.path}.image", worker.fields.get("image"))


BOOSTER_RULES: tuple[Rule[Booster], ...] = (booster_workers, booster_config, booster_image)
