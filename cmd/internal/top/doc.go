// Package top shows what apps, or the instances of one, use of memory, processors and GPUs now: muster top. The figures
// are the newest samples of the agents that answer, on this host and, with the run's token, on others.
//
// It owns nothing; Watch draws again and again until its context ends.
package top
