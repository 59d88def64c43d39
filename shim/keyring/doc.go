// Package keyring reads secrets out of the kernel's keyrings (keyrings(7)) for `secret:` references of a definition.
package keyring
