package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Exit code by which the SDKs say that the user has seen the error.
const messageAlreadyShown = 32

type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	language target
	engine   string
	children *children
}

func (h *host) Handshake(
	context.Context, *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: version}, nil
}

// GetRequiredPackages names none: the engine loads a plugin when a resource needs it.
func (h *host) GetRequiredPackages(
	context.Context, *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	return &pulumirpc.GetRequiredPackagesResponse{}, nil
}

func (h *host) GeneratePackage(
	_ context.Context, request *pulumirpc.GeneratePackageRequest,
) (*pulumirpc.GeneratePackageResponse, error) {
	var spec schema.PackageSpec
	if err := json.Unmarshal([]byte(request.Schema), &spec); err != nil {
		return nil, err
	}
	loader, err := schema.NewLoaderClient(request.LoaderTarget)
	if err != nil {
		return nil, err
	}
	defer loader.Close()
	pkg, found, err := schema.BindSpec(spec, loader, schema.ValidationOptions{})
	if err != nil {
		return nil, err
	}
	response := &pulumirpc.GeneratePackageResponse{Diagnostics: plugin.HclDiagnosticsToRPCDiagnostics(found)}
	if found.HasErrors() {
		return response, nil
	}
	files, err := h.language.generate(request, pkg, schema.NewCachedLoader(loader))
	if err != nil {
		return nil, err
	}
	return response, write(request.Directory, files)
}

func write(folder string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Link leaves the dependency to the program, which states it already.
func (h *host) Link(context.Context, *pulumirpc.LinkRequest) (*pulumirpc.LinkResponse, error) {
	return &pulumirpc.LinkResponse{}, nil
}

func (h *host) InstallDependencies(
	request *pulumirpc.InstallDependenciesRequest, stream pulumirpc.LanguageRuntime_InstallDependenciesServer,
) error {
	return h.run(h.language.install, request.Info.ProgramDirectory, nil)
}

func (h *host) Run(_ context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	if h.language.build != nil {
		words, err := h.language.build(request.Info)
		if err != nil {
			return nil, err
		}
		if err := h.run(words, request.Info.ProgramDirectory, nil); err != nil {
			return &pulumirpc.RunResponse{Error: "the program could not be built"}, nil
		}
	}
	words, err := h.language.start(request, h.engine)
	if err != nil {
		return nil, err
	}
	environment, err := h.environment(request)
	if err != nil {
		return nil, err
	}
	err = h.run(words, request.Pwd, environment)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return &pulumirpc.RunResponse{}, nil
	case errors.As(err, &ended) && ended.ExitCode() == messageAlreadyShown:
		return &pulumirpc.RunResponse{Bail: true}, nil
	}
	return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program ended with %v", err)}, nil
}

// environment has what the Go SDK reads, and what the script of the TypeScript SDK does not take as
// an argument.
func (h *host) environment(request *pulumirpc.RunRequest) ([]string, error) {
	config, err := json.Marshal(request.Config)
	if err != nil {
		return nil, err
	}
	secret, err := json.Marshal(request.ConfigSecretKeys)
	if err != nil {
		return nil, err
	}
	return []string{
		pulumi.EnvConfig + "=" + string(config),
		pulumi.EnvConfigSecretKeys + "=" + string(secret),
		pulumi.EnvOrganization + "=" + request.Organization,
		pulumi.EnvProject + "=" + request.Project,
		pulumi.EnvPulumiRootDirectory + "=" + request.Info.RootDirectory,
		pulumi.EnvStack + "=" + request.Stack,
		pulumi.EnvParallel + "=" + strconv.Itoa(int(request.Parallel)),
		pulumi.EnvDryRun + "=" + strconv.FormatBool(request.DryRun),
		pulumi.EnvMonitor + "=" + request.MonitorAddress,
		pulumi.EnvEngine + "=" + h.engine,
		"PULUMI_NODEJS_TYPESCRIPT=true",
	}, nil
}

// run starts a program and waits until it ends. Its output is ours, which the engine shows.
func (h *host) run(words []string, folder string, environment []string) error {
	command := exec.Command(words[0], words[1:]...)
	command.Dir, command.Env = folder, append(os.Environ(), environment...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return h.children.run(command)
}

// The processes that we started: none may outlive the engine.
type children struct {
	lock    sync.Mutex
	running map[*exec.Cmd]bool
}

func (c *children) run(command *exec.Cmd) error {
	c.lock.Lock()
	err := command.Start()
	if c.running == nil {
		c.running = map[*exec.Cmd]bool{}
	}
	c.running[command] = err == nil
	c.lock.Unlock()
	if err == nil {
		err = command.Wait()
	}
	c.lock.Lock()
	delete(c.running, command)
	c.lock.Unlock()
	return err
}

func (c *children) end() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for command, started := range c.running {
		if started {
			_ = command.Process.Kill()
		}
	}
}
