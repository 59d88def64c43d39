module github.com/muster-agent/muster/tests/servers/jobset

go 1.26

require sigs.k8s.io/jobset v0.11.0
