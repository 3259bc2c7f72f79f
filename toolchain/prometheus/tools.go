//go:build tools

// Package prometheus names the program, so that go.mod and go.sum hold what it needs.
package prometheus

import _ "github.com/prometheus/prometheus/cmd/prometheus"
