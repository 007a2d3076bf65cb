package arch_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFloorPlanNamesEveryRoom(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, plan, _ := strings.Cut(string(page), "```")
	plan, _, _ = strings.Cut(plan, "```")
	named := map[string]bool{".": true}
	for _, word := range strings.Fields(plan) {
		named[word] = true
	}
	for _, s := range tree(t) {
		if inFolder := path.Dir(s.room) + "/..."; !named[s.room] && !named[inFolder] {
			t.Errorf("the floor plan of docs/ARCHITECTURE.md does not name %s", s.room)
			named[s.room] = true // once is enough
		}
	}
}

func TestNumberedPagesHaveNumbersOfTheirOwnWithoutAGap(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"docs/adr", "changelog/unreleased"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "[0-9]*.md"))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", folder, len(pages), err)
		}
		last := 0
		for _, page := range pages { // in order
			number := 0
			for _, digit := range strings.SplitN(filepath.Base(page), "-", 2)[0] {
				number = number*10 + int(digit-'0')
			}
			if number != last+1 {
				t.Errorf("%s/%s follows on number %d", folder, filepath.Base(page), last)
			}
			last = number
		}
	}
}
