package appdef

import (
	"strconv"
	"strings"
)

// shapeKeys describe the gang.
func shapeKeys() []Key {
	return []Key{
		{
			Name: "muster.framework", Default: "auto", Global: true,
			Meaning: "which environment to build: auto, " + strings.Join(Frameworks(), ", "),
			Values:  append([]string{"auto"}, Frameworks()...),
			app:     (*AppSettings).setFramework,
		},
		{
			Name: "muster.cluster.export", Default: "the first compExport of the form host:port",
			Meaning: "the export that is the member's address in the ClusterSpec, written GROUP-EXPORT",
			component: func(c *Component, _, text string) error {
				c.Settings.ClusterExport.Name = text // split once the groups are known
				return notEmpty(text)
			},
		},
		{
			Name: "muster.address", Default: "host", Global: true, Values: []string{"host", AddressDNS},
			Meaning: "how members address each other. host: by the host's address; dns: by a name in Consul, which " +
				"stays valid when the member moves (for programs that resolve names again)",
			app: (*AppSettings).setAddress,
		},
		{
			Name: "muster.role", Default: "by the component's name",
			Meaning: "the role of the component: chief, worker, ps, evaluator or service. The barrier waits for " +
				"all roles but service; chiefs and workers end the job",
			Values: []string{"chief", "worker", "ps", "server", "evaluator", "service"},
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Role, err = parseRole(text)
				return err
			},
		},
	}
}

func restartKeys() []Key {
	restart := func(set func(r *Restart, text string) error) func(*Component, string, string) error {
		return func(c *Component, _, text string) error { return set(&c.Settings.Restart, text) }
	}
	return []Key{
		{
			Name: "muster.restart", Default: "instance for parameter servers, services and no framework, else gang",
			Meaning: "what restarts when a process fails: instance (the process alone), gang (all processes) or " +
				"never",
			component: restart((*Restart).setScope),
			Values:    []string{"instance", "gang", "never"},
		},
		{
			Name: "muster.restart.budget", Default: "5",
			Meaning:   "how many restarts the window allows; -1: no limit",
			component: restart((*Restart).setBudget),
		},
		{
			Name: "muster.restart.window", Default: "5m",
			Meaning:   "how long a restart counts against the budget; 0: for ever",
			component: restart((*Restart).setWindow),
		},
		{
			Name: "muster.restart.backoff", Default: "1s..1m",
			Meaning: "the pause before a restart that follows another within muster.restart.window; the first has " +
				"none. It doubles with each restart in a row, with jitter",
			component: restart((*Restart).setBackoff),
		},
		{
			Name: "muster.restart.refill", Default: "checkpoint",
			Meaning: "what resets the restart budget: checkpoint (a newer checkpoint) or never",
			Values:  []string{"checkpoint", "never"}, component: restart((*Restart).setRefill),
		},
		{
			Name: "muster.retry", Default: "0", Global: true,
			Meaning: "how often the whole gang restarts after its restart budget is spent. -1: no limit; -2: after " +
				"every end, also a success. Failures that the program did not cause (a lost host, an external " +
				"signal) do not count. Failures that would happen again (out of memory) are not retried",
			app: func(s *AppSettings, text string) (err error) { s.Retry, err = parseRetry(text); return err },
		},
	}
}

// endKeys say when the job ends and how a process is stopped.
func endKeys() []Key {
	return []Key{
		{
			Name: "muster.complete.minFailed", Default: "1", null: true,
			Meaning: "the job fails when this many instances of the component have failed; null: never",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Complete.MinFailed, err = parseCount(text)
				return err
			},
		},
		{
			Name: "muster.complete.minSucceeded", Default: "all chief and worker instances", null: true,
			Meaning: "the job ends when this many instances of the component have succeeded; null: no number ends " +
				"it",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Complete.MinSucceeded, err = parseCount(text)
				return err
			},
		},
		{
			Name: "muster.complete.total.minFailed", Default: "none", Global: true,
			Meaning: "the job fails when this many instances of the whole app have failed: a number, or a share " +
				"such as 50%. Services and evaluators do not count",
			app: (*AppSettings).setTotalFailed,
		},
		{
			Name: "muster.complete.total.minSucceeded", Default: "none", Global: true,
			Meaning: "the job ends when this many instances of the whole app have succeeded; 0: no number ends it. " +
				"Services and evaluators do not count",
			app: func(s *AppSettings, text string) (err error) {
				s.Total.MinSucceeded, err = atLeast(0, text)
				return err
			},
		},
		{
			Name: "muster.stop.signal", Default: "TERM", Meaning: "the signal that asks a process to end",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Stop.Signal, err = wantSignal(text)
				return err
			},
		},
		{
			Name: "muster.stop.grace", Default: "the kill window less 2 s, at most 30 s",
			Meaning:   "how long a process may take to end before it is killed",
			component: func(c *Component, _, text string) error { return setLimit(&c.Settings.Stop.Grace, text) },
		},
	}
}

func timeKeys() []Key {
	app := func(at func(*AppSettings) *Seconds) func(*AppSettings, string) error {
		return func(s *AppSettings, text string) error { return setDuration(at(s), text) }
	}
	return []Key{
		{
			Name: "muster.barrier.timeout", Default: "30m", Global: true,
			Meaning: "how long the gang may take to become complete",
			app:     func(s *AppSettings, text string) error { return setLimit(&s.Barrier, text) },
		},
		{
			Name: "muster.stage.timeout", Default: "30m", Global: true,
			Meaning: "how long downloading inputs and codeDir may take, and uploading or saving outputs",
			app:     func(s *AppSettings, text string) error { return setLimit(&s.StageTimeout, text) },
		},
		{
			Name: "muster.timeout", Default: "none", Global: true,
			Meaning: "how long the whole run may take; 0: no limit",
			app:     app(func(s *AppSettings) *Seconds { return &s.Timeout }),
		},
		{
			Name: "muster.duration", Default: "none", Global: true, Meaning: "how long a process may run; 0: no limit",
			app: app(func(s *AppSettings) *Seconds { return &s.Duration }),
		},
		{
			Name: "muster.silence", Default: "10m for chiefs, workers and evaluators, else 0",
			Meaning: "warn when a running process has written nothing, saved no checkpoint and reported no progress " +
				"for this long; nothing is done to the process. 0: never",
			component: func(c *Component, _, text string) error {
				err := setDuration(&c.Settings.Silence, text)
				if c.Settings.Silence == 0 {
					c.Settings.Silence = -1
				}
				return err
			},
		},
		{
			Name: "muster.store", Default: "none", Global: true,
			Meaning: "where muster submit puts the files that the hosts of a run need: hdfs:, or a folder that all " +
				"hosts share",
			app: setStore,
		},
		{
			Name: "muster.hold", Default: "0",
			Meaning: "how long the container of a failed process is kept, with all that it holds, for muster exec to " +
				"look; muster hold extends and releases it. Not of services. 0: not at all",
			component: func(c *Component, _, text string) error { return setDuration(&c.Settings.Hold, text) },
		},
		{
			Name: "muster.hold.gang", Default: "wait",
			Meaning: "with muster.hold: wait (the failure counts when the container is released), or end (it counts " +
				"at once, and the container is kept if the run fails by it)",
			Values: []string{"wait", "end"},
			component: func(c *Component, _, text string) error {
				if text != "wait" && text != "end" {
					return wanted{want: "wait or end"}
				}
				c.Settings.HoldEnds = text == "end"
				return nil
			},
		},
	}
}

func parseRetry(text string) (int, error) {
	n, err := ParseInt(text)
	if err != nil || n < RetryAlways {
		return 0, wanted{want: "a whole number, -2 or more"}
	}
	return n, nil
}

// setTotalFailed reads a number of instances, or a share of them in percent.
func (s *AppSettings) setTotalFailed(text string) error {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		f, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(f > 0 && f <= 100) {
			return wanted{want: "a share above 0% and up to 100%"}
		}
		s.Total.FailedShare = f / 100
		return nil
	}
	n, err := atLeast(0, text)
	if err != nil {
		return wanted{want: "a whole number, 0 or more, or a share such as 50%"}
	}
	s.Total.MinFailed = n
	return nil
}
