package openapp

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
)

func signedOnly() *policy.Policy {
	p := policy.Policy{File: "policy.json"}
	p.Packages.RequireSignature = true
	return &p
}

// TestAllowedKeys: each allowed key exists, and no key that names a command, a file or a user is among them.
func TestAllowedKeys(t *testing.T) {
	known := map[string]bool{}
	for _, k := range appdef.Keys() {
		known[k.Name] = true
	}
	for _, k := range slider.ResourceKeys() {
		known[k.Name] = true
	}
	listed := map[string]bool{}
	for _, a := range allowedKeys() {
		if !known[a.Name] || listed[a.Name] || a.Why == "" {
			t.Errorf("%s: unknown, twice, or without a reason", a.Name)
		}
		listed[a.Name] = true
	}
	for name := range known {
		err := (&Choices{Policy: signedOnly(), Set: []string{"worker:" + name + "=1"}}).admitChoices()
		if (err == nil) != listed[name] {
			t.Errorf("%s: allowed %t, got %v", name, listed[name], err)
		}
	}
	for _, part := range []string{
		"command", "env", "secret", "image", "user", "python", "file", "archive", "dir", "args", "side", "start", "root",
	} {
		if slices.ContainsFunc(allowedKeys(), func(a allowed) bool { return slices.Contains(strings.Split(a.Name, "."), part) }) {
			t.Errorf("a key with %q in its name is allowed", part)
		}
	}
}

// TestAttackSet: spellings of a key and values that a shell reads.
func TestAttackSet(t *testing.T) {
	for _, set := range []string{
		"muster.command=x", "global:muster.command=x", "worker:muster.command=x", "worker:x:yarn.memory=1",
		"site.a.b=$(x)", "site.a.b=1;x", "site.a.b=1\nx", "site.a.b=/bin/x", "worker:ZK_HOST=x", "ZK_HOST=`x`",
		"ZK_HOST=-x", "JAVA_HOME=/evil", "yarn.unknown=1", "unknown=1", " yarn.memory=1", "yarn.memory =1",
	} {
		err := (&Choices{Policy: signedOnly(), Set: []string{set}}).admitChoices()
		if exit.CodeOf(err) != exit.Forbidden || !strings.Contains(err.Error(), "policy.json") {
			t.Errorf("%q: got %v, want 77", set, err)
		}
	}
	for _, set := range []string{
		"worker:yarn.memory=1", "yarn.vcores=2", "site.a.b=1", "site.a.b=-0.5", "ZK_HOST=h1:2181,h2:2181",
		"site.a.port=${worker.ALLOCATED_PORT}{PER_CONTAINER}", "NN_HOST=[::1]:8020",
	} {
		if err := (&Choices{Policy: signedOnly(), Set: []string{set}}).admitChoices(); err != nil {
			t.Errorf("%q: got %v, want nil", set, err)
		}
	}
}

// TestAttackImage: an image that a signed definition names is one for good.
func TestAttackImage(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for image, admitted := range map[string]bool{
		"": true, "host": true, "busybox" + digest: true, "h:5000/a/b:1" + digest: true,
		"busybox": false, "busybox:1": false, "oci:/tmp/x": false, "oci:/tmp/x" + digest: false, "a@sha256:b": false,
	} {
		app := appdef.App{Components: []appdef.Component{{Name: "worker", Limits: appdef.Limits{Image: image}}}}
		err := (&Choices{Policy: signedOnly()}).admitDefinition(app)
		if (err == nil) != admitted || err != nil && exit.CodeOf(err) != exit.Forbidden {
			t.Errorf("%q: got %v, want admitted %t", image, err, admitted)
		}
	}
}

// TestAttackResources: files of the definition's that lie elsewhere need a digest.
func TestAttackResources(t *testing.T) {
	for file, admitted := range map[string]bool{
		"conf/a.xml": true, "http://h/a#sha256=" + strings.Repeat("a", 64): true,
		"http://h/a": false, "/etc/a": false, "hdfs:///a": false, "${NN_URI}/a": false,
	} {
		app := appdef.App{Contents: appdef.Contents{AppResources: []string{file}}}
		if err := (&Choices{Policy: signedOnly()}).admitDefinition(app); (err == nil) != admitted {
			t.Errorf("%q: got %v, want admitted %t", file, err, admitted)
		}
	}
}

// TestCatalogIsAdmitted: the catalog is part of muster, and its own definitions stay runnable.
func TestCatalogIsAdmitted(t *testing.T) {
	names := catalog.Names()
	if len(names) == 0 {
		t.Fatal("the catalog is empty")
	}
	for _, name := range names {
		l, _, err := (&Choices{Policy: signedOnly()}).Read(t.Context(), "catalog:"+name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l.Close()
	}
}
