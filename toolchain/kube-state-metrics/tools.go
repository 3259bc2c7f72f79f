//go:build tools

// Package metrics names the program, so that go.mod and go.sum hold what it needs.
package metrics

import _ "k8s.io/kube-state-metrics/v2"
