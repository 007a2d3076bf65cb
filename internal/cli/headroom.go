package cli

import "runtime"

// headroom is how much memory a server asks for and never touches, so that it is not
// resident.
const headroom = 32 << 20

// keepHeadroom spares a small heap most of its collections: with a few megabytes in use
// and some hundred allocated a second it would be collected dozens of times a second,
// which took a fifth of the CPU under load. The collector takes the headroom for memory
// in use, so a small heap grows by about as much before it is collected, and a large
// one hardly more than before. Whoever sets GOGC or GOMEMLIMIT has decided otherwise.
func keepHeadroom(env Env) (giveBack func()) {
	if env.Getenv("GOGC") != "" || env.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	untouched := make([]byte, headroom)
	return func() { runtime.KeepAlive(untouched) }
}
