package sqlite

import (
	"fmt"
	"syscall"

	"github.com/onejob-dev/onejob"
)

// checkFileSystem refuses a folder on a file system where a lock or a flush may
// be a mere wish. What it cannot find out it lets pass.
func checkFileSystem(folder string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return fmt.Errorf("look at the file system: %w", err)
	}
	// The numbers are those of statfs(2).
	network := map[uint32]string{
		0x00006969: "NFS",
		0xff534d42: "CIFS",
		0x0000517b: "SMB",
		0xfe534d42: "SMB2",
		0x65735546: "FUSE",
		0x5346414f: "AFS",
		0x00c36400: "Ceph",
	}
	if name, found := network[uint32(fs.Type)]; found {
		return &onejob.Error{
			Code:    onejob.CodeInvalidArgument,
			Message: fmt.Sprintf("%s is on %s, where SQLite's locks are not to be trusted; use a local disk", folder, name),
		}
	}
	return nil
}
