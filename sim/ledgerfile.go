package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// record is one line of the ledger file: an entry as it now is and, if this line
// tells of an execution, what was done, or what was given up.
type record struct {
	Entry  Entry   `json:"entry"`
	Charge *charge `json:"charge,omitempty"`

	Cancelled   string    `json:"cancelled,omitempty"`
	CancelledAt time.Time `json:"cancelled_at,omitzero"`
}

// ledgerFile appends lines. It does not sync: the file survives the death of the
// process, not of the machine.
type ledgerFile struct {
	file *os.File
}

// open reads the ledger back from path and goes on appending to it.
func (l *ledger) open(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("sim: ledger file: %w", err)
	}
	good, err := l.restore(f)
	if err == nil {
		// A last line cut by the death of its writer was never counted.
		err = f.Truncate(good)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("sim: ledger file %s: %w", path, err), f.Close())
	}
	l.file = &ledgerFile{f}
	return nil
}

// restore applies every whole line and returns how many bytes they take.
func (l *ledger) restore(r io.Reader) (good int64, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return good, nil
		}
		if err != nil {
			return good, err
		}
		var rec record
		if err := json.Unmarshal(line, &rec); err != nil {
			return good, fmt.Errorf("at byte %d: %w", good, err)
		}
		l.apply(rec)
		good += int64(len(line))
	}
}

// save appends a record to the file, if there is one.
func (l *ledger) save(rec record) {
	if l.file == nil {
		return
	}
	line, err := json.Marshal(rec)
	if err == nil {
		_, err = l.file.file.Write(append(line, '\n'))
	}
	l.fail(err)
}

func (f *ledgerFile) truncate() error { return f.file.Truncate(0) }

// fail remembers the first trouble: a ledger that could not be written is not to
// be trusted after a restart.
func (l *ledger) fail(err error) {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("sim: ledger file: %w", err)
	}
}

func (l *ledger) firstErr() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// close ends the writing to the file. Later events are counted in memory only.
func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.fail(l.file.file.Close())
		l.file = nil
	}
	return l.err
}
