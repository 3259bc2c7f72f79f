"""Words of the rules about the shape of a model: over which ranks a dimension is split."""

from kthena_components.core.memory.sharding import (
    Sharding,
)


def ranks_of_model(sharding: Sharding, ranks: int) -> str:
    """Write the number of ranks of a dimension, with the sizes that it comes from."""
    command = sharding.command
    widths = {"data": command.attention_data, "context": command.attention_context}
    parts = [f" ÷ attention {what} {width}" for what, width in widths.items() if width != 1]
    return f"tensor {command.tensor}{''.join(parts)}" + (f" = {ranks}" if parts else "")
