"""Names of container images, and the engine release in the tag of an engine's own image."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from kthena_components.core.values.caches import cached_by_text
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Blank

Version = tuple[int, ...]
"""A release: 0.11.1 is (0, 11, 1). A post-release counts as one more number, like a fourth one:
0.8.5.post1 is (0, 8, 5, 1)."""

LATEST = "latest"
"""Default tag."""
_HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
_RELEASE = regex(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?:\.post([0-9]{1,3}))?(?![0-9A-Za-z.])")
_CANDIDATE = regex(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){2})\.?rc[0-9]{1,3}()(?![0-9A-Za-z.])")
_SHOWN = 160
_OWN: Mapping[str, tuple[str, ...]] = {
    "vllm": ("vllm/vllm-openai", "vllm/vllm-openai-rocm"),
    "sglang": ("lmsysorg/sglang",),
    "trtllm": ("nvidia/tensorrt-llm/release",),
}
"""The images that an engine's own project builds. Their tags are the engine's releases."""
_NAMED = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
"""The engine's name inside the name of a third party's image, as in `vllm-cpu-env`."""
_OF_DYNAMO = "/ai-dynamo/"
"""Part of the names of Dynamo's images, `vllm-runtime` and others, whose tags are its releases.

Source: ai-dynamo/dynamo docs, Release Artifacts.
"""
_FOR_NVIDIA = "/vllm/vllm-openai"
_FOR_CUDA = regex(
    r"(?:latest|nightly|v?\d[\d.]*(?:(?:post|rc|dev)\d*)?)"
    r"(?:-(?:cu\d+|cuda[\d.]+|amd64|x86_64|arm64|aarch64|runtime|py3|g?b[23]00|blackwell|ubuntu[\d.]+))*"
)
"""A tag of an image for NVIDIA's GPUs: other words in it may be for Ascend's, as `cann9.0.0-a3`."""
_FOR_ROCM = regex(r"-(?:rocm|mi[23]\d)")
_BUILT_FOR: Mapping[str, str] = {
    "vllm/vllm-openai": "nvidia.com",
    "vllm/vllm-openai-rocm": "amd.com",
    "vllm/vllm-tpu": "google.com",
    "lmsysorg/sglang": "nvidia.com",
    "rocm/vllm": "amd.com",
    "rocm/vllm-dev": "amd.com",
    "rocm/sgl-dev": "amd.com",
    "nvcr.io/nvidia/vllm": "nvidia.com",
    "nvcr.io/nvidia/sglang": "nvidia.com",
    "nvcr.io/nvidia/tensorrt-llm/release": "nvidia.com",
    "nvcr.io/nvidia/ai-dynamo/vllm-runtime": "nvidia.com",
    "nvcr.io/nvidia/ai-dynamo/sglang-runtime": "nvidia.com",
    "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime": "nvidia.com",
}
"""The vendors of the accelerators for which images of engines are built.

Source: docs.vllm.ai, Using Docker; docs.sglang.ai, Install SGLang (tags with rocm are for AMD); the
NGC catalog; rocm.docs.amd.com, vLLM inference.
"""


@dataclass(frozen=True, slots=True)
class Installation:
    """An engine, or a package for one, that a container installs when it starts."""

    engine: str | None
    """vllm, sglang or trtllm. None: a package for one."""
    release: Version | None = None
    """The exact release that is installed. None: not stated, or only on some paths of a script."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """The parts of an image's name."""

    repository: str
    """Registry and name, without Docker Hub's host, which is the default."""
    tag: str | None
    digest: str | None
    installs: tuple["Installation", ...] = ()
    """What its container installs of engines, and of packages for them, before it starts."""
    adds_transformers: bool = False
    """Whether its container may install another release of Transformers before it starts."""

    @property
    def pinned(self) -> bool:
        """Whether the name identifies a build: by a digest, or by a tag other than latest."""
        return self.digest is not None or self.tag not in {None, LATEST}

    @property
    def is_vllm(self) -> bool:
        """Whether it is the vLLM project's image for NVIDIA GPUs, whose content is known."""
        return f"/{self.repository}".endswith(_FOR_NVIDIA)

    @cached_property
    def vllm_version(self) -> Version | None:
        """The release of vLLM; None if the name does not state it."""
        return self.release_of("vllm")

    def is_own(self, engine: str) -> bool:
        """Whether an engine's own project builds it, from any registry."""
        ends = f"/{self.repository}"
        return any(ends.endswith(f"/{name}") for name in _OWN.get(engine, ()))

    @cached_property
    def engine(self) -> str | None:
        """The engine whose own project builds it: vllm, sglang or trtllm. None: a third party."""
        return next((engine for engine in _OWN if self.is_own(engine)), None)

    @property
    def built_for(self) -> str | None:
        """The domain of the vendor whose accelerators it supports: nvidia.com. None: not known."""
        usual, tag = _BUILT_FOR.get(self.repository), self.tag or LATEST
        if usual != "nvidia.com" or _FOR_CUDA.fullmatch(tag):
            return usual
        return "amd.com" if _FOR_ROCM.search(tag) else None

    @property
    def states_release(self) -> bool:
        """Whether the tag begins with a release of something."""
        return self._in_tag is not None

    def release_of(self, engine: str) -> Version | None:
        """The release of an engine that runs: in the tag, `v0.8.5.post1-cu126` is (0, 8, 5, 1).

        What the container installs replaces it. None if nothing states it. Third-party images have
        tags of their own, and a release candidate (`v0.5.2rc2`) is not a release.
        """
        if not self.installs:
            return self.built_release_of(engine)
        found = {each.release for each in self.installs if each.engine == engine}
        return found.pop() if len(found) == 1 and not self.may_replace(engine) else None

    def built_release_of(self, engine: str) -> Version | None:
        """The release in the tag of an engine's own image, whatever its container installs."""
        return self._in_tag if self.is_own(engine) else None

    def may_replace(self, engine: str) -> bool:
        """Whether its container installs an engine of unknown release, or a package for one."""
        own = [each.release for each in self.installs if each.engine == engine]
        others = any(each.engine != engine for each in self.installs)
        return others or None in own or len(set(own)) > 1

    def probable_release_of(self, engine: str) -> Version | None:
        """The release in the tag of an image that has the engine's name.

        A third party's is very probably the engine's: `someone/vllm-cpu:v0.11.0-x` is (0, 11, 0).
        A candidate is nearest to its own release: `ascend/vllm-ascend:v0.17.0rc1-a3` is (0, 17, 0).
        Source: vllm-project/vllm-ascend docs, Versioning Policy, its matrix of releases.
        """
        name = self.repository.rpartition("/")[2]
        if _NAMED[engine] not in name or self.dynamo_release is not None:
            return None
        candidate = _CANDIDATE.match(self.tag or "")
        return _numbers(candidate) if candidate else self._in_tag

    @property
    def dynamo_release(self) -> Version | None:
        """The release of Dynamo in the tag of one of its images; None for another image."""
        return self._in_tag if _OF_DYNAMO in f"/{self.repository}" else None

    @cached_property
    def _in_tag(self) -> Version | None:
        found = _RELEASE.match(self.tag or "")
        return _numbers(found) if found else None

    def same_build(self, other: "Image") -> bool:
        """Return whether two names mean the same build; equal digests do, whatever the rest."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        mine, theirs = self.tag or LATEST, other.tag or LATEST
        same = (self.repository, mine) == (other.repository, theirs)
        return same and self.digest == other.digest


@cached_by_text
def read_image(name: str) -> Image:
    """Parse the name of an image: `registry:5000/name:tag@sha256:…`."""
    rest, _, digest = name.strip().partition("@")
    head, slash, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    repository = f"{head}{slash}{last}"
    for host in _HUB:
        repository = repository.removeprefix(host)
    return Image(repository=repository, tag=tag or None, digest=digest or None)


_PACKAGES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm", "tensorrt_llm": "trtllm"}
_ENGINES = r"(?:vllm|sglang|tensorrt[-_]llm)"
_NAMES_ONE = regex(rf"\b({_ENGINES})\b(?!-router)", re.IGNORECASE)
_SAME = regex(rf"{_ENGINES}\[[^\]]*\]", re.IGNORECASE)
"""Words that leave the release as it is, unless it is upgraded: `vllm[audio]`."""
_EXACT = regex(
    rf"({_ENGINES})(?:\[[^\]]*\])?===?v?([0-9][0-9.]*(?:post[0-9]+)?)(?:\+[a-z0-9.]+)?",
    re.IGNORECASE,
)
_WHEEL = regex(
    rf"(?:.*/)?({_ENGINES})-([0-9][0-9.]*(?:post[0-9]+)?)(?:(?:\+|%2B)[a-z0-9.]+)?-[^/]*\.whl",
    re.IGNORECASE,
)
_INSTALLERS = ("install", "uv", "setup.py")
_PARTS = 3
"""Numbers in a release."""
_UPGRADES = frozenset({"-U", "--upgrade", "--pre", "--reinstall", "--force-reinstall"})
_FOLDERS = frozenset({"-e", "--editable", ".", "develop"})
_WITH = frozenset({"--with", "--from"})
"""uvx --from vllm==0.11.0 vllm serve"""
_INDEXES = frozenset({"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--index"})
_BRANCH = regex(r"\b(?:if|case|for|while|until|test)\b|\|\||\]\s*&&")
"""Words of a script that make a command run only in some cases."""
_OTHER_PLACE = regex(r"echo|-t|--(?:dry-run|target|prefix|root)(?:=.*)?|(?!/usr/).*/(?:pip3?|uv)")
"""What installs nothing, or for another Python than the image's."""
_COMMENT = regex(r"(?m)^[ \t]*#.*$")
_COMMAND = regex(r"[\n;&|]+")


def installed_by(texts: Iterable[object]) -> tuple[Installation, ...]:
    """Return what scripts install of engines and of packages for them, with pip, uv or conda.

    Args:
        strings: A command line, and the contents of mounted files.
    """
    found = (each for text in texts if isinstance(text, str) for each in _installed(text))
    return tuple(dict.fromkeys(found))


def _installed(text: str) -> Iterator[Installation]:
    if not any(word in text for word in _INSTALLERS) or _NAMES_ONE.search(text) is None:
        return
    script = _COMMENT.sub("", text.replace("\\\n", " "))
    sure, cloned = _BRANCH.search(script) is None, ""
    for command in _COMMAND.split(script):
        words = [word.strip("'\"()") for word in command.replace("--with=", "--with ").split()]
        if "clone" in words:
            found = next(filter(None, map(_NAMES_ONE.search, reversed(words))), None)
            cloned = found[1].lower() if found else cloned
        packages = _packages(words)
        if cloned and any(word in _FOLDERS or word.startswith(".[") for word in packages):
            yield Installation(_PACKAGES[cloned])
        upgrades = not _UPGRADES.isdisjoint(words)
        here = sure and not any(map(_OTHER_PLACE.fullmatch, words))
        for word in packages:
            if _NAMES_ONE.search(word) and (upgrades or not _SAME.fullmatch(word)):
                yield _installation(word, sure=here)


def _packages(words: Sequence[str]) -> Sequence[str]:
    """Return the packages that a command installs, with options that do not name an index."""
    for at, word in enumerate(words):
        if word in _WITH:
            return words[at + 1 : at + 2]
        if word in {"install", "develop"} or (word == "add" and words[at - 1] == "uv"):
            rest = words[at if word == "develop" else at + 1 :]
            return [each for i, each in enumerate(rest) if i == 0 or rest[i - 1] not in _INDEXES]
    return ()


def _installation(word: str, *, sure: bool) -> Installation:
    exact = _EXACT.fullmatch(word) or _WHEEL.fullmatch(word)
    name = exact[1] if exact else word.partition("[")[0].partition("=")[0].partition(">")[0]
    release = parse_version(exact[2].rstrip(".")) if exact and sure else None
    if release is not None and len(release) < _PARTS:  # 0.11 is 0.11.0 (PEP 440)
        release = (*release, *[0] * (_PARTS - len(release)))
    return Installation(_PACKAGES.get(name.lower()), release)


def shown_image(name: str) -> str:
    """Format the name of an image for a message, shortened if it is very long."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def parse_version(text: str) -> Version | None:
    """Parse a release as its project writes it; None if it is not one."""
    found = _RELEASE.fullmatch(text)
    return _numbers(found) if found else None


def _numbers(found: re.Match[str]) -> Version:
    return tuple(map(int, (*found[1].split("."), *filter(None, [found[2]]))))


def write_version(version: Version) -> str:
    """Format a release for a message: 0.11.1."""
    return ".".join(map(str, version))


# Finds images that OpenShift writes into an object, in place of those that the file states.
#
# The controller of image triggers sets the images that an annotation lists when their image stream
# has one, and until then a template may state a blank.
#
# Source: openshift/openshift-controller-manager pkg/image/trigger; kubernetes v1.34
# pkg/apis/core/validation/validation.go validateContainerCommon, which accepts `image: " "` for it.


_TRIGGERS = "image.openshift.io/triggers"
_CONTAINER = regex(
    r"\b(containers|initContainers)\[(?:\?\(@\.name==\\*[\"']([^\"'\\]+)\\*[\"']\)|(\d+))\]\.image\b"
)
_LISTS = ("containers", "initContainers")


def mark_triggered(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object whose images are unknown if a trigger sets them; the same without one."""
    listed = mapping(mapping(body.get("metadata")).get("annotations")).get(_TRIGGERS)
    if not isinstance(listed, str):
        return body
    found = frozenset((kind, name or number) for kind, name, number in _CONTAINER.findall(listed))
    marked: Mapping[str, Any] = _marked(body, found)
    return marked


def _marked(value: Any, found: frozenset[tuple[str, str]]) -> Any:
    """Copy a manifest in which the images of the named containers are placeholders."""
    if isinstance(value, list):
        return [_marked(item, found) for item in value]
    if not isinstance(value, Mapping):
        return value
    made = {key: _marked(item, found) for key, item in value.items()}
    for kind in _LISTS:
        for number, container in enumerate(
            each if isinstance(each := made.get(kind), list) else ()
        ):
            names = {(kind, str(number)), (kind, str(mapping(container).get("name")))}
            if isinstance(container, dict) and not found.isdisjoint(names):
                container["image"] = Blank(container.get("image") or "")
    return made
