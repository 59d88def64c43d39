package registry

import (
	"fmt"
	"time"
)

// AppRecord is the key `app`: the definition that this app id runs. Only a new run changes it.
type AppRecord struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	Digest  string `json:"digest"`
	Def     string `json:"def,omitempty"` // resolved App: gzip, base64
	// of a Def that is too long for this key: its chunks are def/<id>/<n>
	DefID   string         `json:"def_id,omitempty"`
	Counts  map[string]int `json:"counts"`
	Created time.Time      `json:"created"`
	By      string         `json:"by"`
	Token   string         `json:"token,omitempty"` // secret that agents of the run show each other from host to host
	Times   AgreedTimes    `json:"times,omitzero"`
}

// AgreedTimes are the times in seconds that all agents of a run must share: a conductor with a shorter grace than a
// member assumes would replace the member while its process lives.
type AgreedTimes struct {
	TTL      float64 `json:"ttl"`
	Lost     float64 `json:"lost"`
	LostMass float64 `json:"lost_mass"`
}

func (t AgreedTimes) String() string {
	return fmt.Sprintf("--session-ttl %gs --lost-grace %gs --lost-mass %gs", t.TTL, t.Lost, t.LostMass)
}
