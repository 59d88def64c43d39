package subids

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestNew(t *testing.T) {
	b := Block{UID: 1000000, GID: 2000000}
	for _, tt := range []struct {
		name string
		own  []int
		want []Range
	}{
		{"nobody of the host", nil, []Range{{0, 1000000, 65536}}},
		{"root is never itself", []int{0, -1}, []Range{{0, 1000000, 65536}}},
		{"a user", []int{1002}, []Range{{0, 1000000, 1002}, {1002, 1002, 1}, {1003, 1001003, 64533}}},
		{"two groups, one beside the other, one twice", []int{101, 100, 100}, []Range{{0, 1000000, 100}, {100, 100, 1}, {101, 101, 1}, {102, 1000102, 65434}}},
		{"beyond a block", []int{200000}, []Range{{0, 1000000, 65536}, {200000, 200000, 1}}},
		{"the last of a block", []int{65535}, []Range{{0, 1000000, 65535}, {65535, 65535, 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(b, tt.own, nil)
			if diff := cmp.Diff(m.UIDs, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if root, ok := m.UID(0); !ok || root != 1000000 {
				t.Errorf("root inside: got %d, %t", root, ok)
			}
			for _, id := range tt.own {
				if got, ok := m.UID(id); id > 0 && (!ok || got != id) {
					t.Errorf("%d inside: got %d, %t, want itself", id, got, ok)
				}
			}
		})
	}
	if id, ok := New(b, nil, nil).GID(65536); ok {
		t.Errorf("a group beyond the block: got %d", id)
	}
}

func TestPoolOfFiles(t *testing.T) {
	for _, tt := range []struct {
		name, uids, gids, want string // in the error
		pool                   Pool
	}{
		{"no files", "", "", "", Pool{UIDs: span{defaultFirst, defaultCount}, GIDs: span{defaultFirst, defaultCount}}},
		{"of others", "root:1:65536\n", "", "", Pool{UIDs: span{defaultFirst, defaultCount}, GIDs: span{defaultFirst, defaultCount}}},
		{"ours", "a:1:2\nmuster:100000:131072\n", "muster:300000:131072\n", "", Pool{UIDs: span{100000, 131072}, GIDs: span{300000, 131072}}},
		{"too few", "muster:100000:65535\n", "", "has 65535 ids", Pool{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			uids, gids := filepath.Join(dir, "subuid"), filepath.Join(dir, "subgid")
			for path, text := range map[string]string{uids: tt.uids, gids: tt.gids} {
				if err := os.WriteFile(path, []byte(text), 0o600); text != "" && err != nil {
					t.Fatal(err)
				}
				if text == "" {
					_ = os.Remove(path)
				}
			}
			got, err := readPool(uids, gids)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want an error with %s", err, tt.want)
				}
				return
			}
			if got.UIDs != tt.pool.UIDs || got.GIDs != tt.pool.GIDs || err != nil {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if n := (Pool{UIDs: span{0, 200000}, GIDs: span{0, 140000}}).Blocks(); n != 2 {
		t.Errorf("got %d blocks, want 2", n)
	}
}

func TestBlocks(t *testing.T) {
	dir, pool := filepath.Join(t.TempDir(), "subids"), Pool{UIDs: span{1 << 30, 2 * BlockSize}, GIDs: span{1 << 30, 2 * BlockSize}}
	type held struct {
		Block
		release func() error
	}
	take := func(app string) held {
		t.Helper()
		b, release, err := Take(dir, app, pool)
		if err != nil {
			t.Fatal(err)
		}
		return held{b, release}
	}
	a, again, b := take("a"), take("a"), take("b")
	if a.Block != again.Block || a.Block == b.Block || b.Block.UID-a.Block.UID != BlockSize {
		t.Errorf("a %v and %v, b %v", a.Block, again.Block, b.Block)
	}
	if l, _, err := Take(dir, "c", pool); err == nil || !strings.Contains(err.Error(), "all 2 blocks are in use") {
		t.Errorf("a third app: got %v, %v", l, err)
	}
	if err := a.release(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Take(dir, "c", pool); err == nil {
		t.Error("a block was taken from an app with a living agent")
	}
	if err := again.release(); err != nil {
		t.Fatal(err)
	}
	c := take("c")
	if c.Block != a.Block {
		t.Errorf("got %v, want the block that was used longest ago", c.Block)
	}
	if err := b.release(); err != nil {
		t.Fatal(err)
	}
	if b2 := take("b"); b2.Block != b.Block {
		t.Errorf("b had %v, and now %v", b.Block, b2.Block)
	}
}

func TestTableOfOthersIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "subids")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is the attack
		t.Fatal(err)
	}
	if l, _, err := Take(dir, "a", Pool{}); err == nil || !strings.Contains(err.Error(), "mode 0777") {
		t.Errorf("got %v, %v", l, err)
	}
}

// Block -28672 of the default range begins at 0, so that root inside would be the host's root.
func TestDamagedTableIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"a": {"block": -28672}}`, `{"a": {"block": 1}, "b": {"block": 1}}`, `{"a": {"block": 99999999999999999999}}`, `[]`, "",
	} {
		dir := filepath.Join(t.TempDir(), "subids")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tableName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		pool := Pool{UIDs: span{defaultFirst, defaultCount}, GIDs: span{defaultFirst, defaultCount}}
		if l, _, err := Take(dir, "a", pool); err == nil || !strings.Contains(err.Error(), "remove it when no agent runs") {
			t.Errorf("%s: got %v, %v", text, l, err)
		}
	}
}

// A block in which an account or a group of the host lies anywhere is no app's.
func TestBlockOfAnAccount(t *testing.T) {
	dir := t.TempDir()
	passwd, group := filepath.Join(dir, "passwd"), filepath.Join(dir, "group")
	for path, text := range map[string]string{
		passwd: "root:x:0:0::/:/bin/sh\nada:x:1000070:50::/:/bin/sh\n", group: "team:x:2131071:ada\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accounts, err := readAccounts(passwd, group)
	if err != nil {
		t.Fatal(err)
	}
	for b, want := range map[Block]bool{
		{1000000, 3000000}: true, {1065536, 3000000}: false, {3000000, 2065536}: true, {3000000, 2131072}: false,
	} {
		if got := accounts.in(b); got != want {
			t.Errorf("%+v: got %t", b, got)
		}
	}
	if none, err := readAccounts(filepath.Join(dir, "none"), filepath.Join(dir, "none")); err != nil || none.in(Block{}) {
		t.Errorf("a host without accounts: %v, %v", none, err)
	}
}

// An account may be made in a block that an app has had: the app gets another.
func TestRememberedBlockOfAnAccount(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	pool := Pool{UIDs: span{0, 2 * BlockSize}, GIDs: span{1 << 30, 2 * BlockSize}} // in whose first block root is
	table := map[string]entry{"a": {Block: 0}}
	number, held, err := choose(root, table, "a", pool)
	if err != nil || number != 1 {
		t.Errorf("got block %d, %v, want 1", number, err)
	}
	_ = held.Close()
}

// An agent that is stuck with the lock holds up another start for a while, and no longer.
func TestLockOfAStuckAgent(t *testing.T) {
	patience := lockPatience
	t.Cleanup(func() { lockPatience = patience })
	lockPatience = 300 * time.Millisecond
	dir := filepath.Join(t.TempDir(), "subids")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lock")
	stuck, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	if err := unix.Flock(int(stuck.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	pool := Pool{UIDs: span{1 << 30, BlockSize}, GIDs: span{1 << 30, BlockSize}}
	want := "lock " + path + ": another agent has held it"
	if _, _, err := Take(dir, "a", pool); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want the lock's path", err)
	}
	lockPatience = patience
	freed := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() { freed <- unix.Flock(int(stuck.Fd()), unix.LOCK_UN) })
	_, release, err := Take(dir, "a", pool)
	if err := errors.Join(err, <-freed); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
