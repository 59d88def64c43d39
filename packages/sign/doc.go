// Package sign makes and checks the signatures of files, in minisign's format: FILE.minisig beside FILE. It also makes
// and reads keys. Keys and signatures go to and fro with minisign(1). It knows nothing of the files that it signs.
//
// The format is Ed25519 over the BLAKE2b of the file (`ED`, what is written here), or over the file itself (`Ed`, what
// older minisign wrote), and over the signature with its trusted comment. See https://jedisct1.github.io/minisign.
//
// Verify promises that one of the given keys has signed these bytes, and returns the digest of the bytes that it read.
// The room owns no file after a call.
//
// Callers: `muster package` signs and verifies, packages/ship verifies fetched packages, shim/openapp verifies an APP
// by the keys of shim/policy, packages/inspect reads who has signed.
package sign
