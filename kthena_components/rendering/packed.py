"""Reads the texts of a packed chart, within limits and without unpacking it to files.

Source: helm v3.19.0 pkg/chart/loader/archive.go: all files are in one folder, named as the chart.
"""

import tarfile
import zlib
from collections.abc import Iterator

from kthena_components.reading.files import MOST_BYTES

_MOST_FILES = 20_000


class PackedError(ValueError):
    """A packed chart cannot be read, or is too large."""


def texts_of_packed(file: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of the files in a packed chart, each with its text.

    Raises:
        PackedError: It cannot be read, or is too large.
    """
    left, count = MOST_BYTES, 0
    try:
        with tarfile.open(file, "r|gz") as packed:
            for member in packed:
                count += 1
                left -= member.size
                if count > _MOST_FILES or left < 0:
                    raise PackedError("it is too large")
                content = packed.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member.name, content.read().decode(errors="replace")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise PackedError("it cannot be read") from error
