module tuned

go 1.17

require github.com/linxGnu/grocksdb v1.10.8
