package prepare

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
)

func TestFindUser(t *testing.T) {
	a := accounts{
		passwd: []byte("root:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann:/home/ann:/bin/bash\nsvc:x:1000:7::/srv:/bin/false\n"),
		group:  []byte("root:x:0:\nusers:x:100:\nvideo:x:44:bob,ann\nrender:x:45:ann\n"),
	}
	zero := 0
	for _, tt := range []struct {
		text string
		lone *int
		want plan.UserFacts
		err  string
	}{
		{"ann", nil, plan.UserFacts{Name: "ann", Home: "/home/ann", UID: 1000, GID: 100, Groups: []int{44, 45}}, ""},
		{"1000", nil, plan.UserFacts{Name: "ann", Home: "/home/ann", UID: 1000, GID: 100, Groups: []int{44, 45}}, ""},
		{"svc", nil, plan.UserFacts{Name: "svc", Home: "/srv", UID: 1000, GID: 7}, ""},
		{"ann:video", nil, plan.UserFacts{Name: "ann", Home: "/home/ann", UID: 1000, GID: 44, Groups: []int{44, 45}}, ""},
		{"ann:9", nil, plan.UserFacts{Name: "ann", Home: "/home/ann", UID: 1000, GID: 9, Groups: []int{44, 45}}, ""},
		{"4242:4243", nil, plan.UserFacts{Home: "/", UID: 4242, GID: 4243}, ""},
		{"4242", &zero, plan.UserFacts{Home: "/", UID: 4242, GID: 0}, ""},
		{"4242", nil, plan.UserFacts{}, "want uid:gid"},
		{"eve", nil, plan.UserFacts{}, `user "eve"`},
		{"ann:nobody", nil, plan.UserFacts{}, `user "ann:nobody"`},
		{"4294967295:0", nil, plan.UserFacts{}, `user "4294967295:0"`},
	} {
		got, err := a.find(tt.text, tt.lone)
		if diff := cmp.Diff(got, tt.want); diff != "" || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q; (-got +want):\n%s", tt.text, err, tt.err, diff)
		}
	}
}

func TestReadAccounts(t *testing.T) {
	got, err := readAccounts(func(path string) (io.ReadCloser, error) {
		if path == "/etc/group" {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return io.NopCloser(bytes.NewReader([]byte("x"))), nil
	})
	if err != nil || string(got.passwd) != "x" || got.group != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := readAccounts(func(string) (io.ReadCloser, error) { return nil, fmt.Errorf("link: %w", syscall.ELOOP) }); err == nil {
		t.Error("a file that cannot be read is no file that is not there")
	}
}

// A definition under an agent that is root names users and groups of the host. It gets what the operator lists, or the
// user who has submitted the job.
func TestAttackUsersOfTheHost(t *testing.T) {
	host := accounts{
		passwd: []byte("root:x:0:0::/root:\ndaemon:x:1:1::/:\nalice:x:1000:1000::/:\nbob:x:1002:1002::/:\nnobody:x:65534:65534::/:\n"),
		group:  []byte("root:x:0:\nshadow:x:42:\nvideo:x:44:alice\nalice:x:1000:\nbob:x:1002:\n"),
	}
	listed := func(names []string, groups ...string) Config {
		var p policy.Policy
		p.Users.Names, p.Users.Groups, p.File = names, groups, "/etc/muster/policy.json"
		return Config{Policy: p}
	}
	for _, tt := range []struct {
		name string
		c    Config
		user plan.UserFacts
		want string // in the refusal; "": admitted
	}{
		{"nobody's word", listed(nil), plan.UserFacts{UID: 1000, GID: 1000}, `let the operator write {"version": 1, "users": {"names": ["alice"]}} to /etc/muster/policy.json`},
		{"nobody", listed(nil), plan.UserFacts{UID: 65534, GID: 65534}, `"names": ["nobody"]`},
		{"no account", listed(nil), plan.UserFacts{UID: 4242, GID: 4242}, `"names": ["4242"]`},
		{"the launcher's user", Config{Submitter: "alice"}, plan.UserFacts{UID: 1000, GID: 1000, Groups: []int{44}}, ""},
		{"another than the launcher's", Config{Submitter: "alice"}, plan.UserFacts{UID: 1002, GID: 1002}, "uid 1002"},
		{"a launcher's system user", Config{Submitter: "daemon"}, plan.UserFacts{UID: 1, GID: 1}, "uid 1:"},
		{"by name", listed([]string{"alice"}), plan.UserFacts{UID: 1000, GID: 1000, Groups: []int{44}}, ""},
		{"by number", listed([]string{"1000"}), plan.UserFacts{UID: 1000, GID: 1000}, ""},
		{"by range", listed([]string{"1000-59999"}), plan.UserFacts{UID: 1002, GID: 1002}, ""},
		{"beside the range", listed([]string{"1000-59999"}), plan.UserFacts{UID: 65534, GID: 65534}, "uid 65534"},
		{"group shadow", listed([]string{"bob"}), plan.UserFacts{UID: 1002, GID: 42}, `"users": {"groups": ["42"]}`},
		{"neither the user nor its groups", listed(nil), plan.UserFacts{UID: 1002, GID: 42, Groups: []int{44}}, `who is not in group 42 and 44: leave muster.user out, or let the operator write {"version": 1, "users": {"names": ["bob"], "groups": ["42", "44"]}} to `},
		{"group shadow of an image's files", listed([]string{"bob"}), plan.UserFacts{UID: 1002, GID: 1002, Groups: []int{42}}, "group 42"},
		{"another's group", listed([]string{"bob"}), plan.UserFacts{UID: 1002, GID: 1002, Groups: []int{44}}, "group 44"},
		{"root's group", listed([]string{"bob"}), plan.UserFacts{UID: 1002, GID: 0}, "group 0"},
		{"a listed group", listed([]string{"bob"}, "video"), plan.UserFacts{UID: 1002, GID: 44}, ""},
		{"an image's name", listed([]string{"alice"}), plan.UserFacts{Name: "alice", UID: 1, GID: 1}, "uid 1:"},
	} {
		err := New(tt.c).admits(tt.user, host)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A definition cannot have the agent raise what tells on the host's other processes; the operator can let it. What the
// agent has itself, and what counts within the process's own limits, needs no permission.
func TestAttackRaisesLimits(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTPRIO, &own); err != nil {
		t.Fatal(err)
	}
	if own.Max > 16 { // or unlimited
		own = unix.Rlimit{Cur: 16, Max: 16}
		if err := unix.Setrlimit(unix.RLIMIT_RTPRIO, &own); err != nil {
			t.Fatal(err)
		}
	}
	least, most := strconv.FormatUint(own.Max, 10), strconv.FormatUint(own.Max+1, 10)
	for _, tt := range []struct {
		name, value string
		permitted   []string
		want        string
	}{
		{"rtprio", most, nil, "muster.ulimit.rtprio " + most + `: above this agent's own limit, and it tells on the whole host: let the ` +
			`operator write {"version": 1, "ulimits": ["rtprio"]} to /p`},
		{"rtprio", "1:unlimited", []string{"nice"}, "muster.ulimit.rtprio"},
		{"rtprio", most, []string{"rtprio"}, ""},
		{"rtprio", least, nil, ""},
		{"nofile", "unlimited", nil, ""},
	} {
		c := New(Config{Policy: policy.Policy{File: "/p", Ulimits: tt.permitted}})
		p := plan.Plan{}
		p.Limits.Ulimits = map[string]string{tt.name: tt.value}
		err := c.admitLimits(p)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s=%s with %q: got %v, want %q", tt.name, tt.value, tt.permitted, err, tt.want)
		}
		c.Close()
	}
}
