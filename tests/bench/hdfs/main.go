// Command hdfs measures transfers from and to a real HDFS: muster's, Hadoop's own command and colinmarc's, each a
// process of its own, in one run: `make bench-hdfs`. What comes back is compared with what was sent, outside the
// measured time.
//
//	hdfs DIR TRANSFER COLINMARC ROUNDS    DIR is for data; the programs are those of the contenders, who take turns
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hdfs:", err)
		os.Exit(1)
	}
}

// load is what is moved.
type load struct {
	name  string
	files int
	size  int64 // of each, in bytes
	least int   // rounds: what is short varies more
}

var loads = []load{{"1,000 files of 64 KB", 1000, 64 << 10, 1}, {"one file of 2 GB", 1, 2 << 30, 5}}

// contender moves folders by a process of its own.
type contender struct {
	name     string
	get, put func(from, to string) *exec.Cmd
}

// cost is what a process took.
type cost struct {
	Wall, CPU time.Duration
	Peak      int64 // resident, in bytes
}

type bench struct {
	dir        string
	cluster    *hadoop.Cluster
	contenders []contender
}

func run(args []string) error {
	if len(args) > 1 && args[0] == takeVerb {
		return take(exec.Command(args[1], args[2:]...), os.Stdout)
	}
	if len(args) != 4 {
		return errors.New("usage: hdfs DIR TRANSFER COLINMARC ROUNDS")
	}
	rounds, err := strconv.Atoi(args[3])
	if err != nil || rounds < 1 {
		return fmt.Errorf("got %s rounds, want at least 1", args[3])
	}
	at := filepath.Join(args[0], "hdfs")
	if err := os.Mkdir(at, 0o755); err != nil { //nolint:gosec // daemons of the same user
		return err
	}
	cluster, err := hadoop.Make(at, hadoop.Options{})
	if err != nil {
		return err
	}
	defer cluster.End()
	b := bench{dir: args[0], cluster: cluster, contenders: contenders(cluster, args[1], args[2])}
	for _, l := range loads {
		if err := b.measure(l, max(rounds, l.least)); err != nil {
			return err
		}
	}
	return nil
}

func contenders(c *hadoop.Cluster, transfer, colinmarc string) []contender {
	shell := func(options ...string) func(verb string) func(from, to string) *exec.Cmd {
		return func(verb string) func(from, to string) *exec.Cmd {
			return func(from, to string) *exec.Cmd {
				return c.HDFS(slices.Concat([]string{"dfs", verb}, options, []string{from, to})...)
			}
		}
	}
	program := func(path, verb string, names func(string) string) func(from, to string) *exec.Cmd {
		return func(from, to string) *exec.Cmd {
			cmd := exec.Command(path, verb, names(from), names(to))
			cmd.Env = c.Environ()
			return cmd
		}
	}
	same := func(name string) string { return name }
	// what begins so is on HDFS; the others take fs.defaultFS, muster's stage a URL
	url := func(name string) string {
		if filepath.Dir(filepath.Dir(name)) == remote {
			return c.URI + name
		}
		return name
	}
	plain, ten := shell(), shell("-t", "10")
	return []contender{
		{"muster", program(transfer, "get", url), program(transfer, "put", url)},
		{"hdfs dfs", plain("-get"), plain("-put")},
		{"hdfs dfs -t 10", ten("-get"), ten("-put")},
		{"colinmarc's hdfs", program(colinmarc, "get", same), program(colinmarc, "put", same)},
	}
}

// beside is the contender whose rate is the measure: Hadoop's own command as people type it.
const beside = 1

// remote is the folder on HDFS; below it each contender has one.
const remote = "/bench"

// measure has all contenders send and bring a load, several times, and prints the median of each.
func (b *bench) measure(l load, rounds int) error {
	local := filepath.Join(b.dir, "load")
	if err := fill(local, l); err != nil {
		return err
	}
	want, err := sum(local)
	if err != nil {
		return err
	}
	puts, gets := make([][]cost, len(b.contenders)), make([][]cost, len(b.contenders))
	for round := range rounds {
		for i := range b.contenders {
			if round%2 == 1 { // nobody always comes after the same one
				i = len(b.contenders) - 1 - i
			}
			c := b.contenders[i]
			put, get, err := b.there(c, strconv.Itoa(i), local, want)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, l.name, err)
			}
			puts[i], gets[i] = append(puts[i], put), append(gets[i], get)
		}
	}
	b.print(l, "down", gets)
	b.print(l, "up", puts)
	return os.RemoveAll(local)
}

// there sends a folder and brings it back.
func (b *bench) there(c contender, name, local string, want uint32) (put, get cost, err error) {
	away, back := remote+"/"+name+"/load", filepath.Join(b.dir, "back")
	defer func() {
		_, gone := b.take(b.cluster.HDFS("dfs", "-rm", "-r", "-skipTrash", remote+"/"+name))
		err = errors.Join(err, gone, os.RemoveAll(back))
	}()
	if _, err := b.take(b.cluster.HDFS("dfs", "-mkdir", "-p", remote+"/"+name)); err != nil {
		return put, get, err
	}
	if put, err = b.take(c.put(local, away)); err != nil {
		return put, get, err
	}
	if get, err = b.take(c.get(away, back)); err != nil {
		return put, get, err
	}
	if got, err := sum(back); err != nil || got != want {
		return put, get, fmt.Errorf("what came back has CRC32C %08x, want %08x: %w", got, want, err)
	}
	return put, get, nil
}

// take has a command run to its end by this program under another verb. The kernel takes who starts a process for a
// part of it until its exec, memory and all (getrusage(2)), so a small one must.
func (b *bench) take(cmd *exec.Cmd) (c cost, err error) {
	self, err := os.Executable()
	if err != nil {
		return c, err
	}
	syscall.Sync() // what the last one has written is not this one's to wait for
	runner := exec.Command(self, append([]string{takeVerb, cmd.Path}, cmd.Args[1:]...)...)
	var said, told bytes.Buffer
	runner.Env, runner.Stdout, runner.Stderr = cmd.Env, &told, &said
	if err := runner.Run(); err != nil {
		return c, fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, said.Bytes())
	}
	return c, json.Unmarshal(told.Bytes(), &c)
}

// takeVerb runs a command, its output to stderr, and prints what it cost.
const takeVerb = "take"

func take(cmd *exec.Cmd, to io.Writer) error {
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	begun := time.Now()
	err := cmd.Run()
	wall := time.Since(begun)
	if err != nil {
		return err
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not tell what a process used")
	}
	return json.NewEncoder(to).Encode(cost{
		wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
		used.Maxrss << 10,
	})
}

func (b *bench) print(l load, way string, all [][]cost) {
	fmt.Printf("\n%s, %s; median of %d rounds\n\n| | seconds | from – to | MB/s | files/s | rate beside %s | "+
		"processors, seconds | peak memory, MiB |\n|---|---|---|---|---|---|---|---|\n",
		l.name, way, len(all[0]), b.contenders[beside].name)
	other := median(all[beside]).Wall.Seconds()
	for i, costs := range all {
		m := median(costs)
		bytes, s := float64(l.files)*float64(l.size), m.Wall.Seconds()
		quickest, slowest := slices.MinFunc(costs, byWall).Wall.Seconds(), slices.MaxFunc(costs, byWall).Wall.Seconds()
		fmt.Printf("| %s | %.2f | %.2f – %.2f | %.0f | %.0f | %.1f | %.2f | %.0f |\n", b.contenders[i].name, s,
			quickest, slowest,
			bytes/s/1e6, float64(l.files)/s, other/s, m.CPU.Seconds(), float64(m.Peak)/(1<<20))
	}
}

// median is by the clock; the peak is the highest of all.
func median(costs []cost) cost {
	costs = slices.SortedFunc(slices.Values(costs), byWall)
	m := costs[len(costs)/2]
	for _, c := range costs {
		m.Peak = max(m.Peak, c.Peak)
	}
	return m
}

func byWall(a, b cost) int { return cmp.Compare(a.Wall, b.Wall) }

// fill writes a load of what does not compress.
func fill(dir string, l load) error {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as a job's folders are
		return err
	}
	random := rand.NewChaCha8([32]byte{1})
	for i := range l.files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("part-%05d", i)))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(f, 1<<20)
		_, err = io.CopyN(w, random, l.size)
		if err = errors.Join(err, w.Flush(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// sum is a CRC32C of all names and contents below a folder.
func sum(dir string) (uint32, error) {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fmt.Fprintf(h, "%s\x00", d.Name())
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, f)
		return err
	})
	return h.Sum32(), err
}
