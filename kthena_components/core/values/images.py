"""Names of container images, and the release of an engine that the tag of its own image states."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

Version = tuple[int, ...]
"""A release: 0.11.1 is (0, 11, 1). A post-release counts as one more number, like a fourth one:
0.8.5.post1 is (0, 8, 5, 1)."""

LATEST = "latest"
"""The tag that a name without one has."""
_HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
_RELEASE = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?:\.post([0-9]{1,3}))?(?![0-9A-Za-z.])")
_SHOWN = 160
_OWN: Mapping[str, tuple[str, ...]] = {
    "vllm": ("vllm/vllm-openai",),
    "sglang": ("lmsysorg/sglang",),
}
"""The images that an engine's own project builds. Their tags count the engine's releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The name of an image, taken apart."""

    repository: str
    """Registry and name, without Docker Hub's host: it is the default."""
    tag: str | None
    digest: str | None

    @property
    def pinned(self) -> bool:
        """Whether the name states which build it is: a digest, or a tag other than latest."""
        return self.digest is not None or self.tag not in {None, LATEST}

    @property
    def is_vllm(self) -> bool:
        """Whether it is the image that the vLLM project builds, from whatever registry."""
        return self.is_own("vllm")

    @property
    def vllm_version(self) -> Version | None:
        """The release of vLLM; None when the name does not state it."""
        return self.release_of("vllm")

    def is_own(self, engine: str) -> bool:
        """Whether it is the image that an engine's own project builds, from whatever registry."""
        ends = f"/{self.repository}"
        return any(ends.endswith(f"/{name}") for name in _OWN.get(engine, ()))

    @property
    def engine(self) -> str | None:
        """The engine whose own project builds it: vllm or sglang. None: somebody else does."""
        return next((engine for engine in _OWN if self.is_own(engine)), None)

    def release_of(self, engine: str) -> Version | None:
        """The release of an engine that the tag states: `v0.8.5.post1-cu126` is (0, 8, 5, 1).

        None where it states none. The tag of an image that somebody else builds counts something
        else, and a release candidate (`v0.5.2rc2`) is none.
        """
        found = _RELEASE.match(self.tag or "") if self.is_own(engine) else None
        return _numbers(found) if found else None

    def same_build(self, other: "Image") -> bool:
        """Return whether two names stand for one build: equal digests say so, whatever the rest."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        mine, theirs = self.tag or LATEST, other.tag or LATEST
        same = (self.repository, mine) == (other.repository, theirs)
        return same and self.digest == other.digest


def read_image(name: str) -> Image:
    """Take the name of an image apart: `registry:5000/name:tag@sha256:…`."""
    rest, _, digest = name.strip().partition("@")
    head, slash, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    repository = f"{head}{slash}{last}"
    for host in _HUB:
        repository = repository.removeprefix(host)
    return Image(repository=repository, tag=tag or None, digest=digest or None)


def shown_image(name: str) -> str:
    """Write the name of an image for a message, shortened when it is absurdly long."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def parse_version(text: str) -> Version | None:
    """Read a release as its project writes it; None for whatever is none."""
    found = _RELEASE.fullmatch(text)
    return _numbers(found) if found else None


def _numbers(found: re.Match[str]) -> Version:
    return tuple(map(int, (*found[1].split("."), *filter(None, [found[2]]))))


def write_version(version: Version) -> str:
    """Write a release for a message: 0.11.1."""
    return ".".join(map(str, version))
