package main

import (
	"fmt"
	"os"
	"path/filepath"

	golang "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// A target is one language: how its SDKs are written, and how its programs start.
type target struct {
	generate func(*pulumirpc.GeneratePackageRequest, *schema.Package, schema.ReferenceLoader) (map[string][]byte, error)
	// install is run in the folder of the program.
	install []string
	// build is run before the program starts. Nil: nothing is built.
	build func(*pulumirpc.ProgramInfo) ([]string, error)
	// start gives the words of the program.
	start func(*pulumirpc.RunRequest, string) ([]string, error)
}

const tool = "pulumi"

var languages = map[string]target{
	"nodejs": {generate: generateNodejs, install: []string{"npm", "install"}, start: startNodejs},
	"go": {
		generate: generateGo,
		install:  []string{"go", "mod", "download"},
		build:    buildGo,
		start:    startGo,
	},
}

func generateNodejs(
	request *pulumirpc.GeneratePackageRequest, pkg *schema.Package, loader schema.ReferenceLoader,
) (map[string][]byte, error) {
	return nodejs.GeneratePackage(
		tool, pkg, request.ExtraFiles, request.LocalDependencies, request.Local, loader,
	)
}

func generateGo(
	request *pulumirpc.GeneratePackageRequest, pkg *schema.Package, _ schema.ReferenceLoader,
) (map[string][]byte, error) {
	return golang.GeneratePackage(tool, pkg, request.LocalDependencies)
}

// startNodejs runs the program by the script that the SDK of the program brings for it.
func startNodejs(request *pulumirpc.RunRequest, engine string) ([]string, error) {
	folder := request.Info.ProgramDirectory
	script := filepath.Join(folder, "node_modules", "@pulumi", "pulumi", "cmd", "run")
	if _, err := os.Stat(script); err != nil {
		return nil, fmt.Errorf("%s has no @pulumi/pulumi: run `npm install` there", folder)
	}
	words := []string{
		"node", script,
		"--monitor=" + request.MonitorAddress,
		"--engine=" + engine,
		"--organization=" + request.Organization,
		"--project=" + request.Project,
		"--stack=" + request.Stack,
		"--root-directory=" + request.Info.RootDirectory,
		"--pwd=" + request.Pwd,
		fmt.Sprintf("--parallel=%d", request.Parallel),
	}
	if request.DryRun {
		words = append(words, "--dry-run")
	}
	return append(words, request.Info.EntryPoint), nil
}

func program(info *pulumirpc.ProgramInfo) string {
	return filepath.Join(info.ProgramDirectory, ".pulumi-program")
}

func buildGo(info *pulumirpc.ProgramInfo) ([]string, error) {
	return []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", program(info), "."}, nil
}

// startGo runs the built program. The Go SDK reads everything else from the environment.
func startGo(request *pulumirpc.RunRequest, _ string) ([]string, error) {
	return []string{program(request.Info)}, nil
}
