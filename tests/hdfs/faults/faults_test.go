// Package faults holds what must become of a transfer to and from a real HDFS when a part of it dies in the middle of it.
// Each death is brought about by the bytes that have moved, never by a clock.
package faults

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/storetest"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

const mib = 1 << 20

// wires count what goes over connections, and know whom they lead to.
type wires struct {
	mu    sync.Mutex
	all   map[net.Conn]string
	order []string // addresses, as they were dialled
}

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[net.Conn]string{}
	}
	w.all[c] = address
	w.order = append(w.order, address)
	return c, nil
}

// cut ends all connections as a broken cable does: without a word of either side.
func (w *wires) cut(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.all {
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			t.Errorf("%T", c)
			continue
		}
		_ = tcp.SetLinger(0)
		_ = tcp.Close() // it may be closed already
		delete(w.all, c)
	}
}

// last is the DataNode that was dialled last.
func (w *wires) last(t testing.TB, c *hadoop.Cluster, nodes int) int {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, address := range slices.Backward(w.order) {
		_, port, _ := net.SplitHostPort(address)
		for n := range nodes {
			if port == strconv.Itoa(c.DataNodePort(n)) {
				return n
			}
		}
	}
	t.Fatalf("no DataNode among %q", w.order)
	return 0
}

// lab is a cluster and a store of it.
type lab struct {
	*hadoop.Cluster
	*hdfs.Store
	wires *wires
	told  *notices
	dir   string
}

type notices struct {
	mu  sync.Mutex
	all []string
}

func (n *notices) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, text)
}

func (n *notices) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.all, "\n")
}

func open(t testing.TB, c *hadoop.Cluster) lab {
	t.Helper()
	l := lab{Cluster: c, wires: &wires{}, told: &notices{}}
	conf := hdfs.Config{Conf: c.ConfDir, User: "ada", Dial: l.wires.dial, Notice: l.told.add}
	l.dir = c.Folder(t)
	var err error
	if l.Store, _, err = conf.Open(t.Context(), c.URI+l.dir); err != nil {
		t.Fatal(err)
	}
	return l
}

func root(t testing.TB, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// once is told of bytes, and does something when so many have moved.
type once struct {
	after int64
	do    func()
	moved atomic.Int64
	done  atomic.Bool
}

func (o *once) tell(_ string, n int64) {
	if o.moved.Add(n) >= o.after && o.done.CompareAndSwap(false, true) {
		o.do()
	}
}

// bring brings one file while something happens, and checks what came.
func (l lab) bring(t *testing.T, name string, want []byte, after int64, happens func()) {
	t.Helper()
	to := t.TempDir()
	event := &once{after: after, do: happens}
	how := transfer.Transfer{Moved: event.tell, Again: func(file, why string) { t.Logf("again: %s: %s", file, why) }}
	if err := how.Bring(t.Context(), root(t, to), []transfer.Copy{{From: transfer.File{Store: l.Store, Path: name}, To: "got"}}); err != nil {
		t.Fatalf("%v\n%s", err, l.told)
	}
	if !event.done.Load() {
		t.Fatal("it was over before anything happened")
	}
	if got, err := os.ReadFile(filepath.Join(to, "got")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes came: %d of %d, %v", len(got), len(want), err)
	}
}

// send sends one file while something happens, and checks what is there by Hadoop's own command.
func (l lab) send(t *testing.T, name string, content []byte, after int64, happens func()) {
	t.Helper()
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "file"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	event := &once{after: after, do: happens}
	how := transfer.Transfer{Moved: event.tell, Again: func(file, why string) { t.Logf("again: %s: %s", file, why) }}
	if err := how.Send(t.Context(), l.Store, []store.Upload{{From: root(t, from), Name: "file", To: name}}); err != nil {
		t.Fatalf("%v\n%s", err, l.told)
	}
	if !event.done.Load() {
		t.Fatal("it was over before anything happened")
	}
	if got := storetest.Get(t, l.Store, name, 0); !bytes.Equal(got, content) {
		t.Errorf("other bytes are there: %d of %d", len(got), len(content))
	}
	if twice := event.moved.Load() - int64(len(content)); twice > 2*mib {
		t.Errorf("%d bytes were sent again, want a block or two", twice)
	}
}

// One cluster of three DataNodes and a pair of NameNodes loses one part after another.
func TestPartsDie(t *testing.T) {
	c := hadoop.Start(t, hadoop.Options{DataNodes: 3, HA: true, Replication: 2, BlockSize: mib, Site: hadoop.Keys(t)})
	l := open(t, c)
	want := storetest.Noise(12*mib+777, 1)
	name := path.Join(l.dir, "big")
	storetest.Put(t, l.Store, name, want)

	t.Run("encrypted and erasure coded files", func(t *testing.T) { l.coded(t) })
	t.Run("a damaged copy", func(t *testing.T) { l.damaged(t) })
	t.Run("the work folder's disk is full", func(t *testing.T) { l.full(t, name) })
	t.Run("an agent ends while a file is read", func(t *testing.T) { l.left(t, name, want) })
	t.Run("the connections are cut while a file is read", func(t *testing.T) {
		l.bring(t, name, want, 3*mib/2, func() { l.wires.cut(t) })
	})
	t.Run("the connections are cut while a file is written", func(t *testing.T) {
		l.send(t, name+".cut", want, 9*mib, func() { l.wires.cut(t) })
	})
	t.Run("the active NameNode dies while a file is read", func(t *testing.T) {
		active := c.Active(t)
		l.bring(t, name, want, 3*mib/2, func() {
			c.KillNameNode(active)
			go c.Failover(t, 1-active)
			l.wires.cut(t) // what has the blocks' places already would not notice
		})
		c.StartNameNode(t, active)
	})
	t.Run("the active NameNode dies while a file is written", func(t *testing.T) {
		active := c.Active(t)
		l.send(t, name+".ha", want, 9*mib, func() {
			c.KillNameNode(active)
			go c.Failover(t, 1-active)
		})
		c.StartNameNode(t, active)
	})
	t.Run("safe mode", func(t *testing.T) { l.safeMode(t) })
	t.Run("a DataNode dies while a file is read", func(t *testing.T) {
		dead := 0
		l.bring(t, name, want, 3*mib/2, func() {
			dead = l.wires.last(t, c, 3)
			c.KillDataNode(dead)
		})
		c.StartDataNode(t, dead)
	})
	t.Run("a DataNode dies while a file is written", func(t *testing.T) {
		dead := 0
		l.send(t, name+".dead", want, 9*mib, func() {
			dead = l.wires.last(t, c, 3)
			c.KillDataNode(dead)
		})
		c.StartDataNode(t, dead)
	})
	t.Run("streams", func(t *testing.T) { l.streams(t) })
}

// full brings a file to a disk that is too small for it.
func (l lab) full(t *testing.T, name string) {
	need.Root(t)
	to := t.TempDir()
	if err := unix.Mount("tmpfs", to, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(to, 0); err != nil {
			t.Error(err)
		}
	}()
	folder, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	err = transfer.Transfer{}.Bring(t.Context(), folder, []transfer.Copy{{From: transfer.File{Store: l.Store, Path: name}, To: "d/got"}})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "free some on the file system of "+to) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(to, "d")); err != nil || len(left) > 0 {
		t.Errorf("there is left: %v, %v", left, err)
	}
}

// left brings a file by an agent that ends in the middle of it, and by the one that comes after it.
func (l lab) left(t *testing.T, name string, want []byte) {
	const after = 9 * mib
	to, moved := t.TempDir(), int64(0)
	for agent := range 2 {
		files, err := transfer.Listing{Store: l.Store}.List(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := transfer.OpenLedger(root(t, to), "ledger")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		event := &once{after: after, do: func() {
			if agent == 0 {
				cancel()
			}
		}}
		err = transfer.Transfer{Ledger: ledger, Moved: event.tell}.Bring(ctx, root(t, to), []transfer.Copy{{From: files[0], To: "d/got"}})
		cancel()
		if err := ledger.Close(); err != nil {
			t.Fatal(err)
		}
		if (err != nil) != (agent == 0) {
			t.Fatalf("agent %d: got %v", agent, err)
		}
		moved += event.moved.Load()
	}
	if got, err := os.ReadFile(filepath.Join(to, "d/got")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes came: %d of %d, %v", len(got), len(want), err)
	}
	if moved != int64(len(want)) {
		t.Errorf("%d bytes came, want %d: none twice", moved, len(want))
	}
}

// damaged changes a byte in the middle of a block's copy, in the one that is read first, then in all.
func (l lab) damaged(t *testing.T) {
	want := storetest.Noise(200_000, 7)
	name := path.Join(l.dir, "damaged")
	storetest.Put(t, l.Store, name, want)
	copies := blocks(t, l.Dir, want)
	if len(copies) != 2 {
		t.Fatalf("got copies %q, want 2", copies)
	}
	for i, file := range copies {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte{want[100_000] ^ 0x40}, 100_000)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		err = transfer.Transfer{Retries: -1}.Bring(t.Context(), root(t, t.TempDir()), []transfer.Copy{{From: transfer.File{Store: l.Store, Path: name}, To: "got"}})
		switch {
		case i == 0:
			got := storetest.Get(t, l.Store, name, 0)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("one copy is good: %v", err)
			}
		case !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "fsck"):
			t.Errorf("all copies are damaged: got %v", err)
		}
	}
}

// blocks are the files of the DataNodes with this content.
func blocks(t *testing.T, dir string, content []byte) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "blk_") || strings.HasSuffix(d.Name(), ".meta") {
			return nil // it may be gone meanwhile
		}
		if text, err := os.ReadFile(path); err == nil && bytes.Equal(text, content) {
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// safeMode is waited for; when it does not end it is told.
func (l lab) safeMode(t *testing.T) {
	l.SafeMode(t, true)
	conf := hdfs.Config{Conf: l.ConfDir, User: "ada", Patience: time.Second}
	short, _, err := conf.Open(t.Context(), l.URI)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := short.Create(t.Context(), path.Join(l.dir, "no")); !errors.Is(err, hdfs.ErrSafeMode) || !errors.Is(err, store.ErrWaited) || !strings.Contains(err.Error(), "dfsadmin -safemode") {
		t.Errorf("got %v", err)
	}
	waits := make(chan struct{})
	var hear sync.Once
	conf = hdfs.Config{Conf: l.ConfDir, User: "ada", Notice: func(string) { hear.Do(func() { close(waits) }) }}
	long, _, err := conf.Open(t.Context(), l.URI)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- long.MkdirAll(t.Context(), path.Join(l.dir, "yes")) }()
	<-waits
	l.SafeMode(t, false)
	if err := <-done; err != nil {
		t.Errorf("safe mode is over: %v", err)
	}
}
