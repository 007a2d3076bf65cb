package contract

import (
	"encoding/json"
	"fmt"
)

// body is how a contract is kept: its file as it was written, and its cases.
type body struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Cases []Case `json:"cases"`
}

// Body returns the contract for keeping. [ParseBody] gives it back whole: the same
// digest, and the same terms outside of it. Its cases are in it.
func (c *Contract) Body() (json.RawMessage, error) {
	return json.Marshal(body{Name: c.Name, Text: c.text, Cases: c.CaseList})
}

// ParseBody reads a contract that was kept. A body that some other program wrote is
// held to the same rules as a file.
func ParseBody(raw json.RawMessage) (*Contract, error) {
	var kept body
	if err := json.Unmarshal(raw, &kept); err != nil {
		return nil, fmt.Errorf("the contract is not kept as this program keeps one: %w", err)
	}
	for i := range kept.Cases {
		if string(kept.Cases[i].Expect) == "null" { // nothing was expected
			kept.Cases[i].Expect = nil
		}
	}
	return parse(kept.Name, []byte(kept.Text), func(*decoder, CaseFiles) []Case { return kept.Cases })
}

// Says reports whether the file itself says something at a path, as in
// failover.automatic, so that it is no default.
func (c *Contract) Says(path string) bool {
	_, said := c.places[path]
	return said
}
