package prepare

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/plan"
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
