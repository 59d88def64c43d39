package registry

import "strings"

// A member's Peer is `host:port#KEY`: where its agent answers agents of other hosts, and the key that it must show
// there. Both are one text, for they go together through records, rows, seeds and redirects; and an agent of an earlier
// build, which would send the run's token without TLS, cannot dial it. A record of such an agent has no key.

// JoinPeer is the text of an address and a key.
func JoinPeer(hostPort, key string) string {
	if hostPort == "" || key == "" {
		return hostPort
	}
	return hostPort + "#" + key
}

// SplitPeer is the address and the key of a member's Peer; key is empty if it has none.
func SplitPeer(peer string) (hostPort, key string) {
	hostPort, key, _ = strings.Cut(peer, "#")
	return hostPort, key
}
