"""MatrixInfer: ModelInfer."""
