package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// TestKubernetes checks objects of Kubernetes' own kinds against its published schemas, of the oldest version that they are
// written for and of the newest that there is; a field that the schemas do not know is an error.
func TestKubernetes(t *testing.T) {
	var files []string
	for _, dir := range written(t, "k8s.jobs") {
		files = append(files, only(t, dir))
	}
	for _, dir := range written(t, "k8s.jobset") { // a set's jobs are Jobs
		files = append(files, jobsOf(t, only(t, dir)))
	}
	for _, version := range []string{"1.29", "1.37"} {
		t.Setenv("VERSION", version)
		out, bad, err := runs(t, append([]string{filepath.Join(labs, "kubernetes"), "validate"}, files...)...)
		if err != nil || strings.Count(out+bad, "passed") < len(files) {
			t.Errorf("%s: %v\n%s%s", version, err, out, bad)
		}
	}
}

// jobsOf writes the jobs of a set as objects of their own.
func jobsOf(t *testing.T, file string) string {
	t.Helper()
	set := object(t, file)
	var text strings.Builder
	jobs, _ := dig(set, "spec", "replicatedJobs").([]any)
	for _, one := range jobs {
		job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": dig(one, "name")}, "spec": dig(one, "template", "spec")}
		doc, err := yaml.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(doc))
	}
	if len(jobs) == 0 {
		t.Fatalf("%s: no jobs", file)
	}
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func dig(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// object is a file of one document.
func object(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// TestJobSet checks sets against JobSet's own definition.
func TestJobSet(t *testing.T) {
	path, bad, err := runs(t, filepath.Join(labs, "kubernetes"), "jobset")
	if err != nil {
		t.Fatalf("%v: %s", err, bad)
	}
	definition := object(t, strings.TrimSpace(path))
	versions, _ := dig(definition, "spec", "versions").([]any)
	if len(versions) != 1 || dig(versions[0], "name") != "v1alpha2" {
		t.Fatalf("versions of JobSet: %v", versions)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("jobset.json", strict(dig(versions[0], "schema", "openAPIV3Schema"))); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("jobset.json")
	if err != nil {
		t.Fatal(err)
	}
	for app, dir := range written(t, "k8s.jobset") {
		set := object(t, only(t, dir))
		if err := schema.Validate(set); err != nil {
			t.Errorf("%s: %v", app, err)
		}
		spec, _ := dig(set, "spec").(map[string]any)
		spec["replicatedjobs"] = spec["replicatedJobs"]
		if schema.Validate(set) == nil {
			t.Errorf("%s: a field that JobSet does not know has passed", app)
		}
	}
}

// strict has no object take fields that its schema does not name, which a cluster would drop in silence. The metadata of the
// object itself are the cluster's, and Kubernetes' own words beside JSON Schema's mean nothing to a validator.
func strict(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = strict(v[i])
		}
	case map[string]any:
		for name, value := range v {
			if strings.HasPrefix(name, "x-kubernetes-") || name == "format" {
				delete(v, name)
				if name == "x-kubernetes-int-or-string" {
					delete(v, "type")
				}
				continue
			}
			v[name] = strict(value)
		}
		if properties, ok := v["properties"].(map[string]any); ok && v["type"] == "object" && len(properties) > 0 {
			if _, ok := v["additionalProperties"]; !ok {
				v["additionalProperties"] = false
			}
		}
	}
	return v
}
