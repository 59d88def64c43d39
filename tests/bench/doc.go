// Package bench measures what a start costs and what an idle agent holds, each beside its rivals in the same run:
// `make bench-start`. The rivals are named by the environment (see rivals); those that are not named are left out, so
// that the benchmarks also run where nothing but Go is.
package bench
