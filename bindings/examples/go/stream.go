// Streams one answer of the demo model, or of the model in the argument.
//
//	LD_LIBRARY_PATH=../../../build/release go run stream.go
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../c
#cgo LDFLAGS: -L${SRCDIR}/../../../build/release -loctavo
#include <stdlib.h>
#include "octavo.h"
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// Engine is a model in this process. Its methods may be called from any goroutine.
type Engine struct{ handle *C.octavo_engine }

func failure(problem *C.octavo_error) error {
	return errors.New(C.GoString(&problem.field[0]) + " " + C.GoString(&problem.message[0]))
}

// Open loads a model. Options are the flags of `octavo serve` with _ for -.
func Open(options map[string]any) (*Engine, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	given := C.CString(string(text))
	defer C.free(unsafe.Pointer(given))
	var engine Engine
	var problem C.octavo_error
	if C.octavo_create(given, &engine.handle, &problem) != C.OCTAVO_OK {
		return nil, failure(&problem)
	}
	return &engine, nil
}

// Close aborts running requests and frees the model's memory.
func (engine *Engine) Close() { C.octavo_destroy(engine.handle) }

// Stream submits a body of /v1/completions or /v1/chat/completions, and calls show with each piece of the answer.
func (engine *Engine) Stream(body map[string]any, show func(string)) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	given := C.CString(string(text))
	defer C.free(unsafe.Pointer(given))
	var problem C.octavo_error
	if C.octavo_submit(engine.handle, 1, given, C.size_t(len(text)), C.OCTAVO_DELTA, &problem) != C.OCTAVO_OK {
		return failure(&problem)
	}
	for last := false; !last; {
		outputs := C.octavo_wait(engine.handle, 1000)
		if outputs == nil {
			continue // no output within the timeout
		}
		for _, output := range unsafe.Slice(outputs.items, outputs.count) {
			show(C.GoStringN(output.text, C.int(output.text_bytes)))
			last = output.last != 0
		}
		C.octavo_outputs_free(outputs)
	}
	return nil
}

func run() error {
	options := map[string]any{}
	if len(os.Args) > 1 {
		options["model"] = os.Args[1]
	}
	engine, err := Open(options)
	if err != nil {
		return err
	}
	defer engine.Close()
	body := map[string]any{"prompt": "One rainy morning in", "max_tokens": 32, "temperature": 0}
	err = engine.Stream(body, func(text string) { fmt.Print(text) })
	fmt.Println()
	return err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
