package side

import "time"

// HearEvery is how often a side process that serves HTTP is asked for an answer.
const HearEvery = 5 * time.Second

// How long one may give none: until its first one it may load its libraries and logs.
const (
	firstAnswer = 2 * time.Minute
	laterAnswer = 30 * time.Second
)

// Deaf tells that a side process that serves HTTP has given no answer for too long, since its start or its last answer.
func Deaf(answered bool, silent time.Duration) bool {
	if answered {
		return silent >= laterAnswer
	}
	return silent >= firstAnswer
}
