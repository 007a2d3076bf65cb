package wire

import (
	"errors"
	"net/url"
)

// CheckURL says what is wrong with the URL of a target. It never repeats the
// URL, which may hold what should not be read.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("is required")
	case err != nil:
		return errors.New("cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the scheme is http or https")
	case u.Host == "":
		return errors.New("there is no host")
	case u.User != nil:
		return errors.New("holds credentials; put them into a header")
	case u.Fragment != "":
		return errors.New("has a fragment, which is never sent")
	}
	return nil
}
