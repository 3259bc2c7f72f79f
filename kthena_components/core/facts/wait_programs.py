"""Reads what the command of a program waits for, or asks, and fails without.

Source: vishnubob/wait-for-it wait-for-it.sh; eficode/wait-for; jwilder/dockerize main.go;
groundnuty/k8s-wait-for wait_for.sh; kubectl, `wait` and `rollout status`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import read_image
from kthena_components.core.values.read import digits
from kthena_components.core.values.regex import regex

_PLACE = regex(r"(?:https?://)?([^/:\s]+)(?::(\d{1,5}))?(?:[/?].*)?")
ITSELF = regex(r"localhost|127(?:\.\d+){3}|0\.0\.0\.0|\$HOSTNAME|\$\(hostname(?: -[fi])?\)")
"""The host of a script's own pod."""
PYTHON = regex(r"python(?:3(?:\.\d+)?)?", re.ASCII)
_OPENS = regex(r"(?:urlopen|requests\.get|httpx\.get)\(\s*['\"](https?://[^'\"{}%\s]+)['\"]")
_DECIDES = regex(r"\b(?:try|suppress|def|lambda|for|while|if|and|or|prox\w*)\b")
"""Words with which Python code may go on after an error, or never ask."""
_ELSEWHERE = regex(
    r"-[a-zA-Z]*[xK].*"
    r"|--(?:proxy|preproxy|socks|retry|unix|abstract-unix|connect-to|resolve|config).*"
)
"""Options of curl that ask another server, or ask again. Short ones may be joined: -sx."""
_TAKES_NEXT = regex(r"-[a-zA-Z]*[wiqG]")
"""Options of nc whose value is the next word."""
_PAIR = regex(r"(?:[A-Za-z0-9][\w./-]*/)?[A-Za-z0-9][\w.-]*==?[\w.-]*")
_KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("deployment", "deployments", "deploy", "deployment.apps"), "Deployment"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts", "statefulset.apps"), "StatefulSet"),
    **dict.fromkeys(("job", "jobs", "job.batch"), "Job"),
    "service": "Service",
}
_NAMESPACE = ("-n", "--namespace")
_SELECTOR = ("-l", "--selector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What must be ready, of one namespace."""

    kind: str
    """pod, Service, Deployment, StatefulSet or Job."""
    name: str = ""
    labels: Mapping[str, str] | None = None
    """Labels of the pods, in place of a name."""
    namespace: str = ""
    """Empty: the namespace of the pod that waits."""

    @property
    def title(self) -> str:
        """What it waits for, as a clause."""
        if self.labels:
            shown = ",".join(f"{key}={value}" for key, value in self.labels.items())
            return f"all pods with {shown} are ready"
        if self.kind == "Service":
            return f"all pods of Service {display(self.name)} are ready"
        done = {"Job": "has ended", "pod": "is ready"}.get(self.kind, "is rolled out")
        return f"{self.kind} {display(self.name)} {done}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLoop:
    """What a script waits for."""

    host: str
    """As the script has it, with variables that are not known as $NAME."""
    port: int | None
    """None: it waits until the name of the host is in DNS, or until something is ready."""
    ready: Ready | None = None
    """What must be ready. None: a host must answer, or have a name."""

    @property
    def title(self) -> str:
        """What it waits for, as a clause."""
        if self.ready is not None:
            return self.ready.title
        return f"{self.host} is in DNS" if self.port is None else f"{self.host}:{self.port} answers"


def _of_python(words: Sequence[str]) -> WaitLoop | None:
    """Read `python3 -c "…urlopen('http://…')"`, which ends with an error if nothing answers."""
    code = words[1].replace("exit(0 if ", "exit(") if len(words) > 1 and words[0] == "-c" else ""
    urls = _OPENS.findall(code)
    return None if _DECIDES.search(code) or len(urls) != 1 else _of_url(urls)


def _of_netcat(words: Sequence[str]) -> WaitLoop | None:
    """Read the host and port of a `nc` that connects; None if it listens or states no port."""
    operands, skips = [], False
    for word in words:
        if skips or word.startswith("-"):
            skips = not skips and _TAKES_NEXT.fullmatch(word) is not None
        else:
            operands.append(word)
    listens = any(word.startswith("-") and "l" in word for word in words)
    port = digits(operands[1]) if len(operands) == len(("host", "port")) else None
    return None if listens or port is None else WaitLoop(host=operands[0], port=port)


def _of_url(words: Sequence[str]) -> WaitLoop | None:
    """Read the host and port of `curl` or `wget`; None with a proxy, or not exactly one URL."""
    if any(map(_ELSEWHERE.fullmatch, words)):
        return None
    urls = [word for word in words if word.startswith(("http://", "https://"))]
    urls = urls or [w for w in words[-1:] if ":" in w and not w.startswith("-")]
    found = _PLACE.fullmatch(urls[0]) if len(urls) == 1 else None
    if found is None:
        return None
    usual = 443 if urls[0].startswith("https") else 80
    return WaitLoop(host=found[1], port=int(found[2] or usual))


def _of_ray(words: Sequence[str]) -> WaitLoop | None:
    if words[:1] not in {("status",), ("health-check",)}:
        return None
    text = " ".join(words).replace("=", " ").split()
    at = text.index("--address") + 1 if "--address" in text else len(text)
    found = _PLACE.fullmatch(text[at]) if at < len(text) else None
    return WaitLoop(host=found[1], port=int(found[2])) if found and found[2] else None


def _of_name(words: Sequence[str]) -> WaitLoop | None:
    operands = [word for word in words if not word.startswith("-")]
    return WaitLoop(host=operands[0], port=None) if operands else None


def _of_database(words: Sequence[str]) -> WaitLoop | None:
    return _of_name(words[1:]) if words[:1] in {("hosts",), ("ahosts",)} else None


def _of_wait_for_it(words: Sequence[str]) -> WaitLoop | None:
    """Read wait-for-it, which runs what follows `--` in any case without --strict."""
    if "--" in words and not {"-s", "--strict"} & {*words[: words.index("--")]}:
        return None
    return _of_wait_for(words)


def _of_wait_for(words: Sequence[str]) -> WaitLoop | None:
    own = words[: words.index("--")] if "--" in words else words
    stated = dict(_options(own, {"-h", "--host", "-p", "--port", "-t", "--timeout"}))
    host, port = (stated.get(s) or stated.get(n) for s, n in (("-h", "--host"), ("-p", "--port")))
    if host and port and (number := digits(port)) is not None:
        return WaitLoop(host=host, port=number)
    found = [found for word in own if (found := _PLACE.fullmatch(word)) and found[2]]
    return WaitLoop(host=found[0][1], port=int(found[0][2])) if len(found) == 1 else None


def _of_dockerize(words: Sequence[str]) -> WaitLoop | None:
    urls = [value for name, value in _options(words, {"-wait", "--wait"}) if name[-5:] == "-wait"]
    plain = [url.removeprefix("tcp://") for url in urls]
    found = _PLACE.fullmatch(plain[0]) if plain and ":" in plain[0] else None
    return WaitLoop(host=found[1], port=int(found[2])) if found and found[2] else None


def _of_kubectl(words: Sequence[str]) -> WaitLoop | None:
    """Read `kubectl wait` for readiness, and `kubectl rollout status`."""
    options = dict(_options(words, {*_NAMESPACE, *_SELECTOR, "--for", "--timeout"}))
    operands = [*_operands(words, {*_NAMESPACE, *_SELECTOR, "--for", "--timeout"})]
    if operands[:1] == ["wait"]:
        goal = options.get("--for", "").lower()
        wanted = {"condition=ready": "pod", "condition=complete": "Job"}.get(goal, "")
        operands = operands[1:]
    elif operands[:2] == ["rollout", "status"]:
        wanted, operands = "rollout", operands[2:]
    else:
        return None
    if not operands or options.keys() & {"--all", "-A", "--all-namespaces", "--kubeconfig"}:
        return None
    kind, _, name = operands[0].partition("/")
    found, name = _KINDS.get(kind.lower(), ""), name or next(iter(operands[1:]), "")
    fits = found == wanted or (wanted == "rollout" and found in {"Deployment", "StatefulSet"})
    return _ready(found, name, options) if fits and len(operands) <= len((kind, name)) else None


def _of_script(words: Sequence[str]) -> WaitLoop | None:
    """Read the wait_for.sh of k8s-wait-for, which waits until all pods are ready."""
    kind = _KINDS.get(words[0].removesuffix("-we"), "") if words else ""
    if kind not in {"pod", "Service", "Job"} or len(words) < len(("kind", "name")):
        return None
    options = dict(_options(words[1:], {*_NAMESPACE, *_SELECTOR}))
    name = "" if words[1].startswith("-") else words[1]
    return _ready(kind, name, options)


def _ready(kind: str, name: str, options: Mapping[str, str]) -> WaitLoop | None:
    """Read what `kubectl wait` or `kubectl rollout` waits for: one name, or pods of a selector."""
    selector = next(filter(None, map(options.get, _SELECTOR)), "")
    parts = selector.split(",") if selector else []
    if not all(map(_PAIR.fullmatch, parts)) or bool(name) is bool(parts):
        return None
    if parts and kind != "pod":
        return None
    namespace = next(filter(None, map(options.get, _NAMESPACE)), "")
    labels = {part.partition("=")[0]: part.rpartition("=")[2] for part in parts} or None
    ready = Ready(kind=kind, name=name, labels=labels, namespace=namespace)
    return WaitLoop(host=f"{kind} {name}" if name else selector, port=None, ready=ready)


def _options(words: Sequence[str], valued: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a command line with their values: `-n a`, `--for=b`, `-lc=d`."""
    takes = ""
    for word in words:
        name, equals, value = word.partition("=")
        if takes:
            yield takes, word
            takes = ""
        elif word in valued:
            takes = word
        elif name.startswith("--"):
            yield name, value if equals else "true"
        elif word[:2] in valued and not word.startswith("--"):
            yield word[:2], word[2:].removeprefix("=")
        elif word.startswith("-"):
            yield name, value


def _operands(words: Sequence[str], valued: set[str]) -> Iterator[str]:
    takes = False
    for word in words:
        if not takes and not word.startswith("-"):
            yield word
        takes = not takes and word in valued


def by_image(container: Mapping[str, Any], words: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of a container that leaves the command to an image made to wait."""
    image = container.get("image")
    name = read_image(image).repository if isinstance(image, str) else ""
    script = _ENTRYPOINTS.get(name.rpartition("/")[2], "")
    return (script, *words) if script else ()


_ENTRYPOINTS = {
    "k8s-wait-for": "wait_for.sh",
    "wait-for-it": "wait-for-it.sh",
    "dockerize": "dockerize",
    "kubectl": "kubectl",
}
"""What images for waiting start, by the last part of their names."""
CLIENTS: dict[str, Callable[[Sequence[str]], WaitLoop | None]] = {
    **dict.fromkeys(("nc", "ncat", "netcat"), _of_netcat),
    **dict.fromkeys(("curl", "wget"), _of_url),
    "python": _of_python,
    "nslookup": _of_name,
    "getent": _of_database,
    "ray": _of_ray,
    **dict.fromkeys(("wait-for-it.sh", "wait-for-it"), _of_wait_for_it),
    **dict.fromkeys(("wait-for.sh", "wait-for"), _of_wait_for),
    "dockerize": _of_dockerize,
    "kubectl": _of_kubectl,
    "wait_for.sh": _of_script,
}
