/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the code of libraries finds its variables of threads: slots that the dynamic linker fills with what
 * only it knows. "ELF Handling For Thread-Local Storage" (Drepper, 2013), for descriptors "Thread-Local
 * Storage Descriptors for IA32 and AMD64/EM64T" (Oliva, 2005).
 */
#pragma once

#include <stddef.h>
#include <linux/types.h>

struct image;

enum thread_slot_kind {
	THREAD_SLOT_ADDRESS,	/* __tls_get_addr() takes it, and returns the variable's address */
	THREAD_SLOT_DISTANCE,	/* it has the variable's distance from the thread pointer */
	THREAD_SLOT_DESCRIPTOR, /* the function that it leads to returns that distance */
};

struct thread_slot {
	__u64 address; /* before relocation */
	enum thread_slot_kind kind;
	__u64 at; /* where the variable is in a thread's copies of the file's variables */
};

struct thread_slots {
	struct thread_slot *list; /* by address */
	size_t nr;
};

/* Reads the slots of a 64-bit file. Variables of other files are left out, and so are sections of more than
 * `most` bytes. Must be released. */
void thread_slots_read(struct thread_slots *slots, const struct image *image, size_t most);
void thread_slots_release(struct thread_slots *slots);

/* NULL: there is none at this address. */
const struct thread_slot *thread_slot_at(const struct thread_slots *slots, __u64 address);
