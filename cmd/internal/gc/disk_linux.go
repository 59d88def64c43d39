package gc

import (
	"io/fs"
	"syscall"
)

// onDisk is what a file takes of the disk: st_blocks counts 512 bytes (stat(2)).
func onDisk(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
