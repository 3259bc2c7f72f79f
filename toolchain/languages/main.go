// Stands in for Pulumi's language hosts of TypeScript and Go where Pulumi itself was built from Go
// modules: no module proxy serves those two. All work is Pulumi's own. SDKs come from its code
// generators, a TypeScript program runs under `@pulumi/pulumi/cmd/run`, and a Go program under the
// Go SDK. An official installation brings its own hosts, and then this program is not used.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// language and version are set by the linker: see versions.json.
var (
	language string
	version  string
)

func main() {
	known, ok := languages[language]
	if !ok {
		fail(fmt.Errorf("built for the language %q, which is none of nodejs and go", language))
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	children := &children{}
	// The engine passes its own address as the last argument.
	host := &host{language: known, engine: os.Args[len(os.Args)-1], children: children}
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Init: func(server *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(server, host)
			return nil
		},
		Options: rpcutil.OpenTracingServerInterceptorOptions(nil),
	})
	if err != nil {
		fail(err)
	}
	fmt.Println(handle.Port)
	select {
	case <-asked:
	case <-handle.Done:
	}
	// At once: the engine interrupts its plugins and then waits ten seconds for each.
	children.end()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
