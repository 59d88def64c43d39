package gang

import (
	"testing"

	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// scenario is one story about a gang.
type scenario struct {
	name string
	play func(*testing.T, place)
}

// everywhere are the stories that go the same way whatever the registry and whoever starts the agents.
func everywhere() []scenario {
	return []scenario{
		{"restart in place", restartInPlace},
		{"resume arguments", resumeArguments},
		{"resume arguments in the command", resumePlaceholders},
		{"budget spent", budgetSpent},
		{"budget refilled by a checkpoint", budgetRefilled},
		{"budget's window", budgetWindow},
		{"backoff", backoffGrows},
		{"address in use", addressInUse},
		{"gang scope", gangScope},
		{"gang scope, budget spent", gangBudgetSpent},
		{"never scope", neverScope},
		{"minFailed", minFailed},
		{"minSucceeded", minSucceeded},
		{"services", services},
		{"parameter servers and evaluators", rolesAtTheEnd},
		{"parameter server beyond its budget", parameterServerBeyondBudget},
		{"evaluator beyond its budget", evaluatorBeyondBudget},
		{"two failures at once", twoFailuresAtOnce},
		{"leftovers before a restart", leftoversBeforeRestart},
		{"muster.timeout", runsTooLong},
		{"staging fails", stagingFails},
		{"muster stop", stopVerb},
		{"muster stop in backoff", stopInBackoff},
		{"muster stop with grace zero", stopAtOnce},
		{"muster signal, ps, status, logs", verbs},
	}
}

// runs are the stories of muster run itself.
func runs() []scenario {
	return []scenario{
		{"Ctrl-C", ctrlC},
		{"TERM", runTerminated},
		{"second signal", runKilledBySecond},
		{"muster run is killed", runKilled},
		{"agent is killed", runRelaunches},
		{"again before the agents are gone", runTooSoon},
		{"same name while it runs", runTwice},
		{"same name after its end", runAgain},
	}
}

// TestEmbedded plays them as `muster run` on this machine.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	playAll(t, place{run: true}, append(everywhere(), runs()...))
}

// TestRunWithConsul plays as `muster run --registry`: the gang's memory outlives it.
func TestRunWithConsul(t *testing.T) {
	t.Parallel()
	at := place{consul: consulserver.Start(t, consulserver.Options{}), run: true}
	playAll(t, at, append(runs(), []scenario{
		{"gang scope", gangScope},
		{"budget spent", budgetSpent},
		{"gang backoff", gangBacksOff},
		{"muster stop", stopVerb},
		{"muster signal, ps, status, logs", verbs},
		{"TERM, and the budget is kept", runGoesOn},
	}...))
}

// TestConsul plays them as agents with a real Consul, and what only agents can show.
func TestConsul(t *testing.T) {
	t.Parallel()
	playAll(t, place{consul: consulserver.Start(t, consulserver.Options{})}, append(everywhere(), []scenario{
		{"the conductor is killed and stays away", conductorKilled},
		{"the conductor is killed and comes back", conductorReplaced},
		{"the conductor is killed and comes back, gang scope", conductorReplacedGang},
		{"second agent from a shell", secondAgentRefused},
		{"second agent under a launcher", secondAgentStandsBy},
		{"standby sees the verdict", standbyEnds},
		{"a launcher gets the process's output", launcherGetsOutput},
		{"logs from another host", logsElsewhere},
		{"a history without its hosts", historyAlone},
		{"figures from another host", figuresElsewhere},
		{"programs and signals from another host", actsElsewhere},
		{"every verb through a page", throughPage},
		{"another definition", anotherDefinition},
		{"an agent is killed, instance scope", agentKilledInstance},
		{"an agent is killed, gang scope", agentKilledGang},
		{"an agent is killed at the barrier", killedWhileWaiting},
		{"ports are taken meanwhile", portsTaken},
		{"an agent is killed after the end of its process", resultOutlivesAgent},
		{"an agent is frozen", agentFrozen},
		{"muster stop at the barrier", stopAtBarrier},
		{"agents' deaths spend the budget", agentDeathsSpend},
		{"all agents are killed", allKilled},
		{"all agents are killed, gang scope", allKilledGang},
		{"a finished app", finishedApp},
		{"exit code map", exitCodeMap},
		{"another run while one is unfinished", anotherRun},
		{"TERM to one agent", oneTerminated},
		{"TERM to one agent, gang scope", oneTerminatedGang},
		{"TERM to all agents", allTerminated},
		{"INT to all agents", allInterrupted},
		{"second TERM", secondTerm},
		{"the barrier's time-out", barrierTimeout},
		{"nobody replaces one that left", neverReplaced},
		{"claimed indexes", claimedIndexes},
	}...))
}

func playAll(t *testing.T, at place, all []scenario) {
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.play(t, at)
		})
	}
}
