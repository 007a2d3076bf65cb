package sqlite

import "slices"

// maxPage bounds every page.
const maxPage = 200

func pageOf(limit int) int { return min(max(limit, 1), maxPage) }

// list is how one kind of row is listed.
type list[T any] struct {
	sql, order string
	scan       func(*row, *T) error
	complete   func(*T) error          // reads what the row alone does not hold; nil: nothing
	after      func(last *T, w *where) // adds the condition of coming later in the order
}

// listed reads rows until it has want of them, or there are no more. A row that
// cannot be read is left out, and keeps none of its neighbours out.
func listed[T any](x *tx, l list[T], w where, want int) (found []T, err error) {
	for {
		asked := want - len(found)
		read, err := l.read(x, w, asked)
		if err != nil {
			return nil, err
		}
		for i := range read {
			if read[i].err == nil && l.complete != nil {
				read[i].err = l.complete(&read[i].value)
			}
			switch err := read[i].err; {
			case err == nil:
				found = append(found, read[i].value)
			case !concernsRow(err):
				return nil, err
			}
		}
		if len(read) < asked || len(found) == want {
			return found, nil
		}
		l.after(&read[len(read)-1].value, &w)
	}
}

// scannedRow is one row, or why it cannot be read. The value then holds at least
// the row's place in the order.
type scannedRow[T any] struct {
	value T
	err   error
}

func (l list[T]) read(x *tx, w where, limit int) (rows []scannedRow[T], err error) {
	err = x.query(l.sql+w.sql()+l.order+` LIMIT ?`, func(r *row) error {
		var one scannedRow[T]
		one.err = l.scan(r, &one.value)
		rows = append(rows, one)
		return nil
	}, append(slices.Clip(w.args), limit)...)
	return rows, err
}
