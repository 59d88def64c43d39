package plan

import (
	"net/netip"

	"github.com/muster-agent/muster/appdef"
)

// machineAddress warns of a host by name: LightGBM looks for its own addresses among those of the list of machines, and
// compares texts (src/network/linkers_socket.cpp of its sources). Where no host is known yet there is nothing to say.
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
