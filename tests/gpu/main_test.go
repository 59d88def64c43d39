// Package gpu_test runs agents' GPU room against whole helpers: the real muster-gpu, and a mocked host with 8 GPUs
// behind the same protocol. With the build tag gpu (scripts/test-gpu) it also runs on a real GPU.
package gpu_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/cmd/muster-gpu/serve"
	"github.com/muster-agent/muster/shim/gpu"
)

const watchdog = 60 * time.Second

// roleVariable makes the test binary one of the programs of its tests. The helper is named by Open without arguments.
const roleVariable = "MUSTER_GPU_TEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		os.Exit(m.Run())
	}
	err := fmt.Errorf("no role %s", role)
	switch role {
	case "helper":
		lib, failed := nvmltest.Open()
		if err = failed; err == nil {
			err = serve.Serve(lib, os.Stdin, os.Stdout)
		}
	case "agent":
		err = asAgent()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(69)
	}
	os.Exit(0)
}

// asAgent claims two GPUs of the mocked host, says which and its helper's pid, and waits to be killed.
func asAgent() error {
	if err := os.Setenv(roleVariable, "helper"); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	h, err := gpu.Open(context.Background(), self, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	inv, err := h.Inventory(context.Background())
	if err != nil {
		return err
	}
	held, err := gpu.Claim(context.Background(), inv.Devices, gpu.Want{Count: 2})
	if err != nil {
		return err
	}
	var children []string
	tasks, err := filepath.Glob("/proc/self/task/*/children") // whose thread made the helper is not known
	if err != nil {
		return err
	}
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		children = append(children, strings.Fields(string(text))...)
	}
	if err := json.NewEncoder(os.Stdout).Encode(agentSays{IDs: held.IDs(), Children: children}); err != nil {
		return err
	}
	select {}
}

type agentSays struct {
	IDs, Children []string
}

// agent starts asAgent and hears what it says.
func agent(t *testing.T) (*exec.Cmd, agentSays) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleVariable+"=agent"), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have been already
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the agent says nothing: %v", err)
	}
	var says agentSays
	if err := json.Unmarshal(line, &says); err != nil {
		t.Fatal(err)
	}
	return cmd, says
}

// mocked opens a helper of the host.
func mocked(t *testing.T, host nvmltest.Host) *gpu.Helper {
	t.Helper()
	text, err := json.Marshal(host)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "host.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(nvmltest.Environment, file)
	t.Setenv(roleVariable, "helper")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, self)
}

func opened(t *testing.T, path string) *gpu.Helper {
	t.Helper()
	h, err := gpu.Open(t.Context(), path, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// built is the muster-gpu of this tree, or the one beside MUSTER_BINARY.
func built(t *testing.T) string {
	t.Helper()
	if muster := os.Getenv("MUSTER_BINARY"); muster != "" {
		return filepath.Join(filepath.Dir(muster), "muster-gpu")
	}
	path := filepath.Join(t.TempDir(), "muster-gpu")
	// NVML's names are bound when they are first called: some toolchains bind all at the start.
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-extldflags=-Wl,-z,lazy", "-o", path, "github.com/muster-agent/muster/cmd/muster-gpu")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return path
}
