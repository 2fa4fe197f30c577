// SPDX-License-Identifier: Apache-2.0

// What is hard of Go's stacks: goroutines that outgrow their stacks, garbage collection, loops that
// only a signal can preempt, timers, signals, panics that are recovered, channels and maps. Runs for
// as many seconds as its argument says. Go 1.18 or later, without cgo.
package main

import (
	"os"
	"os/signal"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var sink uint64

//go:noinline
func grow(depth int, x uint64) uint64 {
	var room [40]uint64
	for i := range room {
		room[i] = x + uint64(i)*uint64(depth)
	}
	if depth == 0 {
		return room[x%40]
	}
	return grow(depth-1, room[depth%40]) + room[(depth+1)%40]
}

// A new goroutine begins with a small stack, which is copied again and again.
func stacksGrow() {
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			atomic.AddUint64(&sink, grow(20+i*40, uint64(i)))
		}(i)
	}
	group.Wait()
}

type tree struct {
	left, right *tree
	words       []uint64
}

//go:noinline
func plant(depth int) *tree {
	if depth == 0 {
		return &tree{words: make([]uint64, 4)}
	}
	return &tree{plant(depth - 1), plant(depth - 1), nil}
}

func garbageIsMade() {
	t := plant(10)
	atomic.AddUint64(&sink, uint64(len(t.left.words)))
}

//go:noinline
func tight(n int) uint64 {
	x := uint64(n)
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func loopIsTight() {
	atomic.AddUint64(&sink, tight(20000000))
}

//go:noinline
func panicAt(depth int) int {
	defer func() { atomic.AddUint64(&sink, 1) }()
	if depth == 0 {
		panic("caught")
	}
	return panicAt(depth-1) + 1
}

func panicsAreRecovered() {
	for i := 0; i < 20; i++ {
		func() {
			defer func() { _ = recover() }()
			panicAt(i)
		}()
	}
}

func libraryIsBusy() {
	words := make(map[string]int)
	list := make([]string, 0, 8)
	for i := 0; i < 500; i++ {
		s := strconv.FormatFloat(float64(i*7919%1000)/7, 'g', -1, 64)
		words[s]++
		list = append(list, s)
	}
	sort.Slice(list, func(a, b int) bool { return list[a] > list[b] })
	atomic.AddUint64(&sink, uint64(words[list[0]]))
}

func channelsAreBusy() {
	in, out := make(chan int), make(chan int, 1)
	go func() {
		for v := range in {
			out <- v + 1
		}
		close(out)
	}()
	for i := 0; i < 200; i++ {
		in <- i
		<-out
		timer := time.AfterFunc(time.Microsecond, func() { atomic.AddUint64(&sink, 1) })
		if i%2 == 0 {
			timer.Stop()
		}
	}
	close(in)
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	runtime.GOMAXPROCS(4)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			atomic.AddUint64(&sink, 1)
		}
	}()
	go func() {
		for range time.Tick(time.Millisecond) {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)
		}
	}()
	var group sync.WaitGroup
	for _, work := range []func(){stacksGrow, garbageIsMade, loopIsTight, panicsAreRecovered, libraryIsBusy, channelsAreBusy} {
		group.Add(1)
		go func(work func()) {
			defer group.Done()
			for time.Now().Before(end) {
				work()
			}
		}(work)
	}
	group.Wait()
}
