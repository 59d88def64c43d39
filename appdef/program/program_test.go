package program

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

func TestCounts(t *testing.T) {
	for text, want := range map[string][]count{
		"3": {{"worker", 3}}, "ps=1,worker=3": {{"ps", 1}, {"worker", 3}}, "chief=1": {{"chief", 1}},
		"0": nil, "-1": nil, "": nil, "worker": nil, "worker=0": nil, "worker=x": nil, "worker=1,worker=2": nil, "=3": nil, "a b=1": nil,
		"ps=1,": nil, "3,4": nil,
	} {
		got, ok := parseCounts(text)
		if ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestImportsAndGuess(t *testing.T) {
	for text, want := range map[string]struct{ framework, by string }{
		"import torch\nimport torch.distributed as dist": {"pytorch", "torch"},
		"import os, torch.nn as nn":                      {"pytorch", "torch"},
		"from tensorflow.keras import layers":            {"tensorflow", "tensorflow"},
		"import horovod.torch as hvd\nimport torch":      {"horovod-gloo", "horovod"},
		"from mpi4py import MPI\nimport jax":             {"mpi", "mpi4py"},
		"if True:\n    import jax.numpy as jnp":          {"jax", "jax"},
		"import xgboost as xgb":                          {"xgboost", "xgboost"},
		"import torch\nimport tensorflow as tf":          {"", "torch and tensorflow"},
		"import os, sys":                                 {"", ""},
		"# import torch\nx = 'import jax'":               {"", ""},
		"from .torch import x\nfrom . import jax":        {"", ""},
		"import lightning as L":                          {"pytorch", "lightning"},
		"":                                               {"", ""},
	} {
		if framework, by := Guess(Imports(text)); framework != want.framework || by != want.by {
			t.Errorf("%q imports %v: got %q by %q, want %q by %q", text, Imports(text), framework, by, want.framework, want.by)
		}
	}
}

// What a line says is what its package says, whoever reads it.
func TestPackageOfALine(t *testing.T) {
	for _, framework := range Frameworks() {
		t.Run(framework, func(t *testing.T) {
			counts := []count{{"worker", 3}}
			if traits[framework].servers {
				counts = []count{{"ps", 1}, {"worker", 3}}
			}
			p := Program{
				Name: "train", Framework: framework, counts: counts, Words: []string{"python", "train.py", "a b", "${worker_HOST}"},
				Files: true, MemoryMB: 2048, Image: "docker.io/library/python:3.11", Checkpoint: "/data/ck",
			}
			app, found := p.App()
			if len(found) > 0 {
				t.Fatal(found)
			}
			documents, unsupported := slider.Write(app)
			if len(unsupported) > 0 {
				t.Errorf("unsupported: %v", unsupported)
			}
			for name, text := range documents {
				if name == "appConfig.json" && !strings.Contains(string(text), `exec python train.py 'a b' '$''{worker_HOST}'`) {
					t.Errorf("%s has no such command: %s", name, text)
				}
			}
			w := app.Component("worker")
			if w.Instances != 3 || w.Limits.MemoryMB != 2048 || w.Limits.Image == "" || app.Settings.Framework != framework {
				t.Errorf("got %+v", w)
			}
		})
	}
}

// Without a number an instance has all the memory that there is, and its package says so.
func TestMemoryOfALine(t *testing.T) {
	app, found := Program{Name: "x", Framework: "none", counts: []count{{"worker", 1}}, Words: []string{"true"}}.App()
	documents, _ := slider.Write(app)
	if text := string(documents["resources.json"]); len(found) > 0 || app.Component("worker").Limits.MemoryMB != appdef.Max ||
		!strings.Contains(text, `"yarn.memory": "max"`) {
		t.Errorf("%v, %s", found, text)
	}
}

func TestServersOfALine(t *testing.T) {
	for _, tt := range []struct {
		framework string
		counts    []count
		want      string
	}{
		{"pytorch", []count{{"ps", 1}, {"worker", 2}}, "it has no parameter servers"},
		{"mxnet", []count{{"worker", 2}}, "it has parameter servers"},
	} {
		_, found := Program{Name: "x", Framework: tt.framework, counts: tt.counts, Words: []string{"true"}}.App()
		if !strings.Contains(found.Errors().Error(), tt.want) {
			t.Errorf("%s %v: got %v, want %q", tt.framework, tt.counts, found, tt.want)
		}
	}
}
