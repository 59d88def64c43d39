package registry

import (
	"fmt"
	"slices"
	"testing"
)

func reachRow(i int, addr, boot string) Row {
	return Row{Instance: Instance{Component: "w", Index: i}, Rank: i, Addr: addr, Boot: boot}
}

func names(rows []Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Instance.String())
	}
	slices.Sort(out)
	return out
}

func TestPeersToTry(t *testing.T) {
	done := reachRow(2, "10.0.0.3:1", "c")
	done.Done = true
	for _, tt := range []struct {
		name string
		rows []Row
		want []string // of w-0
	}{
		{"other hosts", []Row{reachRow(0, "10.0.0.1:1", "a"), reachRow(1, "10.0.0.2:1", "b"), reachRow(2, "10.0.0.3:1", "c")}, []string{"w-1", "w-2"}},
		{"one of each host", []Row{reachRow(0, "10.0.0.1:1", "a"), reachRow(1, "h2:1", "b"), reachRow(2, "h2:2", "b")}, []string{"w-1"}},
		{"not its own", []Row{reachRow(0, "10.0.0.1:1", "a"), reachRow(1, "10.0.0.1:2", "a")}, nil},
		{"its own address on another machine", []Row{reachRow(0, "172.17.0.1:1", "a"), reachRow(1, "172.17.0.1:2", "b")}, []string{"w-1"}},
		{"other addresses of one machine", []Row{reachRow(0, "10.0.0.1:1", "a"), reachRow(1, "10.0.0.2:1", "a")}, []string{"w-1"}},
		{"a loopback address of this machine", []Row{reachRow(0, "10.0.0.1:1", "a"), reachRow(1, "127.0.0.1:1", "a")}, nil},
		{"a loopback address elsewhere", []Row{reachRow(0, "10.0.0.1:1", "a"), reachRow(1, "127.0.0.1:1", "b")}, []string{"w-1"}},
		{"both on the loopback, apart", []Row{reachRow(0, "127.0.0.1:1", "a"), reachRow(1, "127.0.0.1:1", "b")}, []string{"w-1"}},
		{"machines that are not known", []Row{reachRow(0, "127.0.0.1:1", ""), reachRow(1, "127.0.0.1:2", "")}, nil},
		{"who has ended", []Row{reachRow(0, "10.0.0.1:1", "a"), done}, nil},
		{"no row of its own", []Row{reachRow(1, "10.0.0.1:1", "a")}, nil},
	} {
		got := PeersToTry(Roster{Rows: tt.rows}, Instance{Component: "w"}, 64)
		if !slices.Equal(names(got), tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, names(got), tt.want)
		}
	}
}

// In a large gang nobody tries all, and everybody is tried.
func TestEverybodyIsTried(t *testing.T) {
	const hosts, most = 1000, 64
	r := Roster{}
	for i := range hosts {
		r.Rows = append(r.Rows, reachRow(i, fmt.Sprintf("10.0.%d.%d:1", i/250, i%250), fmt.Sprint(i)))
	}
	tried := map[string]int{}
	for _, row := range r.Rows {
		rows := PeersToTry(r, row.Instance, most)
		if len(rows) != most {
			t.Fatalf("%s tries %d", row.Instance, len(rows))
		}
		for _, other := range rows {
			tried[other.Instance.String()]++
		}
	}
	for _, row := range r.Rows {
		if n := tried[row.Instance.String()]; n != most {
			t.Errorf("%s is tried by %d", row.Instance, n)
		}
	}
}

func TestOnLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.0.1.1": true, "[::1]:9": true, "::1": true, "localhost:1": true, "0.0.0.0:1": true,
		"10.0.0.1:1": false, "h7:1": false, "h7": false, "[2001:db8::1]:1": false, "": false,
	} {
		if got := (Row{Addr: addr}).OnLoopback(); got != want {
			t.Errorf("%q: %v, want %v", addr, got, want)
		}
	}
}

func TestSharesHost(t *testing.T) {
	ps := Row{Instance: Instance{Component: "ps"}, Boot: "a"}
	done := reachRow(4, "h", "a")
	done.Done = true
	r := Roster{Rows: []Row{ps, reachRow(0, "h", "a"), reachRow(1, "h", "a"), reachRow(2, "h", "b"), reachRow(3, "h", ""), done}}
	for in, want := range map[int][]string{0: {"w-1"}, 1: {"w-0"}, 2: nil, 3: nil, 9: nil} {
		if got := names(r.SharesHost(Instance{Component: "w", Index: in})); !slices.Equal(got, want) {
			t.Errorf("w-%d shares its host with %v, want %v", in, got, want)
		}
	}
	if got := r.SharesHost(ps.Instance); got != nil {
		t.Errorf("ps-0 shares with %v", names(got))
	}
	if got := bootOf("0d5c6f7e-1111-2222"); got != "0d5c6f7e-1111" {
		t.Errorf("bootOf = %q", got)
	}
}
