"""Words that stand for themselves, as most do."""

from kthena_components.core.engines.bash.patterns import has_glob
from kthena_components.core.engines.bash.syntax import Text, Word
from kthena_components.core.engines.placeholders import has_gap


def plain_text(word: Word) -> str | None:
    """Return the text of a word that stands for itself; None for any other."""
    piece = word[0] if len(word) == 1 else None
    if not isinstance(piece, Text) or piece.bash:
        return None
    text = piece.text
    special = "~" in text or "{" in text or has_glob(text) or has_gap(text)
    return text if piece.quoted or not special else None
