package subids

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/ownfolder"
)

// HostDir is where the table of this host lies. It outlives a restart of the host as the files of the apps do.
const HostDir = "/var/lib/muster/subids"

// entry is what the table says of an app.
type entry struct {
	Block int       `json:"block"`
	Used  time.Time `json:"used"` // when an agent last took it
}

// Take gives the app of a key its block: the one that it had, else one that no app has had, else the one that was used
// longest ago by an app without a living agent.
// The block is the agent's until release, or its end: then another app may get it once all others were used.
func Take(dir, key string, pool Pool) (_ Block, release func() error, err error) {
	fail := func(err error) error { return fmt.Errorf("subordinate ids: %w", err) }
	root, err := open(dir)
	if err != nil {
		return Block{}, nil, fail(err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	lock, err := root.OpenFile("lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return Block{}, nil, fail(err)
	}
	defer lock.Close()
	if err := await(lock); err != nil {
		return Block{}, nil, fail(err)
	}
	table, err := read(root)
	if err != nil {
		return Block{}, nil, fail(err)
	}
	number, held, err := choose(root, table, key, pool)
	if err != nil {
		return Block{}, nil, fail(err)
	}
	table[key] = entry{Block: number, Used: time.Now().UTC()}
	if err := write(root, table); err != nil {
		return Block{}, nil, fail(errors.Join(err, held.Close()))
	}
	return pool.block(number), held.Close, nil
}

// lockPatience is the limit for the table's lock, which an agent holds for milliseconds.
var lockPatience = 30 * time.Second

// await locks the table's file. An agent that is stuck while it holds the lock must not hold up all other starts.
func await(lock *os.File) error {
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("lock %s: another agent has held it for %v: end the agent that fuser names for this "+
				"file, then start again", lock.Name(), lockPatience)
		}
	}
}

// open opens the folder of the table, which is root's alone. Others pass above it to the work folders of apps.
func open(dir string) (*os.Root, error) {
	above := filepath.Dir(dir)
	if err := ownfolder.Make(filepath.Dir(above), filepath.Base(above), filepath.Base(dir)); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

const tableName = "blocks.json"

func read(root *os.Root) (map[string]entry, error) {
	table := map[string]entry{}
	text, err := root.ReadFile(tableName)
	if errors.Is(err, fs.ErrNotExist) {
		return table, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &table)
	}
	if err == nil {
		err = check(table)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; remove it when no agent runs", filepath.Join(root.Name(), tableName), err)
	}
	return table, nil
}

// check refuses a damaged table: blocks before the first would be ids of the host's users, root among them.
func check(table map[string]entry) error {
	owner := map[int]string{}
	for app, e := range table {
		if e.Block < 0 {
			return fmt.Errorf("block %d of %q: want one from 0 on", e.Block, app)
		}
		if other, had := owner[e.Block]; had {
			return fmt.Errorf("block %d of %q and %q: want one app's", e.Block, app, other)
		}
		owner[e.Block] = app
	}
	return nil
}

func write(root *os.Root, table map[string]entry) error {
	text, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return err
	}
	const unfinished = tableName + ".new"
	if err := root.WriteFile(unfinished, text, 0o600); err != nil {
		return err
	}
	return root.Rename(unfinished, tableName)
}

// choose finds a block for the key and holds it.
func choose(root *os.Root, table map[string]entry, key string, pool Pool) (int, *os.File, error) {
	accounts, err := readAccounts("/etc/passwd", "/etc/group")
	if err != nil {
		return 0, nil, err
	}
	if e, ok := table[key]; ok && e.Block < pool.Blocks() && !accounts.in(pool.block(e.Block)) {
		held, err := hold(root, e.Block, unix.LOCK_SH)
		return e.Block, held, err
	}
	owner := map[int]string{}
	for app, e := range table {
		owner[e.Block] = app
	}
	for number := range pool.Blocks() {
		if _, had := owner[number]; !had && !accounts.in(pool.block(number)) {
			held, err := hold(root, number, unix.LOCK_SH)
			return number, held, err
		}
	}
	return reuse(root, table, owner, pool, accounts)
}

// reuse takes the block that was used longest ago by an app that has no living agent.
func reuse(
	root *os.Root, table map[string]entry, owner map[int]string, pool Pool, accounts ids,
) (int, *os.File, error) {
	for len(owner) > 0 {
		oldest := -1
		for number, app := range owner {
			if oldest < 0 || table[app].Used.Before(table[owner[oldest]].Used) {
				oldest = number
			}
		}
		app := owner[oldest]
		delete(owner, oldest)
		if oldest >= pool.Blocks() || accounts.in(pool.block(oldest)) {
			continue
		}
		held, err := hold(root, oldest, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			err = unix.Flock(int(held.Fd()), unix.LOCK_SH)
		}
		delete(table, app)
		return oldest, held, err
	}
	return 0, nil, fmt.Errorf("all %d blocks are in use by living agents: give %s more ids in /etc/subuid and "+
		"/etc/subgid", pool.Blocks(), account)
}

// hold locks the file of a block until it is closed.
func hold(root *os.Root, number, how int) (*os.File, error) {
	file, err := root.OpenFile(strconv.Itoa(number), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), how); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
