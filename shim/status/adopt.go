package status

import (
	"context"
	"net/http"
)

// Adopted is what an agent has written again into a registry that had lost it: the answer of POST /v1/adopt.
type Adopted struct {
	Run string `json:"run"`
	Gen int    `json:"gen"`
	Act string `json:"act"` // wait, run or stop
}

func (s Source) adopt(w http.ResponseWriter, r *http.Request) {
	adopted, err := s.Adopt(r.Context())
	if err != nil {
		refuse(w, http.StatusConflict, err.Error(), "")
		return
	}
	answer(w, adopted)
}

// Adopt asks the agent to write the app's data again into a registry that has lost it.
func (c *Client) Adopt(ctx context.Context) (Adopted, error) {
	var adopted Adopted
	err := c.call(ctx, http.MethodPost, "/v1/adopt", nil, &adopted)
	return adopted, err
}
