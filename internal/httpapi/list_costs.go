package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// summingAtOnce is how many sums are under way at most: each reads as much of the
// store as it is about.
const summingAtOnce = 2

// CostRow is a sum of money in one currency.
type CostRow struct {
	Key      string `json:"key" doc:"The owner, kind, target or day that it is about"`
	Currency string `json:"currency,omitzero" doc:"Absent: attempts that told no price, and may have one"`
	Micros   int64  `json:"micros" doc:"Millionths of the currency"`
	AtLeast  bool   `json:"at_least" doc:"An attempt is in doubt, or told no price"`
	Attempts int64  `json:"attempts" doc:"How many are summed here, losers and failures included"`
	Unpriced int64  `json:"unpriced" doc:"Of them, those that may be charged beyond what they told"`
}

// CostList is one page of sums, by key and currency.
type CostList struct {
	Items      []CostRow `json:"items" nullable:"false"`
	NextCursor string    `json:"next_cursor,omitzero" doc:"Absent: this is the last page"`
}

// listCosts serves GET /v1/costs.
func (a *api) listCosts(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "by", "owner", "kind", "target", "from", "to", "cursor", "limit")
	p := onejob.CostSumParams{
		Owner: q.scope(exchangeOf(r).caller), Kind: q.text("kind"), Target: q.text("target"),
		From: q.time("from"), To: q.time("to"), By: q.costGroup(), After: q.costCursor(), Limit: q.limit(),
	}
	if q.err != nil {
		return q.err
	}
	if !a.summing.enter() {
		return &onejob.Error{Code: onejob.CodeOverloaded, Message: "other sums are under way; ask again", RetryAfter: time.Second}
	}
	defer a.summing.leave()
	page, err := a.client.Costs(r.Context(), p)
	if err != nil {
		return err
	}
	items := make([][]byte, len(page.Rows))
	for i, row := range page.Rows {
		if items[i], err = encode(CostRow(row)); err != nil {
			return err
		}
	}
	next := ""
	if n := len(page.Rows); page.More && n > 0 {
		if next, err = costCursorOf(&page.Rows[n-1]); err != nil {
			return err
		}
	}
	writeItems(w, items, next)
	return nil
}

func (q *query) costGroup() onejob.CostGroup {
	by := onejob.CostGroup(q.text("by"))
	if by == "" {
		return onejob.CostByOwner
	}
	if !slices.Contains(onejob.CostGroups(), by) {
		q.refuse("there are no sums by %q; there are %s", shorten(string(by)), listed(onejob.CostGroups()))
	}
	return by
}

func costCursorOf(last *onejob.CostRow) (string, error) {
	raw, err := json.Marshal([]string{last.Key, last.Currency})
	return base64.RawURLEncoding.EncodeToString(raw), err
}

func (q *query) costCursor() *onejob.CostCursor {
	s := q.text("cursor")
	if s == "" {
		return nil
	}
	var place []string
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(raw, &place) != nil || len(place) != 2 || !isText(strings.Join(place, "")) {
		q.refuseCursor()
		return nil
	}
	return &onejob.CostCursor{Key: place[0], Currency: place[1]}
}

func listCostsDoc() operation {
	return operation{
		id: "listCosts", summary: "Sum what attempts cost, losers and failures included",
		description: "Of jobs that are still kept: a job past the life of keys has no attempts any more.",
		query: []param{
			{name: "by", says: "owner (the default), kind, target, or day: that on which attempts started, in UTC"},
			{name: "owner", says: "For admins"},
			{name: "kind"},
			{name: "target"},
			{name: "from", says: "Attempts that started then or later", format: "date-time"},
			{name: "to", says: "Attempts that started before then", format: "date-time"},
			{name: "cursor", says: "next_cursor of the page before"},
			limitParam,
		},
		answers:  []answer{{status: 200, says: "One page", body: CostList{}}},
		problems: []onejob.Code{onejob.CodeInvalidRequest},
	}
}
