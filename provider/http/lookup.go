package httpcall

// Accepted recognises an asynchronous submit.
type Accepted struct {
	When string // condition; empty: status == 202
	ID   string // the provider's own id for the work; required
}

// Lookup asks the provider about an attempt.
type Lookup struct {
	// URL with {id}, {key}, {job_id} and {attempt_id} in its path or query.
	URL string
	// Authoritative says that a 404 proves that nothing happened.
	Authoritative bool
	Running       string // condition
	Succeeded     string // condition; required
	Failed        string // condition
	Result        string // expression; empty: the body, byte for byte
}

// Cancel asks the provider to give an attempt up.
type Cancel struct {
	Method string // empty: POST
	URL    string // as [Lookup.URL]
}

type lookup struct{}

func (c *collector) lookup(*Lookup) *lookup { return nil }
func (c *collector) cancel(*Cancel)         {}
