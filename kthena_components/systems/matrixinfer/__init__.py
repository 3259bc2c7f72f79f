"""matrixinfer."""
