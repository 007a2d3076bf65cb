package cli

import "syscall"

// spaceOf is what a folder's disk has free for this program, and at all, in bytes.
func spaceOf(folder string) (free, all uint64, known bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return 0, 0, false
	}
	return fs.Bavail * uint64(fs.Bsize), fs.Blocks * uint64(fs.Bsize), true
}
