package rest_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What the server answers of a real run is what its own description says, and the description is of its answers: one
// of something else is refused by it.
func TestAnswersAreAsDescribed(t *testing.T) {
	s := begin(t)
	link, err := url.Parse(s.link)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: watchdog}
	get := func(path string) any {
		t.Helper()
		answer, err := client.Get("http://" + link.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		value, err := jsonschema.UnmarshalJSON(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, answer.StatusCode, err)
		}
		return value
	}
	opened, err := client.Get(s.link)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, opened.Body)
	_ = opened.Body.Close()

	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", get("/api/v1/openapi.json")); err != nil {
		t.Fatal(err)
	}
	schemaOf := func(route string) *jsonschema.Schema {
		t.Helper()
		pointer := "/paths/" + strings.ReplaceAll(route, "/", "~1") + "/get/responses/200/content/application~1json/schema"
		schema, err := compiler.Compile("openapi.json#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	for _, route := range []string{
		"/api/v1/apps", "/api/v1/apps/{app}", "/api/v1/apps/{app}/timeline", "/api/v1/apps/{app}/samples", "/api/v1/me",
	} {
		answer := get(strings.Replace(route, "{app}", "r1", 1))
		if err := schemaOf(route).Validate(answer); err != nil {
			t.Errorf("%s: %v", route, err)
		}
		if schemaOf(route).Validate(object{"jobs": []any{}}) == nil {
			t.Errorf("%s: its description takes anything", route)
		}
	}
}
