/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory in which BPF programs store the stacks of their keys: one area for each generation of each CPU's
 * table; see bpf/stack.bpf.h. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

struct bpf_object;
struct stack_areas;
struct stored_stack;

/*
 * Must be called before the object is loaded: makes room for the stacks of nr_cpus CPUs. If stacks are to
 * have no frames, or the object has no stacks, makes sure that they take no memory, and returns NULL.
 */
struct stack_areas *stack_areas_prepare(struct bpf_object *object, int nr_cpus, unsigned int frames);
/* Must be called after the object is loaded: maps the areas. Returns 0 or -errno. */
int stack_areas_map(struct stack_areas *areas);

/* The bytes of one CPU's areas; 0 if the object has no stacks. */
size_t stack_areas_bytes(const struct bpf_object *object);

void stack_areas_close(struct stack_areas *areas);

/* The stack with this id (from STACK_FIRST on) in a generation of a CPU. Valid up to stack_areas_clear(). */
const struct stored_stack *stack_areas_at(const struct stack_areas *areas, int cpu, unsigned int which,
					  __u32 id);

/* Empties the area. No program may be inside its generation. */
void stack_areas_clear(struct stack_areas *areas, int cpu, unsigned int which);
