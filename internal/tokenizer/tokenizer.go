package tokenizer

// Tokenizer turns text into tokens and back. It is safe for concurrent use.
type Tokenizer interface {
	// Encode reads a text as a server reads a rendered prompt: what is written like a
	// control token is one.
	Encode(text string) ([]int, error)
	// EncodePlain reads every byte as text.
	EncodePlain(text string) ([]int, error)
	// Decode returns the bytes of tokens. One that is not known is an error.
	Decode(ids []int) (string, error)
	// Special reports whether a token is a control token.
	Special(id int) bool
	// Beginning is the token that begins a sequence. False: none is known.
	Beginning() (id int, known bool)
}
