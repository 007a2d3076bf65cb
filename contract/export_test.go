package contract

import "reflect"

// CheckDefault says what is wrong with the default of a field of a file's struct.
func CheckDefault(f reflect.StructField) error {
	if f.Type.Kind() == reflect.Slice {
		return nil
	}
	fields := fieldsOf(reflect.StructOf([]reflect.StructField{f}))
	return setText(fields[0].fallback, reflect.New(f.Type).Elem(), fields[0])
}
