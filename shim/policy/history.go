package policy

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/wording"
)

// elsewhere is what the operator says of services and stores that hosts share.
type elsewhere struct {
	// InsecureRegistries are image registries that are asked by plain http.
	InsecureRegistries []string `json:"insecure_registries"`
	// History is the store of ended runs.
	History historyRules `json:"history"`
}

// historyRules say where ended runs are kept, and how much of them.
type historyRules struct {
	// Store is the URL of the folder that they are kept in; "": none are.
	Store string `json:"store"`
	// Logs are those that are kept: none, those of failed runs and instances, or all.
	Logs string `json:"logs"`
	// Readers may read a run beside its own user: owner is nobody, group the store's group.
	Readers string `json:"readers"`
	// Keep bounds what is kept.
	Keep keepRules `json:"keep"`
}

// keepRules bound a store by age and size.
type keepRules struct {
	Age  string `json:"age"`
	Size string `json:"size"`

	// Limit and Bytes are Age and Size, read.
	Limit time.Duration `json:"-"`
	Bytes int64         `json:"-"`
}

// The words for logs and readers.
const (
	logsNone     = "none"
	LogsFailed   = "failed"
	LogsAll      = "all"
	readersOwner = "owner"
	ReadersGroup = "group"
)

// What is kept where nothing is said.
const (
	usualAge  = "90d"
	usualSize = "50GiB"
)

// check passes to bad what is wrong. written tells whether the policy has the section.
func (h *historyRules) check(written bool, bad func(field, format string, args ...any)) {
	if !written {
		return
	}
	if err := historyURL(h.Store); err != nil {
		bad("history.store", "%w, want file:///PATH or hdfs://HOST/PATH", err)
	}
	oneOf := func(field string, value *string, words ...string) {
		if *value == "" {
			*value = words[0]
		}
		if !strings.Contains(" "+strings.Join(words, " ")+" ", " "+*value+" ") {
			bad("history."+field, "got %q, want %s", *value, appdef.OneOf(words, ""))
		}
	}
	oneOf("logs", &h.Logs, logsNone, LogsFailed, LogsAll)
	oneOf("readers", &h.Readers, readersOwner, ReadersGroup)
	h.Keep.check(bad)
}

func (k *keepRules) check(bad func(field, format string, args ...any)) {
	if k.Age == "" {
		k.Age = usualAge
	}
	if k.Size == "" {
		k.Size = usualSize
	}
	var ok bool
	if k.Limit, ok = wording.ParseAge(k.Age); !ok || k.Limit == 0 {
		bad("history.keep.age", "got %q, want an age such as 36h or 90d", k.Age)
	}
	if k.Bytes, ok = sizeOf(k.Size); !ok {
		bad("history.keep.size", "got %q, want a size such as 500MiB, 50GiB or 2TiB", k.Size)
	}
}

// historyURL refuses what no agent of a run could write into. The error never shows a password.
func historyURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("got none")
	case err != nil:
		return errors.New("got what is no URL")
	case u.User != nil:
		return errors.New("got a user in the URL")
	case u.Scheme == "":
		return fmt.Errorf("got %s without a scheme", appdef.Quote(text))
	case u.Scheme != "file" && u.Scheme != "hdfs":
		return fmt.Errorf("got %s, in which no runs can be kept", appdef.Quote(u.Scheme+":"))
	case u.Scheme == "file" && u.Host != "" && u.Host != "localhost":
		return fmt.Errorf("got the host %s", appdef.Quote(u.Host))
	case !path.IsAbs(u.Path) || path.Clean(u.Path) == "/":
		return fmt.Errorf("got %s, which names no folder below /", appdef.Quote(text))
	}
	return nil
}

// sizeOf reads a number of bytes with its unit.
func sizeOf(text string) (bytes int64, ok bool) {
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		number, found := strings.CutSuffix(text, unit)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		factor := int64(1) << (10 * (i + 1))
		return n * factor, err == nil && n > 0 && n <= math.MaxInt64/factor
	}
	return 0, false
}
