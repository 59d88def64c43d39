package shim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/status"
)

// An app of one instance, as muster packages are written.
var files = map[string]string{
	"metainfo.json":  `{"schemaVersion": "2.1", "application": {"name": "greet", "components": [{"name": "worker"}]}}`,
	"appConfig.json": `{"components": {"worker": {"muster.command": "echo hello from a worker"}}}`,
	"resources.json": `{"components": {"worker": {"yarn.component.instances": "1", "yarn.role.priority": "1"}}}`,
}

// Another Go program runs an agent, here with a registry of its own.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "muster-example")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the process of an agent that is root is another user
		panic(err)
	}
	app := filepath.Join(dir, "greet")
	if err := os.Mkdir(app, 0o755); err != nil {
		panic(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o644); err != nil {
			panic(err)
		}
	}

	socket := filepath.Join(dir, "registry.sock")
	listener, err := embedded.ListenUnix(context.Background(), socket)
	if err != nil {
		panic(err)
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- embedded.Serve(serving, embedded.Options{Listener: listener}) }()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code, err := shim.Run(ctx, shim.Options{
		App: app, Name: shim.Name{AppID: "greet", Index: -1}, Launcher: "shell", Engine: "process",
		Folders:  shim.Folders{Work: filepath.Join(dir, "work"), State: status.Dir(filepath.Join(dir, "state"))},
		Registry: shim.Registry{Address: registry.SocketAddress(socket)},
		Output:   shim.Output{To: io.Discard},
	})
	fmt.Println("exit code", code, err)
	said, err := os.ReadFile(filepath.Join(dir, "work", "log", "worker-0", "stdout.log"))
	fmt.Print(string(said))
	stop()
	if err := errors.Join(err, <-served); err != nil {
		fmt.Println(err)
	}
	// Output:
	// exit code 0 <nil>
	// hello from a worker
}
