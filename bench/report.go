package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
)

// report is what was measured.
type report struct {
	Contests []held `json:"contests"`
	Goals    []goal `json:"goals"`
}

// held is a contest that was held, once and in one place.
type held struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	About   string    `json:"about"`
	Machine machine   `json:"machine"`
	Runs    int       `json:"runs,omitempty"` // above one: the figures are medians of theirs
	Rounds  int       `json:"rounds"`
	Turn    string    `json:"turn"`
	Rows    []row     `json:"rows"`
	LeftOut []leftOut `json:"left_out,omitempty"`
}

// leftOut is a contestant that could not take part.
type leftOut struct {
	Name    string `json:"name"`
	Missing string `json:"missing"` // what is not as it needs it, as a clause
}

func (r report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readReport reads what save wrote. A missing file is an empty report.
func readReport(path string) (r report, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// over returns older with every contest that r holds replaced by r's.
func (r report) over(older report) report {
	var all report
	for _, c := range allContests() {
		named := func(h held) bool { return h.Name == c.name }
		for _, from := range []report{r, older} {
			if i := slices.IndexFunc(from.Contests, named); i >= 0 {
				all.Contests = append(all.Contests, from.Contests[i])
				break
			}
		}
	}
	all.Goals = goalsOf(all.Contests)
	return all
}
