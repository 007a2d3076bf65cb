package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
)

const (
	defaultServer  = "http://127.0.0.1:4545"
	maxAnswerBytes = 64 << 20
	dialTimeout    = 10 * time.Second
	answerTimeout  = 90 * time.Second // a server holds a request for up to 60

	// How often a request that may be repeated is sent.
	maxSends     = 5
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
)

// errUnreachable says that no answer came.
var errUnreachable = errors.New("the server cannot be reached")

// apiClient speaks to a server over HTTP.
type apiClient struct {
	env    Env
	server *url.URL
	key    onejob.Secret
	http   *http.Client
}

func serverFlag() cli.Flag {
	return &cli.StringFlag{Name: "server", Usage: "the server's `URL` (ONEJOB_SERVER; default " + defaultServer + ")"}
}

func newAPIClient(env Env, c *cli.Command) (*apiClient, error) {
	address := cmp.Or(c.String("server"), env.Getenv("ONEJOB_SERVER"), defaultServer)
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	server, err := url.Parse(address)
	if err != nil || server.Host == "" || (server.Scheme != "http" && server.Scheme != "https") {
		return nil, usage(c, "%q is not the URL of a server, as in %s", address, defaultServer)
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ResponseHeaderTimeout: answerTimeout,
	}
	return &apiClient{
		env: env, server: server, key: onejob.Secret(env.Getenv("ONEJOB_API_KEY")),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// request is one question to the server.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
	// repeatable is sent again when no answer came, or when the server says that
	// this is of use. Only what changes nothing, or carries a key, may be.
	repeatable bool
}

// answer is what the server said with success.
type answer struct {
	status int
	header http.Header
	body   json.RawMessage
}

// problem is an error as the server tells it (RFC 9457).
type problem struct {
	Status     int                `json:"status"`
	Title      string             `json:"title"`
	Detail     string             `json:"detail"`
	Code       onejob.Code        `json:"code"`
	Advice     string             `json:"advice"`
	JobID      string             `json:"job_id"`
	AttemptID  string             `json:"attempt_id"`
	Reason     string             `json:"reason"`
	Candidates []onejob.Candidate `json:"candidates"`
}

// Error tells people what is wrong and what to do.
func (p *problem) Error() string {
	var b strings.Builder
	b.WriteString(clean(cmp.Or(string(p.Code), strconv.Itoa(p.Status))))
	if text := cmp.Or(p.Detail, p.Title); text != "" {
		b.WriteString(": " + clean(text))
	}
	var about []string
	for _, id := range []string{p.JobID, p.AttemptID} { // their prefixes say which is which
		if id != "" && !strings.Contains(p.Detail, id) {
			about = append(about, clean(id))
		}
	}
	if len(about) > 0 {
		b.WriteString(" (" + strings.Join(about, ", ") + ")")
	}
	for _, c := range p.Candidates {
		b.WriteString("\n  " + clean(c.Target+": "+c.Reason+" "+c.Detail))
	}
	if advice := p.advice(); advice != "" {
		b.WriteString("\n" + advice)
	}
	return b.String()
}

func (p *problem) advice() string {
	switch p.Code {
	case onejob.CodeNotFound:
		return "" // says it all
	case onejob.CodeUnauthenticated:
		return "The credential is taken from ONEJOB_API_KEY; make one with: onejob keys create --owner NAME"
	case onejob.CodeForbidden:
		return "The credential is taken from ONEJOB_API_KEY; make another with: onejob keys create --owner NAME --role ROLE"
	default:
		return advices[p.Advice]
	}
}

// advices says what each advice means at a terminal.
var advices = map[string]string{
	"wait":            "Ask again later; do not submit it again.",
	"retry_same_key":  "Repeat the same command, with the same key.",
	"do_not_resubmit": "Do not submit it again, neither with this key nor with another.",
	"fix_request":     "As it is, it can never succeed.",
}

// do asks, and asks again where that is safe.
func (a *apiClient) do(ctx context.Context, r request) (answer, error) {
	for n := 1; ; n++ {
		got, again, err := a.once(ctx, r)
		if err == nil || n == maxSends || again < 0 || ctx.Err() != nil {
			return got, err
		}
		pause := max(again, jitter(n))
		say(a.env, "%s; asking again in %s", firstLine(err), pause.Round(time.Millisecond))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func jitter(n int) time.Duration {
	most := min(firstPause<<n, longestPause)
	return most/2 + rand.N(most/2)
}

// once asks one time. again is how long to wait before asking again, negative
// when that is of no use.
func (a *apiClient) once(ctx context.Context, r request) (got answer, again time.Duration, err error) {
	res, err := a.send(ctx, r)
	if err != nil {
		if !r.repeatable {
			return answer{}, -1, err
		}
		return answer{}, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	if err != nil || len(body) > maxAnswerBytes {
		return answer{}, -1, fmt.Errorf("%w: its answer broke off or is too large", errUnreachable)
	}
	if res.StatusCode < 300 {
		return answer{status: res.StatusCode, header: res.Header, body: body}, -1, nil
	}
	again = -1
	if r.repeatable && res.Header.Get("X-Should-Retry") == "true" {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		again = min(time.Duration(max(0, seconds))*time.Second, longestPause)
	}
	return answer{}, again, problemOf(res.StatusCode, body)
}

func problemOf(status int, body []byte) error {
	p := &problem{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		return fmt.Errorf("%w: what answers there with status %d is no onejob server", errUnreachable, status)
	}
	p.Status = status
	return p
}

// send sends one request and returns the answer with its body unread.
func (a *apiClient) send(ctx context.Context, r request) (*http.Response, error) {
	target := a.server.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // or a request with a key would be sent twice behind our back
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "onejob-cli")
	if len(r.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key.Reveal())
	}
	res, err := a.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w at %s: %w", errUnreachable, a.server.Redacted(), rootCause(err))
	}
	return res, nil
}

// rootCause takes off what repeats method and URL.
func rootCause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// get asks something that changes nothing.
func (a *apiClient) get(ctx context.Context, path string, query url.Values) (answer, error) {
	return a.do(ctx, request{method: http.MethodGet, path: path, query: query})
}

// post asks for a change that may not be repeated blindly.
func (a *apiClient) post(ctx context.Context, path string, body any) (answer, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	return a.do(ctx, request{method: http.MethodPost, path: path, body: encoded})
}

// readProblem reads what a refused stream answers.
func readProblem(res *http.Response) (*problem, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	var p *problem
	if err := problemOf(res.StatusCode, body); !errors.As(err, &p) {
		return nil, err
	}
	return p, nil
}
