package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
)

// act is a request to act on an app.
type act struct {
	lookup   apps.Lookup
	app      string
	instance string
	body     []byte
}

// into reads the body; one with other fields is refused.
func (a act) into(value any) error {
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(value); err != nil && !errors.Is(err, io.EOF) {
		return exit.Usagef("body: %w", err)
	}
	return nil
}
