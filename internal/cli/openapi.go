package cli

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/httpapi"
)

func openapiCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "openapi", Usage: "write the OpenAPI document of the API to stdout",
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			document, err := httpapi.Document()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Stdout, "%s\n", document)
			return err
		},
	}
}
