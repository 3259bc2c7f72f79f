"""What a container's command starts: engines and Ray, behind shells, scripts and wrappers."""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from kthena_components.core.engines.bash.shared_state import (
    BeyondError,
    BrokenError,
    Run,
    Script,
    SharedState,
    Started,
)
from kthena_components.core.engines.facts import CommandFacts, Problem
from kthena_components.core.engines.files import Files, Mount, read_file
from kthena_components.core.engines.launchers import read_ray, read_ray_script, with_ranks
from kthena_components.core.engines.lmdeploy_and_tgi import read_lmdeploy, read_tgi
from kthena_components.core.engines.placeholders import (
    LATE_VARIABLES,
    NETWORK_VARIABLES,
    Scope,
    Variables,
)
from kthena_components.core.engines.programs import (
    OMNI,
    RAY_SCRIPTS,
    SHELLS,
    Program,
    base_name,
    find_program,
    shell_operand,
)
from kthena_components.core.engines.sglang import read_sglang, serves_diffusion, without_model_type
from kthena_components.core.engines.trtllm import read_dynamo, read_trtllm
from kthena_components.core.engines.vllm import read_api_server, read_inside, read_vllm
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeText, Unknown

_STAGES = Unknown(
    "vLLM-Omni runs a model in stages, and its own config file assigns GPUs to each stage"
)
_IMAGES = Unknown(
    "sglang serve starts its server for images and videos, which splits models in other ways"
)
_NETWORK = tuple((name, Unknown(f"the command may set {name}")) for name in NETWORK_VARIABLES)
"""The variables of the network, and their values where no known source sets them."""
_FROM_NO_CONTROLLER = not any(name in LATE_VARIABLES for name in NETWORK_VARIABLES)
"""Whether no controller sets one of them."""
_LONGEST_LINE = 256
_LETTERS = regex(r"-[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class _Declared:
    """The environment that the container itself has."""

    scope: Scope

    def look_up(self, name: str) -> MaybeText | None:
        """Return a variable's value; None if nothing sets it."""
        return self.scope.declared(name)


def _sets_no_network(scope: Scope) -> bool:
    """Return whether no known source sets a variable of the network."""
    late = scope.late
    is_usual = late is LATE_VARIABLES and _FROM_NO_CONTROLLER
    return is_usual and not scope.hidden and scope.env.keys().isdisjoint(NETWORK_VARIABLES)


@dataclass(slots=True)
class Search:
    """What has been found so far in one container's command."""

    scope: Scope
    shared: SharedState = field(init=False)
    unread: Unknown | None = None
    broken: Problem | None = None
    network: dict[str, MaybeText] = field(default_factory=dict)
    """Variables of the network in the processes of engines and of Ray."""

    def __post_init__(self) -> None:
        """Register the search with the shells, so that scripts report the programs they start."""
        self.shared = SharedState(self.scope, self.start)

    def run(self, argv: Sequence[str], folder: str | None = None) -> None:
        """Read the container's command, which starts in a folder."""
        at = folder or Unknown("the image's working directory is unknown")
        first = Run(words=argv, environment=_Declared(self.scope), folder=at, in_shell=False)
        try:
            self.start(first)
        except BrokenError as error:
            text = f"the script ends inside {error}, and the shell rejects it"
            hard = error.sure and self.shared.sure
            self.broken = Problem(flag="-c", text=text, remedy="close it", hard=hard)
        except BeyondError as error:
            self.unread = Unknown(str(error))
        except RecursionError:
            self.unread = Unknown("its script is nested too deeply")
        finally:
            # Both lead back here: without them, all is freed at once, and needs no collector.
            self.scope.environment = None
            del self.shared.start

    def start(self, run: Run) -> bool:
        """Read one program; return whether an engine may run on when it has ended."""
        files = self.scope.files
        self.scope.files = _with_written(files, run.written)
        try:
            return self._start(run)
        finally:
            self.scope.files = files

    def _start(self, run: Run) -> bool:
        """Read a command that may start a program; return whether the script goes on after it."""
        words = run.words
        start = find_program(words)
        if start is None:
            words = words[1 if words[:1] == ["exec"] else 0 :]
            self.shared.other_programs |= self.may_launch(words)
            return self.mounted(words, run)
        if start.at and "env" in map(base_name, words[: start.at]):
            run = replace(run, environment=_with_env(words[: start.at], run.environment))
        arguments = words[start.arguments :]
        if start.program is Program.SHELL:
            return self.shell(words[start.at], arguments, run)
        self.scope.environment, self.scope.in_shell = run.environment, run.in_shell
        self.keep_network()
        if start.program is Program.RAY_SCRIPT:
            ray = read_ray_script(words[start.at :], self.scope)
            self.shared.note(Started(ray=ray, ray_script=self.in_image(words[start.at])))
        elif start.program is Program.RAY:
            self.shared.note(Started(ray=read_ray(arguments, self.scope)))
            if "--" in arguments:
                behind = arguments[arguments.index("--") + 1 :]
                return self.nested(replace(run, words=behind))
        elif start.program is Program.VLLM and OMNI in arguments:
            self.unread = _STAGES
        elif start.program is Program.SGLANG and serves_diffusion(arguments):
            self.unread = _IMAGES
        else:
            facts = _READERS[start.program](arguments, self.scope)
            self.shared.note(Started(engine=with_ranks(facts, words[: start.at], self.scope)))
        return False

    def keep_network(self) -> None:
        """Keep the variables of the network that the current program gets."""
        run = self.scope.environment
        if not self.network and isinstance(run, _Declared) and _sets_no_network(run.scope):
            self.network.update(_NETWORK)  # most containers set none, and it is quicker to tell
            return
        for name, open_value in _NETWORK:
            value = self.scope.look_up(name)
            value = self.scope.read(value) if isinstance(value, str) else value
            found = open_value if value is None else value
            if self.network.setdefault(name, found) != found:
                self.network[name] = Unknown(f"the script sets {name} to several values")

    def may_launch(self, words: Sequence[str]) -> bool:
        """Return whether a program that is not read may start others in the background."""
        if not words or base_name(words[0]) not in _NO_LAUNCHERS:
            return bool(words)
        # The other commands of Ray start nothing here.
        return base_name(words[0]) == _RAY and isinstance(
            self.scope.read("".join(words[1:2])), Unknown
        )

    def nested(self, run: Run) -> bool:
        """Read a program that another one starts."""
        self.shared.enter()
        running = self.start(run)
        self.shared.leave()
        return running

    def in_image(self, word: str) -> str | None:
        """Return a path that a word names in the image: no volume that is known here hides it."""
        path = self.scope.read(word)
        seen = isinstance(path, str) and read_file(self.scope.files, path) is None
        return path if isinstance(path, str) and seen else None

    def shell(self, name: str, words: Sequence[str], run: Run) -> bool:
        """Read a shell's script: behind `-c`, in a file, or on its standard input."""
        at, is_text = shell_operand(words, 0)
        options, rest = tuple(words[:at]), tuple(words[at:])
        asked = any("s" in option and _LETTERS.fullmatch(option) for option in options)
        if rest and is_text:
            text, given = rest[0], rest[1:]
        elif asked or not rest:
            text, given = run.stdin or "", (name, *rest)
        elif base_name(rest[0]) in RAY_SCRIPTS:
            return self.start(replace(run, words=rest))
        else:
            return self.file(rest, run, [base_name(name), *options])
        script = Script(text=text, shell=base_name(name), words=given, options=options)
        return self.follow(script, run)

    def mounted(self, words: Sequence[str], run: Run) -> bool:
        """Read a script that is mounted in the container, if the first word is one."""
        if not words or not self.scope.files:
            return False
        return self.file(words, run, ())

    def file(self, words: Sequence[str], run: Run, shell: Sequence[str]) -> bool:
        """Read a script in a file; without a shell and its options its first line names them."""
        from kthena_components.core.engines.bash.call import path_from  # noqa: PLC0415 - see follow

        path = path_from(words[0], run.folder)
        if path is None and self.may_be_mounted(words[0]):
            raise BeyondError(f"the directory in which its script runs {words[0]} is unknown")
        text = self.shared.file(path)
        if not isinstance(text, str) or path is None:
            return False
        name, *options = shell or _interpreter(text)
        if name not in SHELLS:
            return False
        given = tuple(words)
        whole = Script(text=text, shell=name, options=tuple(options), words=given, file=words[0])
        return self.follow(whole, run)

    def may_be_mounted(self, word: str) -> bool:
        """Return whether a path from a folder that is not known may belong to a mounted file."""
        end = posixpath.normpath(f"/{word}")
        paths = (f"{m.path}/{name}" for m in self.scope.files for name, _ in m.files)
        return "/" in word and any(path.endswith(end) for path in paths)

    def follow(self, script: Script, run: Run) -> bool:
        """Follow a script, and come back to what is read around it."""
        if not script.text:
            return False
        # It takes as long to load as all else here, and many command lines have no script.
        from kthena_components.core.engines.bash.run_script import run_script  # noqa: PLC0415

        return run_script(self.shared, script, run)


_RAY = "ray"
_NO_LAUNCHERS = frozenset({
    *("[", "apk", "apt", "apt-get", "awk", "cat", "chmod", "chown", "cp", "curl", "cut"),
    *("date", "df", "dirname", "echo", "find", "getent", "git", "grep", "head", "hf"),
    *("hostname", "huggingface-cli", "id", "ip", "ln", "ls", "mkdir", "mv", "nproc"),
    *("nslookup", "nvidia-smi", "pip", "pip3", "printf", "ray", "rm", "sed", "seq", "sleep"),
    *("sort", "sysctl", "tail", "tee", "test", "touch", "tr", "true", "uname", "wget"),
})  # fmt: skip
"""Programs that start no other one in the background."""


def _with_written(files: Files, written: Mapping[str, MaybeText] | Unknown) -> Files:
    """Add the files that a script has written to those that are mounted."""
    known = {} if isinstance(written, Unknown) else written
    made = (Mount(path=path, files=(("", text),)) for path, text in known.items())
    return (*made, *files) if known else files


def _with_env(wrappers: Sequence[str], environment: Variables) -> Variables:
    """Add the variables that `env` in front of a program sets or removes."""
    from kthena_components.core.engines.bash.shell_state import EnvCommand  # noqa: PLC0415 - see follow

    names = [base_name(word) for word in wrappers]
    own: dict[str, MaybeText | None] = {}
    words = list(wrappers[names.index("env") + 1 :])
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            own[name] = value
        elif word in {"-u", "--unset"} and at + 1 < len(words):
            own[words[at + 1]] = None
        elif word in {"-i", "-", "--ignore-environment"}:
            environment = _Declared(Scope({}, {}))
    return EnvCommand(environment, own)


def _interpreter(text: str) -> list[str]:
    """Return the name of the shell that runs a file, and its options: `#!/bin/bash -e`."""
    first = text[:_LONGEST_LINE].partition("\n")[0]
    if not first.startswith("#!"):
        return ["sh"]
    words = first[2:].split()
    if words and base_name(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    return [base_name(words[0]), *words[1:]] if words else ["sh"]


_READERS: Mapping[Program, Callable[[Sequence[str], Scope], CommandFacts]] = {
    Program.DYNAMO_TRTLLM: read_dynamo,
    Program.DYNAMO_VLLM: lambda words, scope: replace(read_inside(words, scope), by_dynamo=True),
    Program.HUGGINGFACESERVER: partial(read_inside, engine="huggingfaceserver"),
    Program.LMDEPLOY: read_lmdeploy,
    Program.SGLANG: lambda words, scope: read_sglang(
        without_model_type(words), scope, positional=True
    ),
    Program.SGLANG_INSIDE: partial(read_sglang, inside=True),
    Program.SGLANG_LAUNCH_SERVER: read_sglang,
    Program.TGI: read_tgi,
    Program.TRTLLM: read_trtllm,
    Program.VLLM: read_vllm,
    Program.VLLM_API_SERVER: read_api_server,
    Program.VLLM_INSIDE: read_inside,
}
