// Package apps has applications of others in app packages of ours: their makers' own archives and binaries
// (scripts/lab/apps brings them), each in a package in the shape of Slider's. They are created, killed, flexed, asked
// and stopped by the commands of Slider's client.
package apps
