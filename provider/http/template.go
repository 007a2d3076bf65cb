package httpcall

import (
	"errors"

	"github.com/onejob-dev/onejob"
)

type template struct{}

func compileTemplate(string, string) (*template, error) { return nil, errors.New("not yet") }

func (t *template) render(onejob.Request, func(onejob.Request) string) ([]byte, error) {
	return nil, errors.New("not yet")
}
