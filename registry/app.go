package registry

import (
	"fmt"
	"time"
)

// AppRecord is the key `app`: which definition this app id runs. Only a new run changes it.
type AppRecord struct {
	Version int            `json:"version"`
	Run     string         `json:"run"`
	Digest  string         `json:"digest"`
	Def     string         `json:"def,omitempty"`    // resolved App: gzip, base64
	DefID   string         `json:"def_id,omitempty"` // of a Def too long to stand here: its chunks are def/<id>/<n>
	Counts  map[string]int `json:"counts"`
	Created time.Time      `json:"created"`
	By      string         `json:"by"`
	Token   string         `json:"token,omitempty"` // what agents of the run show each other from host to host
	Times   AgreedTimes    `json:"times,omitzero"`
}

// AgreedTimes are those, in seconds, that all agents of a run must share: a conductor with a shorter grace than a
// member reckons with would replace it while its process lives.
type AgreedTimes struct {
	TTL      float64 `json:"ttl"`
	Lost     float64 `json:"lost"`
	LostMass float64 `json:"lost_mass"`
}

func (t AgreedTimes) String() string {
	return fmt.Sprintf("--session-ttl %gs --lost-grace %gs --lost-mass %gs", t.TTL, t.Lost, t.LostMass)
}
