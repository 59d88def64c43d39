// Package pai reads and writes the job files of both protocols of OpenPAI, and of the platforms with the same protocol:
// QIZHI, whose jobs are those of PAI 0.5, and SCM, whose jobs are those of 0.14.
//
// It owns the fields of a job file, their rules by version, and how roles, ports and folders map to components, keys
// and exports of an App.
//
// It promises that a job that was read and written again is the same job, and that Write names everything that a job
// file cannot express. It is pure: bytes in, an App and problems out.
//
// Callers: shim/openapp reads job files, appdef/convert writes them.
package pai
