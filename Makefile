# Every target does the same on a laptop and in CI. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

# NVML's header calls many of its own functions deprecated
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

GUARD := shim/sandbox/guard
# all packages but the black-box tests, which want servers, root and time
UNIT = $$(go list ./... | grep -v '/muster/tests/')

.PHONY: help build guard quick lint fmt vet test test-v2 test-gpu long bench bench-start bench-gang bench-hdfs vulncheck golden pictures demo clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

build: ## bin/muster, static, and its GPU helper
	@scripts/build

guard: ## the C helper that is embedded into muster (needs gcc and a static libc)
	@if [ -f $(GUARD)/Makefile ]; then $(MAKE) -s -C $(GUARD); fi

quick: guard ## formatting, vet and unit tests: at most 3 minutes, no root, no network
	@bad=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r ls 2>/dev/null)); \
	if [ -n "$$bad" ]; then echo "gofmt would change:" $$bad; exit 1; fi
	go vet ./...
	go test -short -timeout 3m $(UNIT)

lint: guard ## golangci-lint, pinned and built by scripts/lint
	scripts/lint/run ./...

fmt: ## rewrite the sources as the linter's formatters want them
	scripts/lint/run --fmt

vet: guard
	go vet ./...

test: ## everything CI runs; installs and builds what it needs, after saying so
	@scripts/test

test-v2: ## confinement on cgroup v2 with systemd, in an emulated machine
	@scripts/test-v2

test-gpu: ## what needs a GPU, on a machine that has one
	@scripts/test-gpu

long: ## soaks, a minute of fuzzing per target, benchmarks; output to doc/measured
	@scripts/long

bench: guard ## all benchmarks
	@scripts/bench

bench-start: ## start and end of a container beside runc and crun, idle memory beside containerd's shim
	@scripts/bench-start

bench-gang: ## the barrier of 64 to 10,000 members on one Consul, beside two rivals
	@scripts/bench-gang

bench-hdfs: ## transfers from and to a real HDFS beside Hadoop's own command and colinmarc's
	@scripts/bench-hdfs

vulncheck: ## known vulnerabilities of what is built, from a database that needs a network
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

golden: guard ## rewrite golden files
	@scripts/golden

pictures: ## draw doc/pictures from the descriptions in scripts/pictures
	@scripts/pictures/draw

demo: ## a training job with 1 ps and 3 workers that loses two processes and comes back
	@scripts/demo

clean: ## remove what was built in the tree
	rm -rf bin
	@if [ -f $(GUARD)/Makefile ]; then $(MAKE) --no-print-directory -C $(GUARD) clean; fi
