// Package files is the one door to files on behalf of an app. Every path that a definition, an image, a package or a
// record names is read, written, listed, renamed or removed through it, with the answer to two questions: for whom
// (User), and below which root (Folder, or what an Admission admits of the host).
//
// It owns no files and keeps no state. It promises that nothing done through a Folder leaves that folder, that nothing
// waits for a pipe or touches a device that a process put in a file's place, and that an agent that is root reads and
// writes for an app only what the app's process could, by that process's own rights; folders that muster lays out
// itself (User.Make, User.Below) it makes first and hands over. The rooms that prepare, feed and watch processes call
// it; tests/files_test.go keeps them from calling package os for such paths. The agent's own files (its state, its
// logs, /proc) do not come here.
package files
