"""Recognises vLLM's server in an image that somebody else built, by what its container says."""

from collections.abc import Sequence

from kthena_components.core.engines.dialects import dialect_of, option_elsewhere
from kthena_components.core.engines.options import Dialect, understand
from kthena_components.core.engines.programs import API_SERVER, base_name
from kthena_components.core.engines.table import release_for
from kthena_components.core.values.images import read_image

_ENGINE, _MODEL = "vllm", "--model"


def derived_entrypoint(image: str, args: Sequence[str]) -> tuple[str, ...]:
    """Return what an image of an unknown builder starts if its container has no command.

    It is vLLM's server if the image is named after it, and the arguments name a model and are
    options of vLLM without an exception, of any release. Otherwise nothing is known.

    Args:
        image: Name of the image.
        args: Arguments of the container.
    """
    if _ENGINE not in base_name(read_image(image).repository):
        return ()
    flags = [word.partition("=")[0] for word in args if word.startswith("--")]
    if _MODEL not in flags or not args[0].startswith("--"):
        return ()
    dialect = dialect_of(release_for(_ENGINE, None))
    return API_SERVER if all(_is_known(flag, dialect) for flag in flags) else ()


def _is_known(flag: str, dialect: Dialect) -> bool:
    if understand(flag, dialect).option is not None:
        return True
    return option_elsewhere(flag, dialect) is not None
