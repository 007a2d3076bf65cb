package generation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxMarkBytes is more than any number takes.
const maxMarkBytes = 64

// maxMark is more than any store gets to. What is above it leaves no room to move on.
const maxMark = 1 << 62

// ReadMark returns the number in the file at path, and zero when there is no file,
// or path is empty. A file that holds anything else is an error: it would be a
// restore that nobody notices.
func ReadMark(path string) (int64, error) {
	if path == "" {
		return 0, nil
	}
	f, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("the generation file cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxMarkBytes))
	if err != nil {
		return 0, fmt.Errorf("the generation file cannot be read: %w", err)
	}
	number, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || number < 0 || number > maxMark {
		return 0, fmt.Errorf("the generation file %s holds no number, so nobody can tell whether the store was restored; if you are sure that it was not, remove the file", path)
	}
	return number, nil
}

// writeMark puts number into the file at path, whole and flushed or not at all. A
// file that is ahead, by another process on this machine, stays so.
func writeMark(path string, number int64) (err error) {
	if path == "" {
		return nil
	}
	if ahead, err := ReadMark(path); err != nil || ahead >= number {
		return err
	}
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("the generation file cannot be written: %w", err)
	}
	_, err = fmt.Fprintln(f, number)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("the generation file cannot be written: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return flush(folder)
}

// flush makes the renaming in a folder last. Where a folder cannot be flushed the
// file system does so by itself.
func flush(folder string) error {
	d, err := os.Open(filepath.Clean(folder))
	if err != nil {
		return fmt.Errorf("the folder of the generation file cannot be flushed: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}
