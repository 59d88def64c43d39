package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// client submits by sbatch; scontrol and scancel tell of the job and end it.
type client struct {
	// Script is what room render wrote.
	Script string

	job.Runner
	id, cluster string
}

// Start submits the script and returns the job's id.
func (s *client) Start(ctx context.Context) (id string, err error) {
	said, err := s.Send(ctx, s.Script, "sbatch", "--parsable")
	if err != nil {
		return "", fmt.Errorf("slurm: %w", err)
	}
	id, s.cluster, _ = strings.Cut(strings.TrimSpace(said), ";")
	if !wholeNumber.MatchString(id) {
		return "", fmt.Errorf("slurm: %w: sbatch --parsable says %q, want a job's number",
			job.ErrUnknown, job.OneLine(said))
	}
	s.id = id
	return s.id, nil
}

var wholeNumber = regexp.MustCompile(`^[0-9]+$`)

// of is a command line of one of Slurm's clients, of the job's cluster.
func (s *client) of(words ...string) []string {
	if s.cluster == "" {
		return words
	}
	return slices.Insert(words, 1, "--clusters="+s.cluster)
}

// State tells how the job stands, of a heterogeneous one all its parts.
func (s *client) State(ctx context.Context) (job.State, error) {
	said, err := s.Run(ctx, "", s.of("scontrol", "--oneliner", "show", "job", s.id)...)
	if errors.Is(err, job.ErrRefused) && strings.Contains(err.Error(), "Invalid job id") {
		return job.State{Word: "forgotten", Over: true, Why: "slurmctld does not know the job any more"}, nil
	}
	if err != nil {
		return job.State{}, fmt.Errorf("slurm: %w", err)
	}
	var states []job.State
	for line := range strings.Lines(said) {
		if state := stateOf(line); state.Word != "" {
			states = append(states, state)
		}
	}
	if len(states) == 0 {
		return job.State{}, fmt.Errorf("slurm: scontrol says %q of job %s, want JobState=…", job.OneLine(said), s.id)
	}
	return job.Together(states), nil
}

var field = regexp.MustCompile(`(?:^|\s)(JobState|Reason|ExitCode)=(\S+)`)

// overStates are the states that a job does not leave by itself (squeue(1), JOB STATE CODES); a requeued one is
// PENDING.
var overStates = []string{
	"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
	"PREEMPTED", "TIMEOUT", "REVOKED",
}

// stateOf reads a line of scontrol.
func stateOf(line string) job.State {
	fields := map[string]string{}
	for _, m := range field.FindAllStringSubmatch(line, -1) {
		if _, twice := fields[m[1]]; !twice {
			fields[m[1]] = m[2]
		}
	}
	state := job.State{Word: fields["JobState"]}
	state.Over, state.OK = slices.Contains(overStates, state.Word), state.Word == "COMPLETED"
	if why := fields["Reason"]; why != "None" && why != "(null)" {
		state.Why = why
	}
	if state.Word == "TIMEOUT" {
		state.Why = "the time limit of the job is over"
	}
	if state.Over && !state.OK {
		state.Why = strings.TrimPrefix(state.Why+job.After(", exit code ", fields["ExitCode"]), ", ")
	}
	return state
}

// Stop cancels the job; its tasks get SIGTERM, and SIGKILL after KillWait.
func (s *client) Stop(ctx context.Context) error {
	if _, err := s.Run(ctx, "", s.of("scancel", s.id)...); err != nil {
		return fmt.Errorf("slurm: %w", err)
	}
	return nil
}

// Hints are the launcher's own commands that follow the job and end it; where its number is not known, all of the
// user's.
func (s *client) Hints() (follow, end string) {
	if s.id == "" {
		return "squeue --me --format='%i %j %T %V'", "scancel JOBID"
	}
	return strings.Join(s.of("scontrol", "show", "job", s.id), " ") + " (logs: the file that it names as StdOut)",
		strings.Join(s.of("scancel", s.id), " ")
}
