package plan

import (
	"net/netip"

	"github.com/muster-agent/muster/appdef"
)

// machineAddress warns about a host name: LightGBM looks for its own addresses in the list of machines, and compares
// texts (src/network/linkers_socket.cpp of its sources). While no host is known there is no warning.
func (b *builder) machineAddress() {
	host := b.req.Allocation.Host
	if b.app.Settings.Framework != "lightgbm" || host == "" || !trains(b.component) {
		return
	}
	if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
		b.warn(b.key("muster.framework"), "the host "+appdef.Quote(host), "an IPv4 address: --host",
			"LightGBM looks for its own addresses among those of the machines")
	}
}
