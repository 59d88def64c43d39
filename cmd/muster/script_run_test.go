package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// What scripts need that run whole apps: a program that asserts an exit code and can run beside the script, a wait for
// what is going to stand in a file, and a look into JSON.

// scriptWatchdog ends what has gone wrong and is part of no promise.
const scriptWatchdog = time.Minute

// expects is a program: `expects CODE COMMAND ARG…` runs the command, hands INT and TERM on to it, and succeeds when it
// ends with that code, 128+n for signal n. The command dies with it.
func expects() {
	code, err := expect(os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "expects:", err)
		os.Exit(1)
	case strconv.Itoa(code) != os.Args[1]:
		fmt.Fprintf(os.Stderr, "expects: exit code %d, want %s\n", code, os.Args[1])
		os.Exit(1)
	}
}

func expect(args []string) (code int, err error) {
	if len(args) < 2 {
		return 0, errors.New("usage: expects CODE COMMAND [ARG]")
	}
	runtime.LockOSThread() // the parent-death signal belongs to the thread that forks (prctl(2))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	dog := time.NewTimer(3 * scriptWatchdog)
	for {
		select {
		case sig := <-signals:
			if err := cmd.Process.Signal(sig); err != nil {
				return 0, err
			}
		case <-dog.C:
			return 0, errors.Join(fmt.Errorf("not ended after %s", 3*scriptWatchdog), cmd.Process.Signal(syscall.SIGTERM))
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 0, err
			}
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				return 128 + int(ws.Signal()), nil
			}
			return cmd.ProcessState.ExitCode(), nil
		}
	}
}

// waitFile waits until a file has a line that matches: `waitfile PATH REGEXP`.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfile PATH REGEXP")
	}
	form, err := regexp.Compile(`(?m)` + args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(scriptWatchdog)
	defer dog.Stop()
	for {
		text, err := os.ReadFile(path)
		if err == nil && form.Match(text) {
			return
		}
		select {
		case <-poll.C:
		case <-dog.C:
			ts.Fatalf("%s: nothing like %s came within %s: %v\n%s", args[0], args[1], scriptWatchdog, err, text)
		}
	}
}

// keepKeys writes all that a registry holds into a file, unpacked: `keys SOCKET FILE`.
func keepKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keys SOCKET FILE")
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", ts.MkAbs(args[0]))
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://registry/v1/kv/muster/?recurse", nil)
	ts.Check(err)
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	var pairs []struct {
		Key   string
		Value []byte
	}
	ts.Check(json.NewDecoder(resp.Body).Decode(&pairs))
	var text bytes.Buffer
	for _, p := range pairs {
		value := packedText.ReplaceAllFunc(unpacked(p.Value), func(packed []byte) []byte {
			plain, err := base64.StdEncoding.DecodeString(string(packed))
			ts.Check(err)
			return unpacked(plain)
		})
		fmt.Fprintf(&text, "%s %s\n", p.Key, value)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text.Bytes(), 0o600))
}

// packedText is gzip in base64, as it stands inside of JSON.
var packedText = regexp.MustCompile(`\bH4sI[A-Za-z0-9+/]{20,}=*`)

// unpacked is what gzip has packed; anything else as it is.
func unpacked(value []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return value
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return value
	}
	return plain
}

// fields asserts values in a JSON file: `fields FILE PATH=TEXT…`. A path is names and indexes with dots between, its
// last part may be length for how many there are; strings are compared without their quotes, the rest as JSON.
func fields(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fields FILE PATH=TEXT...")
	}
	var root any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &root); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	for _, arg := range args[1:] {
		path, want, ok := strings.Cut(arg, "=")
		if !ok {
			ts.Fatalf("%s: want PATH=TEXT", arg)
		}
		got, err := field(root, strings.Split(path, "."))
		if err != nil {
			ts.Fatalf("%s: %s: %v", args[0], path, err)
		}
		if got != want {
			ts.Fatalf("%s: %s: got %s, want %s", args[0], path, got, want)
		}
	}
}

func field(at any, path []string) (string, error) {
	if len(path) == 0 {
		if s, ok := at.(string); ok {
			return s, nil
		}
		text, err := json.Marshal(at)
		return string(text), err
	}
	switch v := at.(type) {
	case map[string]any:
		next, ok := v[path[0]]
		if !ok {
			return "", fmt.Errorf("no %s", path[0])
		}
		return field(next, path[1:])
	case []any:
		if path[0] == "length" {
			return strconv.Itoa(len(v)), nil
		}
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(v) {
			return "", fmt.Errorf("no %s among %d", path[0], len(v))
		}
		return field(v[i], path[1:])
	}
	return "", fmt.Errorf("no %s in %v", path[0], at)
}
