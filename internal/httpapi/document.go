package httpapi

// Document returns the OpenAPI document of the API, as a server answers it.
func Document() ([]byte, error) { return document((&api{}).routes()) }
