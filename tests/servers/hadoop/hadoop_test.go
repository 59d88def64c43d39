package hadoop_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// makeIn, in the environment, has this program make a cluster there, tell its pids, and wait for its own end.
const makeIn = "MUSTER_TEST_MAKE_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(makeIn); dir != "" {
		c, err := hadoop.Make(dir, hadoop.Options{})
		fmt.Println(c.NameNodePID(0), c.DataNodePID(0), err)
		select {}
	}
	os.Exit(hadoop.Main(m))
}

// A process that is killed has no time to clean up.
func TestDaemonsGoWithAKilledProcess(t *testing.T) {
	hadoop.Shared(t) // or there is none
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), makeIn+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	var said string
	if n, err := fmt.Fscan(out, &pids[0], &pids[1], &said); n != 3 || said != "<nil>" {
		t.Errorf("it said %v %s (%v)", pids, said, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for _, pid := range pids {
		awaitDead(t, pid)
	}
}

// awaitDead waits for what the kernel does when a thread ends.
func awaitDead(t *testing.T, pid int) {
	t.Helper()
	dog := time.Now().Add(30 * time.Second)
	for pid != 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && time.Now().Before(dog) {
		runtime.Gosched()
	}
	dead(t, pid)
}

func TestWhatTheShellPutsItGives(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	want := make([]byte, 300_000)
	if _, err := rand.Read(want); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "put")
	if err := os.WriteFile(file, want, 0o644); err != nil {
		t.Fatal(err)
	}
	dir := c.Folder(t)
	c.FsShell(t, "-put", file, dir+"/a")
	if got := c.FsShell(t, "-cat", dir+"/a"); !bytes.Equal([]byte(got), want) {
		t.Errorf("cat gave %d bytes that are not the %d put", len(got), len(want))
	}
	if got := hadoop.FsShell(t, c.ConfDir, "-du", c.URI+dir+"/a"); !strings.HasPrefix(got, "300000 ") {
		t.Errorf("du by the configuration folder: got %q", got)
	}
}

func TestQuotaAndSafeModeRefuse(t *testing.T) {
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	file := filepath.Join(t.TempDir(), "put")
	if err := os.WriteFile(file, make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	c.SetQuota(t, dir, 3, 0)
	refused(t, c, "quota", "dfs", "-touchz", dir+"/1", dir+"/2", dir+"/3")
	c.SetQuota(t, dir, 0, 1<<20)
	refused(t, c, "quota", "dfs", "-put", file, dir+"/3") // a block of 128 MiB is asked for
	c.SetQuota(t, dir, 0, 0)

	c.SafeMode(t, true)
	refused(t, c, "safe mode", "dfs", "-put", file, dir+"/4")
	c.SafeMode(t, false)
	c.FsShell(t, "-put", file, dir+"/4")
}

func TestADataNodeIsLostAndComesBack(t *testing.T) {
	t.Parallel()
	c := hadoop.Start(t, hadoop.Options{DataNodes: 2, Replication: 1, BlockSize: 4096})
	file := filepath.Join(t.TempDir(), "put")
	if err := os.WriteFile(file, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.FsShell(t, "-put", file, "/a")
	pids := []int{c.DataNodePID(0), c.DataNodePID(1)}
	for i := range pids {
		c.KillDataNode(i)
		dead(t, pids[i])
	}
	c.StartDataNode(t, 0)
	c.StartDataNode(t, 1)
	if got := c.FsShell(t, "-cat", "/a"); got != "kept" {
		t.Errorf("got %q, want %q", got, "kept")
	}
}

func TestTheStandbyTakesOver(t *testing.T) {
	t.Parallel()
	c := hadoop.Start(t, hadoop.Options{HA: true})
	file := filepath.Join(t.TempDir(), "put")
	if err := os.WriteFile(file, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.FsShell(t, "-put", file, "/a")
	if got := c.Active(t); got != 0 {
		t.Fatalf("active: got %d, want 0", got)
	}
	pid := c.NameNodePID(0)
	c.KillNameNode(0)
	dead(t, pid)
	c.Failover(t, 1)
	if got := c.Active(t); got != 1 {
		t.Errorf("active: got %d, want 1", got)
	}
	if got := c.FsShell(t, "-cat", "/a"); got != "kept" {
		t.Errorf("after the failover: got %q, want %q", got, "kept")
	}
	c.StartNameNode(t, 0)
	c.Failover(t, 0)
	if got := c.FsShell(t, "-cat", c.URI+"/a"); got != "kept" {
		t.Errorf("after the failover back: got %q, want %q", got, "kept")
	}
}

func TestAClusterGoesWithItsTest(t *testing.T) {
	var pids []int
	t.Run("inner", func(t *testing.T) {
		c := hadoop.Start(t, hadoop.Options{})
		pids = []int{c.NameNodePID(0), c.DataNodePID(0)}
	})
	for _, pid := range pids {
		dead(t, pid)
	}
}

func refused(t *testing.T, c *hadoop.Cluster, want string, args ...string) {
	t.Helper()
	out, err := c.HDFS(args...).CombinedOutput()
	if err == nil {
		t.Errorf("%v: went well", args)
	}
	if !strings.Contains(strings.ToLower(string(out)), want) {
		t.Errorf("%v: got %q, want %q in it", args, out, want)
	}
}

func dead(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("no pid")
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("pid %d: got %v, want %v", pid, err, syscall.ESRCH)
	}
}

func TestOnlyATicketOpens(t *testing.T) {
	t.Parallel()
	c := hadoop.Start(t, hadoop.Options{Kerberos: true, Protection: "privacy"})
	file := filepath.Join(t.TempDir(), "put")
	if err := os.WriteFile(file, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.FsShell(t, "-put", file, "/a")

	cache := filepath.Join(t.TempDir(), "cache")
	cmd := c.HDFS("dfs", "-cat", "/a")
	cmd.Env = append(cmd.Env, "KRB5CCNAME="+cache)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "AccessControlException") {
		t.Errorf("without a ticket: got %v and %q", err, out)
	}
	c.KDC.AddUser(t, "alice")
	c.KDC.Kinit(t, cache, "alice")
	cmd = c.HDFS("dfs", "-cat", "/a")
	cmd.Env = append(cmd.Env, "KRB5CCNAME="+cache)
	if out, err := cmd.Output(); err != nil || string(out) != "kept" {
		t.Errorf("with a ticket: got %v and %q, want %q", err, out, "kept")
	}
}
