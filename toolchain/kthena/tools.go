//go:build tools

package main

import _ "github.com/volcano-sh/kthena/cmd/kthena-controller-manager"
