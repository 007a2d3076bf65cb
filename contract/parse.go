package contract

import (
	"bytes"
	"fmt"
	"io/fs"
	"reflect"
)

// MaxFileBytes bounds a contract's file.
const MaxFileBytes = 1 << 20

// Contract is a contract that was read. It is not changed after [Parse]; whether
// it makes sense is for [Lint] to say.
type Contract struct {
	File

	// Name of the file, for messages.
	Name string
	// CaseList are the cases of all files, in their order.
	CaseList []Case

	text   string // of the file
	places map[string]place
}

// Parse reads a contract's file and the case files it names. name is only for
// messages; files holds the case files, its root being the folder of the contract's
// file. Defaults are filled in.
//
// It is strict: an unknown key, a number where text belongs, a case that is not
// written as everybody reads it, each is a fault. All of them are returned at once,
// as an [*Error], and no contract with them. text is not changed.
func Parse(name string, text []byte, files fs.FS) (*Contract, error) {
	return parse(name, text, func(d *decoder, from CaseFiles) []Case { return d.readCases(from, files) })
}

func parse(name string, text []byte, casesOf func(*decoder, CaseFiles) []Case) (*Contract, error) {
	d := &decoder{file: name, places: map[string]place{}}
	c := &Contract{Name: name, text: string(text)}
	switch {
	case len(text) > MaxFileBytes:
		d.faults = append(d.faults, Fault{File: name, Message: fmt.Sprintf("a contract is at most %d bytes", MaxFileBytes)})
	case bytes.ContainsRune(text, 0):
		d.faults = append(d.faults, Fault{File: name, Message: "there is a NUL character in it; a contract is text"})
	default:
		if root := d.parse(bytes.TrimPrefix(text, []byte("\ufeff"))); root != nil {
			d.decode(root, "", reflect.ValueOf(&c.File).Elem(), field{})
		}
	}
	if c.Output.Finish == nil {
		c.Output.Finish = []Finish{FinishComplete}
	}
	c.places = d.places
	c.CaseList = casesOf(d, c.Cases)
	if len(d.faults) > 0 {
		sortFaults(d.faults)
		return nil, &Error{Faults: d.faults}
	}
	return c, nil
}

// at returns where a path of the contract's file stands.
func (c *Contract) at(path string) place { return nearest(c.places, path) }
