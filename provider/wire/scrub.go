package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// minSecret is the shortest secret that is looked for: shorter ones would blot
// out ordinary words.
const minSecret = 4

const redacted = "[redacted]"

// scrub blots the client's secrets out of text, also where they were encoded on
// the way.
func (c *Client) scrub(text string) string {
	if text == "" {
		return text
	}
	return c.blot.Replace(text)
}

// blotter replaces each secret, its part after a scheme such as "Bearer ", and
// both as JSON, URLs and base64 write them.
func (o Options) blotter() *strings.Replacer {
	var pairs []string
	for _, s := range o.Secrets {
		whole := s.Reveal()
		for _, plain := range []string{whole, whole[strings.LastIndexByte(whole, ' ')+1:]} {
			for _, form := range forms(plain) {
				if len(form) >= minSecret {
					pairs = append(pairs, form, redacted)
				}
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

func forms(plain string) []string {
	quoted, _ := json.Marshal(plain)
	inJSON := strings.Trim(string(quoted), `"`)
	return []string{
		plain, inJSON, strings.ReplaceAll(inJSON, "/", `\/`), strings.ReplaceAll(inJSON, "+", `\u002B`), // as PHP and .NET have it
		url.QueryEscape(plain), url.PathEscape(plain),
		base64.StdEncoding.EncodeToString([]byte(plain)), base64.URLEncoding.EncodeToString([]byte(plain)),
	}
}

// described pairs errors with our words for them. The network's own text can
// hold addresses, URLs and whatever a server sent.
var described = []struct {
	is   error
	text string
}{
	{errTooLate, "send_by passed"},
	{context.Canceled, "this side hung up before an answer came"},
	{context.DeadlineExceeded, "the time for the call was over"},
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, "connection reset"},
	{syscall.EPIPE, "broken pipe"},
	{syscall.EHOSTUNREACH, "no route to the host"},
	{syscall.ENETUNREACH, "the network is unreachable"},
	{syscall.ETIMEDOUT, "the connection timed out"},
	{os.ErrDeadlineExceeded, "timed out"},
	{io.ErrUnexpectedEOF, "the connection ended in the middle of an answer"},
	{io.EOF, "the connection ended"},
	{errSealed, "the exchange was over"},
}

// describe says in our words what went wrong, free of URLs and of what the other
// side sent.
func describe(err error) string {
	if isCertificate(err) {
		return "the TLS certificate was not accepted"
	}
	for _, d := range described {
		if errors.Is(err, d.is) {
			return d.text
		}
	}
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "the host's name could not be looked up"
	case errors.As(err, &record):
		return "the other side does not speak TLS"
	case errors.As(err, &alert):
		return "TLS: " + alert.Error()
	case errors.As(err, &network) && network.Timeout():
		return "timed out"
	case strings.Contains(err.Error(), "server closed idle connection"):
		return "the kept-alive connection was closed"
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "malformed MIME"):
		return "the answer is not HTTP"
	}
	return "the connection broke"
}

// isCertificate reports whether the other side could not show who it is.
func isCertificate(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
