package registry

import "time"

// Login is the key `login/<fingerprint>`: who may log in to the instances of a run by ssh.
type Login struct {
	Run string `json:"run"`
	Key string `json:"key"` // public half, as a line of authorized_keys
	By  string `json:"by"`  // who made it, for people
	// Until is when it ends, by the clock of the instance's host; zero: with the run.
	Until time.Time `json:"until,omitzero"`
	Later later     `json:"-"`
}
