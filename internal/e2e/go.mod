module github.com/onejob-dev/onejob/internal/e2e

go 1.26.7

require github.com/onejob-dev/onejob v0.0.0

replace github.com/onejob-dev/onejob => ../..
