package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Submit submits a batch script with further options of sbatch and returns the job's id. What it writes is in Output.
func (c *Cluster) Submit(script string, options ...string) string {
	c.t.Helper()
	f, err := os.CreateTemp(c.Dir, "job-*.sh")
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(script); err != nil {
		c.t.Fatal(err)
	}
	args := append([]string{"--parsable", "--open-mode=append", "--chdir=" + c.Dir, "--output=" +
		filepath.Join(c.Dir, "job-%j.out")}, options...)
	return strings.TrimSpace(c.Run("sbatch", append(args, f.Name())...))
}

// Output is what a job wrote to stdout and stderr, all its starts.
func (c *Cluster) Output(job string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "job-"+job+".out"))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// Job is what scontrol shows of one.
type Job struct {
	// State is PENDING, RUNNING, COMPLETING, COMPLETED, FAILED, CANCELLED, REQUEUED, …; of a heterogeneous job whose
	// parts differ all of them, with a + between.
	State, Reason string
	// Restarts is how often it was requeued and started again.
	Restarts int
	// Exit and Signal are its script's end.
	Exit, Signal int
	Nodes        string
}

// Job is a job now.
func (c *Cluster) Job(id string) Job {
	c.t.Helper()
	job, err := c.job(id)
	if err != nil {
		c.t.Fatal(err)
	}
	return job
}

func (c *Cluster) job(id string) (Job, error) {
	out, err := c.Try("scontrol", "--oneliner", "show", "job", id)
	if err != nil {
		return Job{}, err
	}
	var job Job
	for line := range strings.Lines(out) { // one for each part of a heterogeneous job
		part, err := jobOf(line)
		if err != nil {
			return job, err
		}
		switch {
		case job.State == "":
			job = part
		case job.State != part.State && part.State != "":
			job.State += "+" + part.State
		}
	}
	return job, nil
}

func jobOf(line string) (job Job, err error) {
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "JobState":
			job.State = value
		case "Reason":
			job.Reason = value
		case "NodeList":
			job.Nodes = value
		case "Restarts":
			job.Restarts, err = strconv.Atoi(value)
		case "ExitCode":
			_, err = fmt.Sscanf(value, "%d:%d", &job.Exit, &job.Signal)
		}
		if err != nil {
			return job, fmt.Errorf("%s: %w", field, err)
		}
	}
	return job, nil
}

// Await waits until see says yes to a job, and returns it. Slurm tells nobody of changes: it is asked.
func (c *Cluster) Await(id, what string, see func(Job) bool) Job {
	c.t.Helper()
	var job Job
	err := c.run.Await(watchdog, func() (err error) {
		if job, err = c.job(id); err == nil && !see(job) {
			err = fmt.Errorf("waited for %s; job %s is %+v", what, id, job)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return job
}

// AwaitState waits for a job's state.
func (c *Cluster) AwaitState(id, state string) Job {
	c.t.Helper()
	return c.Await(id, state, func(j Job) bool { return j.State == state })
}

// Cancel ends a job: TERM, and KILL after KillWait. It is CANCELLED then.
func (c *Cluster) Cancel(id string) {
	c.t.Helper()
	c.Run("scancel", id)
}

// Signal sends a signal, as USR1, to a job's steps, and to its script as well where batch is true.
func (c *Cluster) Signal(id, signal string, batch bool) {
	c.t.Helper()
	args := []string{"--signal=" + signal, id}
	if batch {
		args = append([]string{"--full"}, args...)
	}
	c.Run("scancel", args...)
}

// Requeue ends a job and puts it into the queue again, with the same id.
func (c *Cluster) Requeue(id string) {
	c.t.Helper()
	c.Run("scontrol", "requeue", id)
}

// StartNow takes away the two minutes for which Slurm holds a job back that was requeued. A node takes no job anew in
// the second in which it has killed it.
func (c *Cluster) StartNow(id string) {
	c.t.Helper()
	if err := c.run.Await(watchdog, func() error {
		if left := c.JobProcesses(id); len(left) > 0 {
			return fmt.Errorf("job %s has the processes %v", id, left)
		}
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	c.Run("scontrol", "update", "JobId="+id, "StartTime=now+2")
}

// JobProcesses are the pids, as this test sees them, of a job's script and steps.
func (c *Cluster) JobProcesses(id string) []int { return c.jail.ProcessesWith("SLURM_JOB_ID=" + id) }
