// Package keyring reads secrets out of the kernel's keyrings (keyrings(7)), for `keyring:` references of a definition.
//
// It owns nothing and keeps nothing. It promises at most one secret per call, with the rights of the agent's user.
// shim/secret calls it.
package keyring
