package side

import "time"

// ProbeEvery is how often a side process that serves HTTP is asked for an answer.
const ProbeEvery = 5 * time.Second

// How long one may give none: until its first one it may load its libraries and logs.
const (
	firstAnswer = 2 * time.Minute
	laterAnswer = 30 * time.Second
)

// Unresponsive tells that a side process that serves HTTP has given no answer for too long. since is the time from its
// start or its last answer.
func Unresponsive(answered bool, since time.Duration) bool {
	if answered {
		return since >= laterAnswer
	}
	return since >= firstAnswer
}
