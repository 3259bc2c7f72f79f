"""Programs that build manifests, kustomize, kubectl and helm, run on the files of strangers."""
