package registrytest_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// watchdog ends a wait that has gone wrong; nothing is measured by it.
const watchdog = 30 * time.Second

// server is a registry under test.
type server interface {
	// URL is the registry as `--registry` takes it.
	URL() string
}

// promise is one thing that a gang may rely on.
type promise struct {
	name string
	run  func(*testing.T, server)
}

// promises are kept by every registry. Each works on an app of its own, so that they may run beside each
// other on one server.
var promises = []promise{
	{"form", form},
	{"claim any", claimAny},
	{"founders at once", foundersAtOnce},
	{"succeeded", succeeded},
	{"finished run, same and new id", finished},
	{"failed member rebuilds", rebuilt},
	{"budget spent", budgetSpent},
	{"death by proof", deathByProof},
	{"death by proof, no index given", deathByProofUnnamed},
	{"second agent", secondAgent},
	{"standby", standby},
	{"digest differs", digestDiffers},
	{"another run", anotherRun},
	{"conductor dies", conductorDies},
	{"session ends behind the back", sessionEnds},
	{"superseded", superseded},
	{"leave", leave},
	{"checkpoint", checkpoint},
	{"late checkpoint", lateCheckpoint},
	{"interrupted", interrupted},
	{"said gone", saidGone},
	{"stop", stop},
	{"service", service},
	{"instance scope", instanceScope},
	{"forget", forget},
	{"large definition", largeDefinition},
	{"claimed while a new run begins", claimedMeanwhile},
	{"lost answers", lostAnswers},
	{"overtaken", overtaken},
	{"cost", cost},
	{"common step", commonStep},
	{"lost", lost},
	{"flex", flex},
	{"rewrites", rewrites},
	{"orders", orders},
	{"up once", upOnce},
	{"a finished run never lives again", finishedNeverLives},
	{"a verdict is there", verdictIsThere},
	{"asks of the last run", asksOfTheLastRun},
	{"asks of nobody", asksOfNobody},
	{"asked again", askedAgain},
	{"followed under a new leader", followedUnderANewLeader},
	{"reads are cut", readsAreCut},
	{"a roster over a slow link", slowRoster},
	{"checkpoints over a slow link", slowCheckpoints},
	{"many lost at once", manyLost},
	{"newer fields survive", newerFieldsSurvive},
	{"too old", tooOld},
	{"another run's conductor", anotherRunsConductor},
	{"data is deleted", dataDeleted},
	{"data is deleted, and a new leader", deletedUnderANewLeader},
	{"data went back", wentBack},
	{"data lost at the barrier", lostAtTheBarrier},
	{"founded anew", foundedAnew},
	{"founded anew for the next run", foundedForTheNextRun},
	{"another verdict stands", anotherVerdictStands},
	{"own record lost", ownRecordLost},
}

// run keeps all promises against one server.
func run(t *testing.T, s server) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t, s)
		})
	}
}

func TestEmbeddedUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.sock")
	l, err := embedded.ListenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, serveEmbedded(t, l, "unix:"+path))
}

func TestEmbeddedLoopback(t *testing.T) {
	l, err := embedded.ListenLoopback(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run(t, serveEmbedded(t, l, "consul://"+l.Addr().String()))
}

func TestConsul(t *testing.T) {
	run(t, consulserver.Start(t, consulserver.Options{}))
}

type at string

func (a at) URL() string { return string(a) }

func serveEmbedded(t testing.TB, l net.Listener, address string) server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := embedded.Serve(ctx, embedded.Options{Listener: l}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	return at(address)
}

func addressOf(t testing.TB, url string) registry.Address {
	t.Helper()
	a, err := registry.ParseAddress(url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
