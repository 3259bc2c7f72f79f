// Command pulumi-resource-kubernetes starts Pulumi's own Kubernetes provider.
//
// The published command embeds a schema of some 50 MB that is generated at release time and is in no Go module.
// Only code generators ask for it: `pulumi up` needs a schema's name and version and no more.
package main

import (
	"fmt"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

func main() {
	const name = "kubernetes"
	schema := fmt.Sprintf(`{"name": %q, "version": %q}`, name, version.Version)
	provider.Serve(name, version.Version, []byte(schema), nil)
}
