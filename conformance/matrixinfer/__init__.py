"""MatrixInfer: its controllers and webhook, against the backend `matrixinfer`."""
