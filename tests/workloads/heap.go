// SPDX-License-Identifier: Apache-2.0

// heap: holds more and more memory in named functions until the kernel ends it. Tells on standard
// output, a line each time, what each function holds, before it allocates more.
//
//	heap [-buckets N] [-threads N] [-step BYTES]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

type node struct {
	next *node
	rest [1000]byte
}

var (
	large [][]byte
	small *node
	keep  []any
	held  struct{ large, small int }
)

//go:noinline
func holdLarge(bytes int) {
	b := make([]byte, bytes)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	large = append(large, b)
	held.large += bytes
}

//go:noinline
func holdSmall(bytes int) {
	for n := 0; n < bytes; n += 1024 {
		small = &node{next: small}
		held.small += 1024
	}
}

func inlined(bytes int) { holdLarge(bytes) }

//go:noinline
func caller(bytes int) { inlined(bytes) }

//go:noinline
func deep(levels, bytes int) {
	if levels > 0 {
		deep(levels-1, bytes)
		return
	}
	holdSmall(bytes)
}

// Another bucket for each: its stack has the bits of n.
//
//go:noinline
func zero(n, bits int) any {
	if bits == 0 {
		return new([64]byte)
	}
	if n&1 != 0 {
		return one(n>>1, bits-1)
	}
	return zero(n>>1, bits-1)
}

//go:noinline
func one(n, bits int) any {
	if bits == 0 {
		return new([64]byte)
	}
	if n&1 != 0 {
		return one(n>>1, bits-1)
	}
	return zero(n>>1, bits-1)
}

func main() {
	buckets := flag.Int("buckets", 0, "stacks that allocate something")
	threads := flag.Int("threads", 0, "threads that do nothing")
	step := flag.Int("step", 4<<20, "bytes at a time")
	profile := flag.String("profile", "", "write a profile here before each step")
	wait := flag.String("wait", "", "begin when this file is there")
	rate := flag.Int("rate", 0, "MemProfileRate, unless it is 0")
	flag.Parse()
	if *rate != 0 {
		runtime.MemProfileRate = *rate
	}
	for i := 0; i < *threads; i++ {
		go func() {
			runtime.LockOSThread()
			time.Sleep(time.Hour)
		}()
	}
	for i := 0; i < *buckets; i++ {
		keep = append(keep, zero(i, 16))
	}
	large = make([][]byte, 0, 1<<16) // so that holdLarge holds nothing else
	fmt.Println("ready")
	for *wait != "" {
		if _, err := os.Stat(*wait); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for {
		if *profile != "" {
			runtime.GC()
			if f, err := os.Create(*profile + ".new"); err == nil {
				pprof.Lookup("heap").WriteTo(f, 0)
				f.Close()
				os.Rename(*profile+".new", *profile)
			}
		}
		caller(*step)
		deep(5, *step/2)
		fmt.Println("held", held.large, held.small, len(keep))
	}
}
