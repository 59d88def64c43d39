package status

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// metricsRoute answers in the text format of Prometheus.
const metricsRoute = "GET /v1/metrics"

func (s Source) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", s.MetricsType)
	_ = s.Metrics(r.Context(), w) // fails when the caller has hung up
}

// Metrics copies the agent's metrics.
func (c *Client) Metrics(ctx context.Context, to io.Writer) error {
	r, err := c.send(ctx, http.MethodGet, "/v1/metrics", nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r.Body)
	return errors.Join(err, r.Body.Close())
}
