package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
)

// ownerHeader names a sub-owner of a credential that may act for others.
const ownerHeader = "Onejob-Owner"

// maxTokenLength bounds what is looked at as a credential.
const maxTokenLength = 256

// caller is who asks.
type caller struct {
	owner string // of what it creates
	scope string // whose jobs it sees; empty: everybody's
	actor string // as records name it
	role  onejob.Role
}

// may reports whether the caller's role includes the one needed. A role that is
// not known includes none.
func (c caller) may(needed onejob.Role) bool {
	has := slices.Index(onejob.Roles(), c.role)
	return has >= 0 && has >= slices.Index(onejob.Roles(), needed)
}

// authenticate stands in front of every route: without a credential only probes
// get in, and providers that report, whose URL is their credential.
func (a *api) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isProbe(r) || isCallback(r) {
			next.ServeHTTP(w, r)
			return
		}
		c, err := a.identify(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		exchangeOf(r).caller = c
		next.ServeHTTP(w, r)
	})
}

func (a *api) identify(r *http.Request) (caller, error) {
	token := credentialOf(r)
	if token == "" || len(token) > maxTokenLength {
		return caller{}, &onejob.Error{Code: onejob.CodeUnauthenticated, Message: "a credential is required: Authorization: Bearer oj_…"}
	}
	key, err := a.opts.Keys.Authenticate(r.Context(), token)
	if err != nil {
		return caller{}, err
	}
	return callerOf(key, r.Header.Values(ownerHeader))
}

// credentialOf returns the credential of a request. Clients of one provider have a
// header of their own for it, which counts at its door.
func credentialOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" {
		return token
	}
	if isDoor(r) {
		return strings.TrimSpace(r.Header.Get("X-Api-Key"))
	}
	return ""
}

// callerOf says whose name a key speaks in. An owner comes from the credential
// alone; a header can only name somebody below it.
func callerOf(key onejob.APIKey, subs []string) (caller, error) {
	c := caller{owner: key.Owner, scope: key.Owner, role: key.Role}
	if key.Role == onejob.RoleAdmin {
		c.scope = ""
	}
	if len(subs) > 0 {
		switch {
		case !key.ActAs:
			return caller{}, &onejob.Error{Code: onejob.CodeForbidden, Message: "this credential may not act for others: " + ownerHeader + " is not allowed"}
		case len(subs) > 1 || !isSubOwner(subs[0]):
			return caller{}, &onejob.Error{
				Code:    onejob.CodeInvalidRequest,
				Message: fmt.Sprintf("%s is one name of 1 to %d printable characters without a slash", ownerHeader, maxSubOwnerLength),
			}
		}
		c.owner = key.Owner + "/" + subs[0]
		c.scope = c.owner
	}
	c.actor = c.owner + " (key " + key.ID + ")"
	return c, nil
}

const maxSubOwnerLength = 128

// isSubOwner takes printable ASCII without a slash, so that two parents never
// share a sub-owner and no name looks like another.
func isSubOwner(s string) bool {
	bad := func(r rune) bool { return r < ' ' || r > '~' || r == '/' }
	return s != "" && len(s) <= maxSubOwnerLength && strings.TrimSpace(s) == s && strings.IndexFunc(s, bad) < 0
}
