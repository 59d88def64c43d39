package yarn_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/tests/servers/hadoop"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// A NodeManager grants GPUs by number and closes the others: agents take those that it granted and no other, also when
// NVML shows them all. muster-gpu comes with the submission; what has asked for none has none.
func TestGPUsUnderYARN(t *testing.T) {
	l := labWith(t, hadoop.YARNOptions{NodeManagers: 1, GPUs: 4})
	// Who may choose takes those with the least memory in use, and a NodeManager the first.
	l.helper(nvmltest.Host{Count: 4, First: hadoop.FirstGPU, UsedMB: map[int]int{0: 900, 1: 900}})
	out := filepath.Join(l.own, "seen")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		form  string
		args  []string
		holds []string
	}{
		{"service", []string{"--instances", "worker=2"}, []string{"worker-0", "worker-1"}},
		// components of one size are one application
		{"shell", []string{"--instances", "worker=1", "--set", "ps:yarn.io/gpu=1"}, []string{"ps-0", "worker-0"}},
	} {
		end := filepath.Join(l.own, tt.form+".end")
		j := l.submit(tt.form, "gpus-"+tt.form, append([]string{
			"--set", "worker:yarn.io/gpu=1", "--set", "muster.framework=none", "--set", "muster.restart=never", "--set",
			`muster.command=echo "$CUDA_VISIBLE_DEVICES" >` + out + `/` + tt.form + `-$MUSTER_INSTANCE; until [ -e ` + end + ` ]; do sleep 0.1; done`,
		}, tt.args...)...)
		seen := func(instance string) string {
			text, _ := os.ReadFile(filepath.Join(out, tt.form+"-"+instance)) // not there yet
			return string(text)
		}
		all := append([]string{"ps-0"}, tt.holds...)
		j.await("all to run", func() bool {
			return !slices.ContainsFunc(all, func(instance string) bool { return seen(instance) == "" })
		})
		if got := seen("ps-0"); !slices.Contains(tt.holds, "ps-0") && got != "\n" {
			t.Errorf("%s: ps-0 has asked for no GPU and sees %q", tt.form, got)
		}
		var got, want []string
		for _, instance := range tt.holds {
			got = append(got, strings.TrimSpace(seen(instance)))
		}
		for _, minor := range l.y.GrantedGPUs(0) {
			want = append(want, nvmltest.UUID(minor))
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(want) != 2 || !slices.Equal(got, want) {
			t.Errorf("%s: %v see %v, the NodeManager granted %v", tt.form, tt.holds, got, want)
		}
		if err := os.WriteFile(end, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		j.await("its verdict", func() bool { return j.status().Outcome == "succeeded" })
		if tt.form == "service" {
			j.y.StopService(j.app)
		}
	}
	// Agents of an ordinary user run images below a container executor as well.
	image := registryserver.Start(t, registryserver.Options{}).PushPython("python", "glibc")
	j := l.submit("shell", "image-executor", "--engine", "container", "--set", "global:muster.image="+image,
		"--instances", "worker=1", "--set", "muster.framework=none", "--set", "muster.restart=never",
		"--set", `muster.command=test "$(id -u)" = 0 && test ! -e /dev/nvidiactl`)
	j.await("its verdict", func() bool { return j.status().Outcome != "" })
	if s := j.status(); s.Outcome != "succeeded" {
		t.Errorf("an image: got %+v, want it to succeed", s)
	}
}

// helper has the muster that submits find beside it a muster-gpu with the mocked NVML of a host.
func (l *lab) helper(host nvmltest.Host) {
	l.t.Helper()
	described, err := json.Marshal(host)
	if err != nil {
		l.t.Fatal(err)
	}
	program := filepath.Join(l.own, "gpuhelper")
	build := exec.Command("go", "build", "-o", program, "github.com/muster-agent/muster/tests/gpuhelper")
	if said, err := build.CombinedOutput(); err != nil {
		l.t.Fatalf("%s: %v\n%s", build, err, said)
	}
	bin, gpus := filepath.Join(l.own, "bin"), filepath.Join(l.own, "gpus.json")
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s\n", nvmltest.Environment, gpus, program)
	text, err := os.ReadFile(muster)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		l.t.Fatal(err)
	}
	for path, content := range map[string][]byte{
		gpus: described, filepath.Join(bin, "muster"): text, filepath.Join(bin, "muster-gpu"): []byte(script),
	} {
		if err := os.WriteFile(path, content, 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
	l.muster = filepath.Join(bin, "muster")
}
