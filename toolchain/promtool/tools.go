//go:build tools

// Package promtool names the program, so that go.mod and go.sum hold what it needs.
package promtool

import (
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
