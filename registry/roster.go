package registry

import (
	"net/netip"
	"strings"
)

// Row finds the row of an instance.
func (r Roster) Row(in Instance) (Row, bool) {
	for _, row := range r.Rows {
		if row.Instance == in {
			return row, true
		}
	}
	return Row{}, false
}

// HostOf cuts the port off `host:port` and the brackets off an IPv6 address.
func HostOf(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i >= 0 && (strings.Count(addr, ":") == 1 ||
		strings.HasPrefix(addr, "[") && !strings.HasSuffix(addr, "]")) {
		addr = addr[:i]
	}
	return strings.Trim(addr, "[]")
}

// OnLoopback tells whether no other host can reach the row's address.
func (r Row) OnLoopback() bool { return loopbackHost(r.Addr) }

func loopbackHost(addr string) bool {
	host := HostOf(addr)
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (a.IsLoopback() || a.IsUnspecified())
}

// SharesHost are the other rows of an instance's component on its machine: their boot ids are equal.
func (r Roster) SharesHost(in Instance) []Row {
	own, ok := r.Row(in)
	if !ok || own.Boot == "" {
		return nil
	}
	var rows []Row
	for _, row := range r.Rows {
		if row.Component == in.Component && row.Instance != in && row.Boot == own.Boot && !row.Done {
			rows = append(rows, row)
		}
	}
	return rows
}

// Row is one line of a roster.
type Row struct {
	Instance
	Rank    int               `json:"rank"`
	Role    string            `json:"role"`
	Inc     string            `json:"inc"`
	Addr    string            `json:"addr"` // host:port in the ClusterSpec; host alone without an export
	Ports   map[string]int    `json:"ports,omitempty"`
	Exports map[string]string `json:"exports,omitempty"`
	API     string            `json:"api,omitempty"`
	Peer    string            `json:"peer,omitempty"`
	Boot    string            `json:"boot,omitempty"` // the part of the boot id that distinguishes machines
	Done    bool              `json:"done,omitempty"` // it has ended for good and runs nothing (instance scope)
}

// Roster is the sealed membership of one generation, rows in rank order.
type Roster struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	Gen     int    `json:"gen"`
	Resume  *int64 `json:"resume,omitempty"`
	Rows    []Row  `json:"rows"`
}
