package sim

// maxKeptBytes bounds the answers kept for look-ups and replays.
const maxKeptBytes = 64 << 20

// bounded is a map that forgets its oldest keys when it is over its bounds.
type bounded[V any] struct {
	max      int
	maxBytes int64 // 0: unbounded
	bytes    int64
	items    map[string]V
	weights  map[string]int64
	order    []string // keys, oldest first
}

func newBounded[V any](max int, maxBytes int64) *bounded[V] {
	b := &bounded[V]{max: max, maxBytes: maxBytes}
	b.clear()
	return b
}

func (b *bounded[V]) find(key string) (V, bool) {
	v, found := b.items[key]
	return v, found
}

func (b *bounded[V]) get(key string) V { return b.items[key] }

func (b *bounded[V]) values() map[string]V { return b.items }

// all lists the values, oldest key first.
func (b *bounded[V]) all() []V {
	list := make([]V, len(b.order))
	for i, key := range b.order {
		list[i] = b.items[key]
	}
	return list
}

// put sets a value that weighs so many bytes.
func (b *bounded[V]) put(key string, v V, weight int64) {
	if _, found := b.items[key]; !found {
		b.order = append(b.order, key)
	}
	b.bytes += weight - b.weights[key]
	b.items[key] = v
	if b.maxBytes > 0 {
		b.weights[key] = weight
	}
	for len(b.order) > b.max || b.maxBytes > 0 && b.bytes > b.maxBytes && len(b.order) > 1 {
		b.forgetOldest()
	}
}

func (b *bounded[V]) forgetOldest() {
	key := b.order[0]
	b.order = b.order[1:]
	b.bytes -= b.weights[key]
	delete(b.items, key)
	delete(b.weights, key)
}

func (b *bounded[V]) clear() {
	b.bytes, b.order = 0, nil
	b.items, b.weights = map[string]V{}, map[string]int64{}
}
