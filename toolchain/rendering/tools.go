//go:build tools

// Package rendering names the programs, so that go.mod and go.sum hold what they need.
package rendering

import (
	_ "helm.sh/helm/v3/cmd/helm"
	_ "sigs.k8s.io/kustomize/kustomize/v5"
)
