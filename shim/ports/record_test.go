package ports

import (
	"errors"
	"net"
	"strconv"
	"testing"
)

// TestAttackPortOfARecord: the preferred number comes from the registry. One outside of the operator's range is not
// taken.
func TestAttackPortOfARecord(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := net.SplitHostPort(free.Addr().String())
	outside, err := strconv.Atoi(text)
	if err := errors.Join(err, free.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := ParseRanges("20000-29999")
	if err != nil || r.Contains(outside) {
		t.Fatalf("the kernel gave %d, a port of the range", outside)
	}
	held, err := Claim(r, []Want{{Name: "p"}}, map[string]int{"p": outside})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if got := held.Ports()["p"]; !r.Contains(got) {
		t.Errorf("got port %d, outside of %s", got, r)
	}
}

// What the launcher has reserved lies where the launcher's ports do.
func TestGrantedPortLiesAnywhere(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := net.SplitHostPort(free.Addr().String())
	granted, err := strconv.Atoi(text)
	if err := errors.Join(err, free.Close()); err != nil {
		t.Fatal(err)
	}
	held, err := Claim(ranges(t, "20000-29999"), []Want{{Name: "p", Granted: granted}}, map[string]int{"p": 20001})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if got := held.Ports()["p"]; got != granted {
		t.Errorf("got port %d, want the launcher's %d", got, granted)
	}
}
