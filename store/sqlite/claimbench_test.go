package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// BenchmarkAttemptClaimBacklog claims 64 at a time from backlogs that are spread
// differently over their owners.
func BenchmarkAttemptClaimBacklog(b *testing.B) {
	for _, bb := range []struct {
		name         string
		owners, each int
	}{{"1x20000", 1, 20_000}, {"1000x20", 1000, 20}, {"10000x2", 10_000, 2}} {
		b.Run(bb.name, func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "onejob.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			fill(b, s, bb.owners, bb.each)
			after := ""
			for b.Loop() {
				r, err := s.AttemptClaim(b.Context(), onejob.AttemptClaimParams{
					StartParams: *startedIntent(b, "k").Start, Max: 64, AfterOwner: after,
				})
				if err != nil || len(r.Claimed) != 64 {
					b.Fatalf("claimed %d, %v; want 64", len(r.Claimed), err)
				}
				after = r.LastOwner
			}
		})
	}
}

// fill records a backlog of each jobs of each of owners.
func fill(b *testing.B, s *sqlite.Store, owners, each int) {
	b.Helper()
	var params []onejob.JobCreateParams
	for n := range each {
		for o := range owners {
			params = append(params, intent(b, fmt.Sprint("owner-", o), fmt.Sprint(n)))
			if len(params) == 500 || n == each-1 && o == owners-1 {
				if _, err := s.JobCreate(b.Context(), params); err != nil {
					b.Fatal(err)
				}
				params = params[:0]
			}
		}
	}
}
