package nomadserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// get reads an answer of the API.
func (s *Server) get(path string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	_, err := s.ask(ctx, http.MethodGet, path, nil, nil, into)
	return err
}

// ask returns, beside the answer, its index for blocking queries.
func (s *Server) ask(
	ctx context.Context, method, path string, query url.Values, body, into any,
) (index uint64, err error) {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.HTTPAddr+path+"?"+query.Encode(), &text)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(answer))
	}
	index, _ = strconv.ParseUint(resp.Header.Get("X-Nomad-Index"), 10, 64) // 0 where there is none
	switch into := into.(type) {
	case nil:
		return index, nil
	case *string:
		*into = string(answer)
		return index, nil
	}
	return index, json.Unmarshal(answer, into)
}

// must is ask for what has to work.
func (s *Server) must(method, path string, query url.Values, body, into any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if _, err := s.ask(ctx, method, path, query, body, into); err != nil {
		s.t.Fatal(err)
	}
}

// Submit registers a job, HCL or JSON as `nomad job run` takes it, and returns its id.
func (s *Server) Submit(job string) string {
	s.t.Helper()
	parsed := s.parse(job)
	var about struct{ ID string }
	if err := json.Unmarshal(parsed, &about); err != nil {
		s.t.Fatal(err)
	}
	s.must(http.MethodPost, "/v1/jobs", nil, map[string]any{"Job": parsed}, nil)
	return about.ID
}

func (s *Server) parse(job string) json.RawMessage {
	s.t.Helper()
	var parsed json.RawMessage
	if strings.HasPrefix(strings.TrimSpace(job), "{") {
		var outer struct{ Job json.RawMessage }
		if err := json.Unmarshal([]byte(job), &outer); err != nil {
			s.t.Fatal(err)
		}
		if outer.Job != nil {
			return outer.Job
		}
		return json.RawMessage(job)
	}
	s.must(http.MethodPost, "/v1/jobs/parse", nil, map[string]any{"JobHCL": job, "Canonicalize": true}, &parsed)
	return parsed
}

// Validate is what `nomad job validate` says of a job: errors and warnings, each empty where there are none.
func (s *Server) Validate(job string) (errs []string, warnings string) {
	s.t.Helper()
	var answer struct {
		ValidationErrors []string
		Warnings         string
	}
	s.must(http.MethodPost, "/v1/validate/job", nil, map[string]any{"Job": s.parse(job)}, &answer)
	return answer.ValidationErrors, answer.Warnings
}

// Purge stops a job and forgets it; its allocations end.
func (s *Server) Purge(job string) {
	s.t.Helper()
	s.must(http.MethodDelete, "/v1/job/"+url.PathEscape(job), url.Values{"purge": {"true"}}, nil, nil)
}

// StopJob stops a job, as `nomad job stop` does.
func (s *Server) StopJob(job string) {
	s.t.Helper()
	s.must(http.MethodDelete, "/v1/job/"+url.PathEscape(job), nil, nil, nil)
}

// JobStatus is pending, running or dead; dead is also a job that is complete.
func (s *Server) JobStatus(job string) string {
	s.t.Helper()
	var answer struct{ Status string }
	if err := s.get("/v1/job/"+url.PathEscape(job), &answer); err != nil {
		s.t.Fatal(err)
	}
	return answer.Status
}
