// SPDX-License-Identifier: GPL-2.0-only
// structures N: walks a list, a tree and slices of N items each four times, and loads known fields. Each part is a function of
// its own.
package main

import (
	"os"
	"strconv"
)

type node struct {
	next  *node
	value int64
	pad   [6]int64
}

type tree struct {
	left, right *tree
	key         int64
	count       int32
}

type item struct {
	weight, count int64
	name          string
}

type table struct {
	slots []*item
	mask  uint64
}

type shape interface{ area() int64 }
type square struct{ side int64 }

//go:noinline
func (s *square) area() int64 { return s.side * s.side }

var kept shape = &square{1}
var sum int64

//go:noinline
func walkList(n *node) (sum int64) {
	for ; n != nil; n = n.next {
		sum += n.value
	}
	return
}

//go:noinline
func sumTree(t *tree) int64 {
	if t == nil {
		return 0
	}
	return sumTree(t.left) + t.key*int64(t.count) + sumTree(t.right)
}

//go:noinline
func sumItems(items []item) (sum int64) {
	for i := range items {
		sum += items[i].weight * items[i].count
	}
	return
}

//go:noinline
func (t *table) find(hash uint64) int64 {
	e := t.slots[hash&t.mask]
	if e == nil {
		return 0
	}
	return e.weight
}

//go:noinline
func areas(shapes []shape) (sum int64) {
	for _, s := range shapes {
		sum += s.area()
	}
	return
}

//go:noinline
func get() shape { return kept }

// The call leaves its second result in the register that had the second argument.
//
//go:noinline
func assert(n *node, t *tree) int64 {
	return get().(*square).side + n.value
}

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	var head *node
	var root *tree
	items := make([]item, n)
	t := &table{make([]*item, 1024), 1023}
	shapes := make([]shape, n)
	for i := range items {
		head = &node{next: head, value: int64(i)}
		root = &tree{left: root, key: int64(i)}
		items[i] = item{int64(i), 2, "item"}
		t.slots[i%1024] = &items[i]
		shapes[i] = &square{int64(i)}
	}
	for turn := 0; turn < 4; turn++ {
		sum += walkList(head) + sumTree(root) + sumItems(items) + areas(shapes)
		for i := range items {
			sum += t.find(uint64(i)*7) + assert(head, root)
		}
	}
}
