package status

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/muster-agent/muster/shim/samples"
)

// samplesRoute tells what the instance used, after the second of Unix time that ?since= names; below 0 that is so many
// seconds ago, by this host's clock.
const samplesRoute = "GET /v1/samples"

func (s Source) samples(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("since")
	since, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		refuse(w, http.StatusBadRequest, "since "+strconv.Quote(text)+" is no moment", "whole seconds of Unix time")
		return
	}
	answer(w, s.Samples(since))
}

// Samples asks what the instance used since then, as samplesRoute has it; 0: all that is kept.
func (c *Client) Samples(ctx context.Context, since int64) (samples.Table, error) {
	var t samples.Table
	err := c.call(ctx, http.MethodGet, "/v1/samples?since="+strconv.FormatInt(since, 10), nil, &t)
	return t, err
}
