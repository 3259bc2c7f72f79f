"""Which levels the command line goes by: those of an environment, or of a file of the user's."""

import json
from pathlib import Path

from kthena_components.core.findings import suggest
from kthena_components.core.weights import (
    ENVIRONMENTS,
    Levels,
    SettingError,
    environment_levels,
    parse_levels,
)


def read_levels(asked: str | None) -> Levels:
    """Read the levels of an environment or of a file. None are asked for: each finding's own.

    Raises:
        SettingError: the file is missing, is not of this shape, or names a rule that is not there.
    """
    if asked is None:
        return Levels()
    if asked in ENVIRONMENTS:
        return environment_levels(asked)
    text = _text(asked)
    try:
        return parse_levels(json.loads(text))
    except SettingError as error:
        raise SettingError(f"{asked}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{asked}: is not JSON: {error}") from error


def _text(asked: str) -> str:
    try:
        return Path(asked).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        meant = suggest(asked, ENVIRONMENTS)
        raise SettingError(
            f"there is no level and no file '{asked}'; {meant}, or a file"
        ) from error
    except (OSError, ValueError) as error:
        raise SettingError(f"{asked}: cannot be read: {error}") from error
