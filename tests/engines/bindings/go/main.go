// Opens a database in a folder with exported options, and prints the size of its block cache.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/linxGnu/grocksdb"
	"tuned/tuned"
)

func main() {
	options, err := tuned.Options()
	if err != nil {
		log.Fatal(err)
	}
	defer options.Destroy()
	options.SetCreateIfMissing(true)
	db, err := grocksdb.OpenDb(options, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	fmt.Print(db.GetProperty("rocksdb.block-cache-capacity"))
}
