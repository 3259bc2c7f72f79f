//go:build tools

// Package kwok names the program, so that go.mod and go.sum hold what it needs.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
