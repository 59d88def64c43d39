package consulhttp

import (
	"net/http"
	"testing"
)

// Server is a registry under test.
type Server struct {
	// URL begins every request: http://HOST:PORT.
	URL string
	// Client makes the requests; nil is one of its own.
	Client *http.Client
}

// Case is one test. Cases work under keys of their own, so many may run on one server at a time.
type Case struct {
	Name string
	// Slow cases wait for seconds of the server's clock. They start no subtests, so they may run
	// inside a testing/synctest bubble together with their server.
	Slow bool
	Run  func(*testing.T, Server)
}

// Cases are all tests of the suite.
func Cases() []Case {
	return []Case{
		{Name: "keys", Run: keys},
		{Name: "missing key", Run: missingKey},
		{Name: "list", Run: list},
		{Name: "separator", Run: separator},
		{Name: "cas", Run: cas},
		{Name: "indexes", Run: indexes},
		{Name: "delete", Run: deletion},
		{Name: "index does not fall", Run: indexDoesNotFall},
		{Name: "value sizes", Run: valueSizes},
		{Name: "bad requests", Run: badRequests},
		{Name: "lock", Run: lock},
		{Name: "lock index", Run: lockIndex},
		{Name: "lock delay", Run: lockDelay},
		{Name: "session", Run: session},
		{Name: "session defaults", Run: sessionDefaults},
		{Name: "session refused", Run: sessionRefused},
		{Name: "session deletes", Run: sessionDeletes},
		{Name: "session releases", Run: sessionReleases},
		{Name: "txn verbs", Run: txnVerbs},
		{Name: "txn refused", Run: txnRefused},
		{Name: "txn whole or nothing", Run: txnWhole},
		{Name: "txn limits", Run: txnLimits},
		{Name: "txn bad body", Run: txnBadBody},
		{Name: "protocol", Run: protocol},
		{Name: "one founder", Run: oneFounder},
		{Name: "cas counter", Run: casCounter},
		{Name: "wake by write", Run: wakeByWrite},
		{Name: "wake of a list", Run: wakeOfList},
		{Name: "wake at the end of a session", Run: wakeAtSessionEnd},
		{Name: "old index answers at once", Run: oldIndex},
		{Name: "self", Run: self},
		{Name: "session expires", Slow: true, Run: sessionExpires},
		{Name: "session renewed", Slow: true, Run: sessionRenewed},
		{Name: "wait ends", Slow: true, Run: waitEnds},
		{Name: "index of the future", Slow: true, Run: futureIndex},
		{Name: "neighbours do not end a wait", Slow: true, Run: neighbours},
		{Name: "lock delay ends", Slow: true, Run: lockDelayEnds},
	}
}

// Run runs all cases side by side against one server, without the slow ones in short mode.
func Run(t *testing.T, open func(testing.TB) Server) {
	s := open(t)
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if c.Slow && testing.Short() {
				t.Skip("slow: not in short mode")
			}
			t.Parallel()
			c.Run(t, s)
		})
	}
}
