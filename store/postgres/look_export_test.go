package postgres

// SQLWorkLook is the statement that an idle node spends its time on.
const SQLWorkLook = sqlWorkLook
