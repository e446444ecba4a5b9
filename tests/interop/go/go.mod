module interop

go 1.24
